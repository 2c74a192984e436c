// SPDX-License-Identifier: BSD-3-Clause
#define ZSTD_STATIC_LINKING_ONLY  // ZSTD_createCCtx_advanced()
#include "trace/frame.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "trace/record_codec.hpp"

namespace perdure::trace {
namespace {

constexpr int compression_level = 1;
constexpr std::size_t read_step = std::size_t{1} << 20U;

// The longest payload that a frame of this kind can have.
std::uint64_t raw_bytes_max(const FrameHeaderFormat& header, std::uint64_t pages) {
  constexpr std::uint64_t varint_bytes_max = 10;
  switch (static_cast<FrameKind>(header.kind)) {
    case FrameKind::records:
      return record_bytes_max(header.records) + header.new_pages * varint_bytes_max;
    case FrameKind::region_begin:
    case FrameKind::region_end:
      return region_bytes_max;
    case FrameKind::footer:
      return sizeof(FooterFormat) + streams_max * 2 * varint_bytes_max +
             pages * 2 * varint_bytes_max;
  }
  return 0;
}

}  // namespace

std::uint64_t frame_checksum(const FrameHeaderFormat& header, std::span<const std::byte> stored) {
  const std::uint64_t seed = crc64(&header, offsetof(FrameHeaderFormat, checksum));
  return crc64(stored.data(), stored.size(), seed);
}

namespace {

// From where C++ has its memory: in a program that is recorded that is not the program's heap.
ZSTD_customMem memory_of_cpp() {
  return {[](void*, std::size_t bytes) { return ::operator new(bytes, std::nothrow); },
          [](void*, void* place) { ::operator delete(place); }, nullptr};
}

}  // namespace

FrameWriter::FrameWriter(ByteSink& sink)
    : sink_(sink), context_(ZSTD_createCCtx_advanced(memory_of_cpp())) {
  PERDURE_ASSERT(context_ != nullptr);
}

void FrameWriter::begin(std::uint64_t checksum, std::uint64_t offset) {
  previous_ = checksum;
  offset_ = offset;
}

Status FrameWriter::compress(std::span<const std::byte> raw, std::vector<std::byte>& to) {
  to.resize(ZSTD_compressBound(raw.size()));
  const std::size_t bytes = ZSTD_compressCCtx(context_.get(), to.data(), to.size(), raw.data(),
                                              raw.size(), compression_level);
  if (ZSTD_isError(bytes) != 0) {
    return Status(Code::io_error, sink_.name(), ": zstd: ", ZSTD_getErrorName(bytes));
  }
  to.resize(bytes);
  return Status::success();
}

Status FrameWriter::write(FrameKind kind, std::span<const std::byte> raw) {
  std::vector<std::byte>& compressed = narrow_.compressed;
  PERDURE_TRY(compress(raw, compressed));
  const bool pays = compressed.size() < raw.size();  // an equal size says: as it is
  return write_stored(kind, pays ? compressed : raw, raw.size(), 0, 0);
}

namespace {

void make_payload(std::span<const Record> records, Widths widths,
                  std::span<const std::byte> page_numbers, std::vector<std::byte>& to) {
  to.clear();
  encode_records(records, widths, to);
  to.insert(to.end(), page_numbers.begin(), page_numbers.end());
}

}  // namespace

// The way that is smaller and faster to read.
Status FrameWriter::choose_way(std::span<const Record> records,
                               std::span<const std::byte> page_numbers) {
  make_payload(records, Widths::bits, page_numbers, narrow_.raw);
  make_payload(records, Widths::bytes, page_numbers, wide_.raw);
  PERDURE_TRY(compress(narrow_.raw, narrow_.compressed));
  PERDURE_TRY(compress(wide_.raw, wide_.compressed));
  // Decompressing eight bytes counts as much as storing one.
  const std::size_t as_it_is = narrow_.raw.size();
  const std::size_t by_bits = narrow_.compressed.size() + narrow_.raw.size() / 8;
  const std::size_t by_bytes = wide_.compressed.size() + wide_.raw.size() / 8;
  way_ = as_it_is <= std::min(by_bits, by_bytes) ? Way::as_it_is
         : by_bits <= by_bytes                   ? Way::bits
                                                 : Way::bytes;
  return Status::success();
}

Status FrameWriter::write_records(std::span<const Record> records,
                                  std::span<const std::byte> page_numbers,
                                  std::uint32_t new_pages) {
  const bool is_trial = since_trial_ == 0;
  since_trial_ = (since_trial_ + 1) % trial_period;
  if (is_trial) PERDURE_TRY(choose_way(records, page_numbers));
  Payload& payload = way_ == Way::bytes ? wide_ : narrow_;
  if (!is_trial) {
    make_payload(records, way_ == Way::bytes ? Widths::bytes : Widths::bits, page_numbers,
                 payload.raw);
    if (way_ != Way::as_it_is) PERDURE_TRY(compress(payload.raw, payload.compressed));
  }
  const bool pays = way_ != Way::as_it_is && payload.compressed.size() < payload.raw.size();
  return write_stored(FrameKind::records, pays ? payload.compressed : payload.raw,
                      payload.raw.size(), static_cast<std::uint32_t>(records.size()), new_pages);
}

Status FrameWriter::write_stored(FrameKind kind, std::span<const std::byte> stored,
                                 std::size_t raw_bytes, std::uint32_t records,
                                 std::uint32_t new_pages) {
  FrameHeaderFormat header = {};
  header.magic = frame_magic;
  header.kind = static_cast<std::uint32_t>(kind);
  header.sequence = sequence_++;
  header.previous = previous_;
  header.stored_bytes = static_cast<std::uint32_t>(stored.size());
  header.raw_bytes = static_cast<std::uint32_t>(raw_bytes);
  header.records = records;
  header.new_pages = new_pages;
  header.checksum = previous_ = frame_checksum(header, stored);
  offset_ += sizeof header + stored.size();
  PERDURE_TRY(sink_.write(std::as_bytes(std::span(&header, 1))));
  return sink_.write(stored);
}

FrameReader::FrameReader(ByteSource& source) : source_(source), context_(ZSTD_createDCtx()) {
  PERDURE_ASSERT(context_ != nullptr);
}

void FrameReader::begin(std::uint64_t checksum, std::uint64_t offset) {
  previous_ = checksum;
  sequence_ = 0;
  next_offset_ = offset;
}

Status FrameReader::damaged(const std::string& what) const {
  const std::uint64_t frame = sequence_ == 0 ? 0 : sequence_ - 1;
  return Status(Code::damaged, source_.name(), ": frame ", frame, " of the trace ", what,
                "; record it again, or copy it again");
}

Status FrameReader::read_header() {
  ++sequence_;
  PERDURE_TRY_ASSIGN(auto count, source_.read(std::as_writable_bytes(std::span(&header_, 1))));
  if (count != sizeof header_) {
    return damaged("is missing: the trace is truncated, its recording did not end or was cut off");
  }
  return header_.magic == frame_magic ? Status::success() : damaged("does not begin as a frame");
}

Status FrameReader::check_order() const {
  if (header_.sequence != sequence_ - 1) {
    return damaged("has number " + std::to_string(header_.sequence) +
                   ": frames are missing or in another order");
  }
  if (header_.previous != previous_) {
    return damaged("does not follow the one before: it belongs to another trace");
  }
  return Status::success();
}

Status FrameReader::check_sizes(std::uint64_t pages_so_far) const {
  const bool sensible = header_.kind >= 1 && header_.kind <= 4 &&
                        header_.records <= frame_records_max &&
                        header_.new_pages <= header_.records &&
                        header_.raw_bytes <= raw_bytes_max(header_, pages_so_far) &&
                        header_.stored_bytes <= ZSTD_compressBound(header_.raw_bytes);
  return sensible ? Status::success() : damaged("has sizes that can't be");
}

// In steps, so that a length that is wrong takes no more memory than there are bytes.
Status FrameReader::read_stored() {
  stored_.clear();
  while (stored_.size() < header_.stored_bytes) {
    const std::size_t begin = stored_.size();
    const std::size_t wanted = std::min<std::size_t>(header_.stored_bytes - begin, read_step);
    stored_.resize(begin + wanted);
    PERDURE_TRY_ASSIGN(auto count, source_.read(std::span(stored_).subspan(begin)));
    if (count != wanted) {
      return damaged("ends early: the trace is truncated, its recording was cut off");
    }
  }
  if (frame_checksum(header_, stored_) != header_.checksum) {
    return damaged("is corrupt: its checksum is wrong");
  }
  return Status::success();
}

Status FrameReader::decompress() {
  if (header_.stored_bytes == header_.raw_bytes) {  // as it is
    stored_.resize(header_.stored_bytes + decode_spare_bytes);
    raw_.swap(stored_);
    return Status::success();
  }
  // Before memory is taken for it: zstd's own header must say the same.
  if (ZSTD_getFrameContentSize(stored_.data(), stored_.size()) != header_.raw_bytes) {
    return damaged("can't be decompressed");
  }
  // Decoding reads beyond the end of a payload (record_codec.hpp).
  const std::size_t wanted = header_.raw_bytes + decode_spare_bytes;
  if (raw_.size() < wanted) raw_.resize(wanted);
  const std::size_t bytes = ZSTD_decompressDCtx(context_.get(), raw_.data(), header_.raw_bytes,
                                                stored_.data(), stored_.size());
  if (ZSTD_isError(bytes) != 0 || bytes != header_.raw_bytes) {
    return damaged("can't be decompressed");
  }
  return Status::success();
}

Status FrameReader::read(std::uint32_t pages_so_far) {
  PERDURE_TRY(read_header());
  PERDURE_TRY(check_order());
  PERDURE_TRY(check_sizes(std::uint64_t{pages_so_far}));
  PERDURE_TRY(read_stored());
  previous_ = header_.checksum;
  offset_ = next_offset_;
  next_offset_ += sizeof header_ + header_.stored_bytes;
  return decompress();
}

Status FrameReader::read_footer() {
  PERDURE_TRY(read_header());
  if (kind() != FrameKind::footer) return damaged("is not the footer, to which the trailer leads");
  PERDURE_TRY(check_sizes(trace_pages_max));
  PERDURE_TRY(read_stored());
  return decompress();
}

}  // namespace perdure::trace
