#include "trace/frame.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

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

FrameWriter::FrameWriter(ByteSink& sink) : sink_(sink), context_(ZSTD_createCCtx()) {
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
    return {Code::io_error, sink_.name() + ": zstd: " + ZSTD_getErrorName(bytes)};
  }
  to.resize(bytes);
  return Status::success();
}

Status FrameWriter::write(FrameKind kind, std::span<const std::byte> raw) {
  PERDURE_TRY(compress(raw, compressed_));
  const bool pays = compressed_.size() < raw.size();  // an equal size says: as it is
  return write_stored(kind, pays ? compressed_ : raw, raw.size(), 0, 0);
}

Status FrameWriter::write_records(std::span<const std::byte> narrow,
                                  std::span<const std::byte> wide, std::uint32_t records,
                                  std::uint32_t new_pages) {
  PERDURE_TRY(compress(narrow, compressed_));
  PERDURE_TRY(compress(wide, compressed_wide_));
  // Decompressing eight bytes counts as much as storing one.
  const std::size_t as_it_is = narrow.size();
  const std::size_t by_bits = compressed_.size() + narrow.size() / 8;
  const std::size_t by_bytes = compressed_wide_.size() + wide.size() / 8;
  constexpr FrameKind kind = FrameKind::records;
  if (as_it_is <= std::min(by_bits, by_bytes)) {
    return write_stored(kind, narrow, narrow.size(), records, new_pages);
  }
  if (by_bits <= by_bytes) {
    return write_stored(kind, compressed_, narrow.size(), records, new_pages);
  }
  return write_stored(kind, compressed_wide_, wide.size(), records, new_pages);
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
  return {Code::damaged, source_.name() + ": frame " + std::to_string(frame) + " of the trace " +
                             what + "; record it again, or copy it again"};
}

Status FrameReader::read_header() {
  ++sequence_;
  auto count = source_.read(std::as_writable_bytes(std::span(&header_, 1)));
  if (!count.ok()) return count.status();
  if (count.value() != sizeof header_) {
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
    auto count = source_.read(std::span(stored_).subspan(begin));
    if (!count.ok()) return count.status();
    if (count.value() != wanted) {
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
  // Decoding reads behind the end of a payload (record_codec.hpp).
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
