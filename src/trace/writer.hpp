// SPDX-License-Identifier: BSD-3-Clause
//
// Writer: makes a trace of page accesses, in one pass and in bounded memory, into a file or a pipe.
//
//   auto writer = Writer::create("cg.ptrace", header);
//   writer.value()->append(address / header.page_bytes, 1, 0);
//   status = writer.value()->finish(ending);
//
// Invariants: dense ids are given in the order of append(); what was appended and what the footer
// says agree. A trace without its finish() is refused by Reader as truncated.
// Threads: one at a time; threads of a program append in batches under a lock of the caller.
// Failure: append() returns nothing, as it is on a recorder's path; the first error is kept, later
// appends do nothing, and finish() returns it.
// Memory: some 70 bytes for each page (addresses, counts, reduction), and two frames.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "trace/byte_stream.hpp"
#include "trace/record.hpp"

namespace perdure::trace {

class Writer {
 public:
  // Code::invalid_argument for sizes that can't be; path as in open_sink().
  static Result<std::unique_ptr<Writer>> create(const std::string& path, const Header& header);
  static Result<std::unique_ptr<Writer>> create(std::unique_ptr<ByteSink> sink,
                                                const Header& header);
  ~Writer();

  // The next accesses, by `stream` (a thread, numbered from 0): of lines of page number `page`.
  // Nothing happens where reads and writes are both 0.
  void append(std::uint64_t page, std::uint32_t reads, std::uint32_t writes,
              std::uint32_t stream = 0);

  // The same in two steps, for a caller who appends a page often: its id, and what is appended to
  // it. Ids must be asked for in the order of the pages' first accesses, which follow. An error in
  // the first step makes the second do nothing.
  std::uint32_t page_id(std::uint64_t page);
  void append_id(std::uint32_t id, std::uint32_t reads, std::uint32_t writes,
                 std::uint32_t stream = 0);
  void prefetch(std::uint64_t page) const;  // page_id() is near

  // A region of interest begins or ends here. Regions don't overlap; `name` has at most 255 bytes.
  void begin_region(const std::string& name);
  void end_region();

  // Writes what is pending and the footer, and closes. Once; an open region is an error.
  Status finish(const Ending& ending);

  const Status& status() const;  // the first error so far

 private:
  class Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdure::trace
