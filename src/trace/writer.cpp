// SPDX-License-Identifier: BSD-3-Clause
#include "trace/writer.hpp"

#include <bit>
#include <cstring>
#include <limits>

#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "trace/cache_filter.hpp"
#include "trace/record_codec.hpp"
#include "trace/trace_format.hpp"

namespace perdure::trace {
namespace {

constexpr std::uint32_t page_bytes_max = 1U << 30U;

template <typename... Parts>
Status invalid(const Parts&... parts) {
  return Status(Code::invalid_argument, "trace: ", parts...);
}

Status check_header(const Header& header) {
  const std::uint32_t page = header.page_bytes;
  if (!std::has_single_bit(page) || page < header.cache.line_bytes || page > page_bytes_max) {
    return invalid("pages of ", page,
                   " bytes; a power of two from the size of a line to 2^30 is needed");
  }
  if (header.rank >= header.ranks) {
    return invalid("rank ", header.rank, " of ", header.ranks);
  }
  CacheShape shape = header.cache;
  if (header.mode == FilterMode::none)
    shape.size_bytes = shape.line_bytes * std::uint64_t{shape.ways};
  return check_shape(shape);
}

TraceHeaderFormat header_format(const Header& header) {
  TraceHeaderFormat format = {};
  format.magic = trace_magic;
  format.format_version = trace_format_version;
  format.command_bytes = static_cast<std::uint32_t>(header.command.size());
  format.page_bytes = header.page_bytes;
  format.line_bytes = header.cache.line_bytes;
  format.cache_bytes = header.cache.size_bytes;
  format.cache_ways = header.cache.ways;
  format.mode = static_cast<std::uint32_t>(header.mode);
  format.floor_pages = header.floor_pages;
  format.rank = header.rank;
  format.ranks = header.ranks;
  format.created_ns = header.created_ns;
  const std::uint64_t seed = crc64(&format, offsetof(TraceHeaderFormat, checksum));
  format.checksum = crc64(header.command.data(), header.command.size(), seed);
  return format;
}

template <typename Format>
std::span<const std::byte> bytes_of(const Format& format) {
  return std::as_bytes(std::span(&format, 1));
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Writer::Writer(std::unique_ptr<ByteSink> sink, const Header& header)
    : sink_(std::move(sink)),
      frames_(*sink_),
      header_(header),
      reducer_(std::max(header.floor_pages, 1U), ready_) {
  ready_.reserve(std::size_t{frame_records_max} * 2);
}

Result<std::unique_ptr<Writer>> Writer::create(const std::string& path, const Header& header) {
  PERDURE_TRY(check_header(header));  // before the file is made
  PERDURE_TRY_ASSIGN(auto sink, open_sink(path));
  return create(std::move(sink), header);
}

Result<std::unique_ptr<Writer>> Writer::create(std::unique_ptr<ByteSink> sink,
                                               const Header& header) {
  PERDURE_TRY(check_header(header));
  std::unique_ptr<Writer> writer(new Writer(std::move(sink), header));
  PERDURE_TRY(writer->begin());
  return writer;
}

Status Writer::begin() {
  if (header_.created_ns == 0) header_.created_ns = wall_clock_ns();
  if (header_.command.size() > command_bytes_max) header_.command.resize(command_bytes_max);
  const TraceHeaderFormat format = header_format(header_);
  PERDURE_TRY(sink_->write(bytes_of(format)));
  PERDURE_TRY(sink_->write(bytes_of(header_.command)));
  frames_.begin(format.checksum, sizeof format + header_.command.size());
  return Status::success();
}

std::uint32_t Writer::id_of(std::uint64_t page) {
  const std::uint32_t id = ids_.id_of(page);
  if (id < totals_.pages.size()) return id;
  if (id == trace_pages_max) {
    status_ = {Code::no_space, "trace: more than 2^32 - 16 pages; use larger ones"};
  } else {
    totals_.pages.emplace_back();
  }
  return id;
}

std::uint32_t Writer::page_id(std::uint64_t page) {
  if (!status_.ok()) return 0;
  const std::uint32_t id = id_of(page);
  if (id < totals_.pages.size()) {
    __builtin_prefetch(&totals_.pages[id], 1);
    reducer_.prefetch(id);
  }
  return id;
}

void Writer::append(std::uint64_t page, std::uint32_t reads, std::uint32_t writes,
                    std::uint32_t stream) {
  if ((reads | writes) == 0 || !status_.ok()) return;
  append_id(ids_.is_last(page) ? ids_.last() : id_of(page), reads, writes, stream);
}

void Writer::append_id(std::uint32_t id, std::uint32_t reads, std::uint32_t writes,
                       std::uint32_t stream) {
  if ((reads | writes) == 0 || !status_.ok()) return;
  if (stream >= totals_.streams.size() && !add_stream(stream)) return;
  totals_.streams[stream].reads += reads;
  totals_.streams[stream].writes += writes;
  totals_.pages[id].reads += reads;
  totals_.pages[id].writes += writes;
  const Record record = {id, reads, writes};
  if (header_.floor_pages == 0) {
    ready_.push_back(record);
  } else {
    reducer_.append(record);
  }
  while (ready_.size() >= frame_records_max && status_.ok()) write_records(frame_records_max);
}

// A region begins or ends between two records: none is held back across it.
void Writer::mark(FrameKind kind, const std::string& name) {
  if (!status_.ok()) return;
  const bool begins = kind == FrameKind::region_begin;
  if (name.size() > region_bytes_max || (begins && name.empty())) {
    status_ = invalid("a region's name has 1 to 255 bytes, not ", name.size());
  } else if (region_.has_value() == begins) {
    status_ =
        begins ? Status(Code::wrong_state, "trace: region ", name, " begins inside of ", *region_)
               : Status(Code::wrong_state, "trace: no region is there to be ended");
  }
  if (!status_.ok()) return;
  if (begins) region_ = name;
  write_all_records();
  if (status_.ok()) status_ = frames_.write(kind, bytes_of(*region_));
  if (!begins) region_.reset();
}

Status Writer::finish(const Ending& ending) {
  if (finished_) return {Code::wrong_state, "trace: finish() was called before"};
  finished_ = true;
  totals_.ending = ending;
  if (status_.ok() && region_) {
    status_ = Status(Code::wrong_state, "trace: region ", *region_, " has no end");
  }
  if (status_.ok()) write_all_records();
  if (status_.ok()) status_ = write_footer();
  const Status closed = sink_->close();
  if (status_.ok()) status_ = closed;
  return status_;
}

bool Writer::add_stream(std::uint32_t stream) {
  if (stream >= streams_max) {
    status_ = invalid("stream ", stream, "; there are at most 65536");
    return false;
  }
  totals_.streams.resize(stream + 1);
  return true;
}

void Writer::write_all_records() {
  if (header_.floor_pages != 0) reducer_.flush();
  while (!ready_.empty() && status_.ok()) {
    write_records(std::min<std::size_t>(ready_.size(), frame_records_max));
  }
}

void Writer::write_records(std::size_t count) {
  const std::span<const Record> records(ready_.data(), count);
  const std::uint32_t before = pages_written_;
  page_bytes_.clear();
  for (const Record& record : records) {
    totals_.reads += record.reads;
    totals_.writes += record.writes;
    if (record.page != pages_written_) continue;
    put_varint(zigzag(ids_.number_of(pages_written_) - page_before_), page_bytes_);
    page_before_ = ids_.number_of(pages_written_++);
  }
  totals_.records += count;
  status_ = frames_.write_records(records, page_bytes_, pages_written_ - before);
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
}

Status Writer::write_footer() {
  FooterFormat footer = {};
  footer.records = totals_.records;
  footer.reads = totals_.reads;
  footer.writes = totals_.writes;
  footer.program_accesses = totals_.ending.program_accesses;
  footer.elapsed_ns = totals_.ending.elapsed_ns;
  footer.compute_ns = totals_.ending.compute_ns;
  footer.pages = static_cast<std::uint32_t>(totals_.pages.size());
  footer.streams = static_cast<std::uint32_t>(totals_.streams.size());
  const auto bytes = bytes_of(footer);
  raw_.assign(bytes.begin(), bytes.end());
  for (const auto* list : {&totals_.streams, &totals_.pages}) {
    for (const PageCounts& counts : *list) {
      put_varint(counts.reads, raw_);
      put_varint(counts.writes, raw_);
    }
  }
  const std::uint64_t offset = frames_.offset();
  if (raw_.size() > std::numeric_limits<std::uint32_t>::max()) {
    return {Code::no_space, "trace: the counts of its pages don't fit; use larger pages"};
  }
  PERDURE_TRY(frames_.write(FrameKind::footer, raw_));
  const TrailerFormat trailer = {offset, frames_.checksum(), trailer_magic};
  return sink_->write(bytes_of(trailer));
}

}  // namespace perdure::trace
