// SPDX-License-Identifier: BSD-3-Clause
//
// Reader: the records of a trace, frame by frame, from a file or a pipe, each byte checked.
//
// Invariants: next() never gives records that were not appended, nor in another order; when it gave
// Batch::Kind::end, the records were all that the writer wrote: frames, records, reads, writes,
// pages and the footer agree. `verify` compares the counts of each page as well.
// Threads: one at a time.
// Failure, each with a sentence that says what to do:
//   Code::foreign        not a trace of ours; says which other format it looks like
//   Code::newer_format   written by a newer Perdure
//   Code::damaged        empty, truncated, corrupt, frames missing or in another order
// Memory: one frame, and 8 bytes for each page.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "trace/byte_stream.hpp"
#include "trace/frame.hpp"
#include "trace/record.hpp"

namespace perdure::trace {

struct Batch {
  enum class Kind { records, region_begin, region_end, end };
  Kind kind = Kind::end;
  std::span<const Record> records = {};  // valid until the next call
  PageCounts accesses = {};              // of all of them
  std::string region = {};               // its name, where one begins or ends
};

// Which region the trace is in, and whether it is the one that is wanted. Regions don't overlap.
class RegionFilter {
 public:
  void want(const std::string& name) { only_ = name; }
  const std::string& only() const { return only_; }  // empty: all are
  bool wants_all() const { return only_.empty(); }
  // What comes now is wanted.
  bool passes() const { return wants_all() || (inside_ && last_ == only_); }
  // The marker of a region; false: it can't be here.
  bool enter(const std::string& name);
  bool leave(const std::string& name);
  bool is_inside() const { return inside_; }
  bool lacks_the_wanted() const { return !wants_all() && !found_; }
  // From the beginning of the trace again.
  void rewind();

 private:
  std::string only_;
  std::string last_;  // that began
  bool inside_ = false;
  bool found_ = false;
};

class Reader {
 public:
  static Result<std::unique_ptr<Reader>> open(const std::string& path);  // as open_source()
  static Result<std::unique_ptr<Reader>> open(std::unique_ptr<ByteSource> source);

  const Header& header() const { return header_; }

  // After Kind::end it gives Kind::end again.
  Result<Batch> next();

  // How many pages the records given so far touched: all ids in them are smaller.
  std::uint32_t pages() const { return static_cast<std::uint32_t>(page_numbers_.size()); }
  // The page number of each id below pages(); times page_bytes it is the address.
  const std::vector<std::uint64_t>& page_numbers() const { return page_numbers_; }

  // A file can be read again, and tells its totals at once; a pipe cannot.
  bool seekable() const { return source_->size_bytes().has_value(); }
  Status rewind();  // Code::wrong_state for a pipe
  // Of the whole trace, whatever region is read. Where it is truncated the messages of this and
  // of next() say how much of it is whole, which next() gives. Code::wrong_state between the first
  // next() and the end, and for a pipe before its end.
  Result<const Totals*> totals();

  // From now on next() gives only records in regions with this name, and no markers. Before the
  // first next(). A trace without such a region is Code::not_found at its end.
  Status only_region(const std::string& name);
  const std::string& region() const { return regions_.only(); }  // empty: all of it

 private:
  explicit Reader(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), frames_(*source_) {}
  Status begin();
  Status read_records();
  Status read_marker(Batch& batch);
  Status read_end();
  Status read_footer_first();
  std::string whole_so_far() const;
  std::string whole_in_all();

  std::unique_ptr<ByteSource> source_;
  FrameReader frames_;
  Header header_;
  RegionFilter regions_;
  std::vector<std::uint64_t> page_numbers_;
  std::vector<Record> records_;
  PageCounts decoded_;  // of records_
  Totals sums_;
  std::optional<Totals> totals_;
  std::uint64_t first_frame_ = 0;
  std::uint64_t header_checksum_ = 0;
  std::uint64_t page_before_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

// Reads to the end and compares the counts of every page with the footer.
Status verify(Reader& reader);

// Reads and writes of each page in the region that is read: from the footer, or by a pass and a
// rewind. Code::wrong_state for a pipe.
Result<std::vector<PageCounts>> count_pages(Reader& reader);

}  // namespace perdure::trace
