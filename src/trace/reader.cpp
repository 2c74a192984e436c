// SPDX-License-Identifier: BSD-3-Clause
#include "trace/reader.hpp"

#include <cstring>

#include "trace/record_codec.hpp"
#include "trace/trace_format.hpp"
#include "trace/trace_header.hpp"

namespace perdure::trace {
namespace {

// A footer's payload; false where it can't be one.
bool parse_footer(std::span<const std::byte> raw, Totals& totals) {
  FooterFormat footer = {};
  if (raw.size() < sizeof footer) return false;
  std::memcpy(&footer, raw.data(), sizeof footer);
  raw = raw.subspan(sizeof footer);
  // Each number has at least a byte, so that no count takes memory that the bytes don't justify.
  if (footer.streams > streams_max ||
      footer.streams * 2 + std::uint64_t{footer.pages} * 2 > raw.size()) {
    return false;
  }
  totals = {footer.records, footer.reads, footer.writes, {}, {}, {}};
  totals.ending = {footer.program_accesses, footer.elapsed_ns, footer.compute_ns};
  totals.streams.resize(footer.streams);
  totals.pages.resize(footer.pages);
  const PageCounts all = {totals.reads, totals.writes};
  for (auto* list : {&totals.streams, &totals.pages}) {
    PageCounts sum;
    for (PageCounts& counts : *list) {
      if (!take_varint(raw, counts.reads) || !take_varint(raw, counts.writes)) return false;
      sum.reads += counts.reads;
      sum.writes += counts.writes;
    }
    if (sum != all) return false;
  }
  return raw.empty();
}

}  // namespace

bool RegionFilter::enter(const std::string& name) {
  if (inside_ || name.empty()) return false;
  inside_ = true;
  found_ = found_ || name == only_;
  last_ = name;
  return true;
}

bool RegionFilter::leave(const std::string& name) {
  if (!inside_ || name != last_) return false;
  inside_ = false;
  return true;
}

void RegionFilter::rewind() {
  last_.clear();
  inside_ = found_ = false;
}

Result<std::unique_ptr<Reader>> Reader::open(const std::string& path) {
  PERDURE_TRY_ASSIGN(auto source, open_source(path));
  return open(std::move(source));
}

Result<std::unique_ptr<Reader>> Reader::open(std::unique_ptr<ByteSource> source) {
  std::unique_ptr<Reader> reader(new Reader(std::move(source)));
  PERDURE_TRY(reader->begin());
  return reader;
}

Status Reader::begin() {
  PERDURE_TRY_ASSIGN(auto read, read_header(*source_));
  header_ = std::move(read.header);
  first_frame_ = read.bytes;
  frames_.begin(read.checksum, first_frame_);
  header_checksum_ = read.checksum;
  return Status::success();
}

Status Reader::rewind() {
  if (!seekable()) {
    return Status(Code::wrong_state, source_->name(),
                  ": a pipe can be read once only; write the trace to a file");
  }
  PERDURE_TRY(source_->seek(first_frame_));
  frames_.begin(header_checksum_, first_frame_);
  sums_ = {};
  page_numbers_.clear();
  page_before_ = 0;
  regions_.rewind();
  ended_ = begun_ = false;
  return Status::success();
}

Result<Batch> Reader::next() {
  begun_ = true;
  for (;;) {
    if (ended_) return Batch{};
    const Status read = frames_.read(static_cast<std::uint32_t>(page_numbers_.size()));
    if (!read.ok()) return Status(read.code(), read.message() + whole_so_far());
    Batch batch;
    switch (frames_.kind()) {
      case FrameKind::records:
        PERDURE_TRY(read_records());
        batch = {Batch::Kind::records, records_, decoded_, {}};
        if (regions_.passes()) return batch;
        break;
      case FrameKind::region_begin:
      case FrameKind::region_end:
        PERDURE_TRY(read_marker(batch));
        if (regions_.wants_all()) return batch;
        break;
      case FrameKind::footer:
        PERDURE_TRY(read_end());
        break;
    }
  }
}

Result<const Totals*> Reader::totals() {
  if (totals_.has_value()) return &*totals_;
  if (!seekable()) {
    return Status(
        Code::wrong_state,
        source_->name() + ": a pipe tells its totals only at its end; write the trace to a file");
  }
  if (begun_) return Status(Code::wrong_state, "totals: ask before reading, or at its end");
  const Status read = read_footer_first();
  PERDURE_TRY(rewind());
  if (!read.ok()) return Status(read.code(), read.message() + whole_in_all());
  page_numbers_.reserve(totals_->pages.size());
  return &*totals_;
}

Status Reader::only_region(const std::string& name) {
  if (begun_) return {Code::wrong_state, "the region must be chosen before reading begins"};
  regions_.want(name);
  return Status::success();
}

Status Reader::read_records() {
  const FrameHeaderFormat& frame = frames_.header();
  records_.resize(frame.records);
  Decoded decoded;
  const auto before = static_cast<std::uint32_t>(page_numbers_.size());
  if (frame.new_pages > trace_pages_max - before ||
      !decode_records(frames_.raw(), before + frame.new_pages, records_, decoded)) {
    return frames_.damaged("holds records that can't be");
  }
  std::span<const std::byte> rest = frames_.raw().subspan(decoded.bytes);
  for (std::uint32_t i = 0; i < frame.new_pages; ++i) {
    std::uint64_t coded = 0;
    if (!take_varint(rest, coded)) return frames_.damaged("lacks page numbers");
    page_before_ += unzigzag(coded);
    page_numbers_.push_back(page_before_);
  }
  if (!rest.empty()) return frames_.damaged("has bytes left over");
  sums_.records += frame.records;
  sums_.reads += decoded.reads;
  sums_.writes += decoded.writes;
  decoded_ = {decoded.reads, decoded.writes};
  return Status::success();
}

Status Reader::read_marker(Batch& batch) {
  const bool begins = frames_.kind() == FrameKind::region_begin;
  const auto raw = frames_.raw();
  batch.kind = begins ? Batch::Kind::region_begin : Batch::Kind::region_end;
  batch.region.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
  const bool can_be = begins ? regions_.enter(batch.region) : regions_.leave(batch.region);
  return can_be ? Status::success()
                : frames_.damaged("is the marker of a region, where none can be");
}

// The footer, and what must follow it: the trailer, and nothing else.
Status Reader::read_end() {
  Totals totals;
  if (!parse_footer(frames_.raw(), totals)) return frames_.damaged("is a footer that can't be");
  if (totals.records != sums_.records || totals.reads != sums_.reads ||
      totals.writes != sums_.writes || totals.pages.size() != page_numbers_.size()) {
    return frames_.damaged(sentence("says ", totals.accesses(), " accesses in ", totals.records,
                                    " records, but there were ", sums_.accesses(), " in ",
                                    sums_.records));
  }
  TrailerFormat trailer = {};
  std::byte more = {};
  auto count = source_->read(std::as_writable_bytes(std::span(&trailer, 1)));
  if (!count.ok()) return count.status();
  if (count.value() != sizeof trailer || trailer.magic != trailer_magic ||
      trailer.checksum != frames_.header().checksum || trailer.footer_offset != frames_.offset()) {
    return frames_.damaged("is not followed by its trailer: the trace is truncated");
  }
  count = source_->read(std::span(&more, 1));
  if (!count.ok()) return count.status();
  if (count.value() != 0) return frames_.damaged("is the last one, but bytes follow it");
  if (regions_.is_inside()) return frames_.damaged("comes before the end of a region");
  if (regions_.lacks_the_wanted()) {
    return Status(Code::not_found, source_->name(), ": the trace has no region ", region());
  }
  totals_ = std::move(totals);
  ended_ = true;
  return Status::success();
}

Status Reader::read_footer_first() {
  const std::uint64_t size = source_->size_bytes().value_or(0);
  const Status truncated(Code::damaged, source_->name(),
                         ": the trace is truncated: it does not end with a trailer; its "
                         "recording did not end or was cut off");
  TrailerFormat trailer = {};
  if (size < first_frame_ + sizeof(FrameHeaderFormat) + sizeof trailer) return truncated;
  PERDURE_TRY(source_->seek(size - sizeof trailer));
  PERDURE_TRY_ASSIGN(const auto count,
                     source_->read(std::as_writable_bytes(std::span(&trailer, 1))));
  if (count != sizeof trailer || trailer.magic != trailer_magic ||
      trailer.footer_offset < first_frame_ ||
      trailer.footer_offset > size - sizeof trailer - sizeof(FrameHeaderFormat)) {
    return truncated;
  }
  PERDURE_TRY(source_->seek(trailer.footer_offset));
  PERDURE_TRY(frames_.read_footer());
  Totals totals;
  if (trailer.checksum != frames_.header().checksum || !parse_footer(frames_.raw(), totals)) {
    return frames_.damaged("is a footer that can't be");
  }
  totals_ = std::move(totals);
  return Status::success();
}

// Of a trace that has no end, how much of it is there.
std::string Reader::whole_so_far() const {
  if (sums_.records == 0) return "; none of its records is whole";
  return sentence("; ", sums_.records, " records before are whole, of ", sums_.accesses(),
                  " accesses to ", page_numbers_.size(), " pages");
}

std::string Reader::whole_in_all() {
  for (auto batch = next(); batch.ok() && batch.value().kind != Batch::Kind::end;) batch = next();
  std::string text = whole_so_far();
  return rewind().ok() ? text : std::string();
}

namespace {

// Of what the reader still gives.
Result<std::vector<PageCounts>> count_records(Reader& reader) {
  std::vector<PageCounts> counts;
  for (;;) {
    PERDURE_TRY_ASSIGN(auto batch, reader.next());
    counts.resize(reader.pages());
    if (batch.kind == Batch::Kind::end) return counts;
    for (const Record& record : batch.records) {
      counts[record.page].reads += record.reads;
      counts[record.page].writes += record.writes;
    }
  }
}

}  // namespace

Status verify(Reader& reader) {
  if (!reader.region().empty()) {
    return {Code::wrong_state, "a trace is verified whole, not a region of it"};
  }
  PERDURE_TRY_ASSIGN(const auto counts, count_records(reader));
  PERDURE_TRY_ASSIGN(const auto totals, reader.totals());
  if (counts != totals->pages) {
    return {Code::damaged, "the trace's records and its footer disagree about a page's accesses"};
  }
  return Status::success();
}

Result<std::vector<PageCounts>> count_pages(Reader& reader) {
  if (reader.region().empty()) {
    PERDURE_TRY_ASSIGN(const auto totals, reader.totals());
    return totals->pages;
  }
  PERDURE_TRY(reader.rewind());
  auto counts = count_records(reader);
  if (!counts.ok()) return counts;
  PERDURE_TRY(reader.rewind());
  return counts;
}

}  // namespace perdure::trace
