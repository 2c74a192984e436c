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
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "trace/byte_stream.hpp"
#include "trace/frame.hpp"
#include "trace/id_table.hpp"
#include "trace/record.hpp"
#include "trace/reducer.hpp"

namespace perdure::trace {

class Writer {
 public:
  // Code::invalid_argument for sizes that can't be; path as in open_sink().
  static Result<std::unique_ptr<Writer>> create(const std::string& path, const Header& header);
  static Result<std::unique_ptr<Writer>> create(std::unique_ptr<ByteSink> sink,
                                                const Header& header);

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
  void prefetch(std::uint64_t page) const { ids_.prefetch(page); }  // page_id() is near

  // A region of interest begins or ends here. Regions don't overlap; `name` has at most 255 bytes.
  void begin_region(const std::string& name) { mark(FrameKind::region_begin, name); }
  void end_region() { mark(FrameKind::region_end, {}); }

  // Writes what is pending and the footer, and closes. Once; an open region is an error.
  Status finish(const Ending& ending);

  const Status& status() const { return status_; }  // the first error so far

 private:
  Writer(std::unique_ptr<ByteSink> sink, const Header& header);
  Status begin();
  std::uint32_t id_of(std::uint64_t page);
  void mark(FrameKind kind, const std::string& name);
  bool add_stream(std::uint32_t stream);
  void write_all_records();
  void write_records(std::size_t count);
  Status write_footer();

  Status status_;
  std::unique_ptr<ByteSink> sink_;
  FrameWriter frames_;
  Header header_;
  std::vector<Record> ready_;  // final, and not yet in a frame
  Reducer reducer_;
  PageIds ids_;
  Totals totals_;
  std::vector<std::byte> raw_;
  std::vector<std::byte> page_bytes_;  // numbers of the pages that are new in a frame
  std::uint32_t pages_written_ = 0;
  std::uint64_t page_before_ = 0;
  std::optional<std::string> region_;  // that has begun and not ended
  bool finished_ = false;
};

}  // namespace perdure::trace
