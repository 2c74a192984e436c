// SPDX-License-Identifier: BSD-3-Clause
//
// Frames of a trace: compressed, numbered, and each bound to the one before by its checksum.
//
// Threads: one. Failure of FrameReader: Code::damaged, with the number of the frame.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "trace/byte_stream.hpp"
#include "trace/record.hpp"
#include "trace/trace_format.hpp"

namespace perdure::trace {

std::uint64_t frame_checksum(const FrameHeaderFormat& header, std::span<const std::byte> stored);

class FrameWriter {
 public:
  explicit FrameWriter(ByteSink& sink);
  // `checksum` is that of the trace's header, after which the frames begin, at `offset`.
  void begin(std::uint64_t checksum, std::uint64_t offset);
  Status write(FrameKind kind, std::span<const std::byte> raw);
  // The numbers of pages that are new follow the records. How they are stored is found out by
  // trying all ways with one frame of `trial_period`, so that the others are compressed at most
  // once.
  Status write_records(std::span<const Record> records, std::span<const std::byte> page_numbers,
                       std::uint32_t new_pages);
  static constexpr std::uint32_t trial_period = 16;
  std::uint64_t checksum() const { return previous_; }  // of the last frame
  std::uint64_t offset() const { return offset_; }      // of the next one

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  enum class Way { as_it_is, bits, bytes };
  // A payload, and what it is stored as.
  struct Payload {
    std::vector<std::byte> raw;
    std::vector<std::byte> compressed;
  };
  Status choose_way(std::span<const Record> records, std::span<const std::byte> page_numbers);
  Status compress(std::span<const std::byte> raw, std::vector<std::byte>& to);
  Status write_stored(FrameKind kind, std::span<const std::byte> stored, std::size_t raw_bytes,
                      std::uint32_t records, std::uint32_t new_pages);

  ByteSink& sink_;
  std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
  Payload narrow_;
  Payload wide_;
  Way way_ = Way::as_it_is;
  std::uint32_t since_trial_ = 0;
  std::uint64_t previous_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t offset_ = 0;
};

class FrameReader {
 public:
  explicit FrameReader(ByteSource& source);
  void begin(std::uint64_t checksum, std::uint64_t offset);
  // The next frame; its payload has decode_spare_bytes after it.
  Status read(std::uint32_t pages_so_far);
  // The footer alone: what is before it is not looked at.
  Status read_footer();

  const FrameHeaderFormat& header() const { return header_; }
  std::uint64_t offset() const { return offset_; }  // of this frame
  FrameKind kind() const { return static_cast<FrameKind>(header_.kind); }
  std::span<const std::byte> raw() const { return {raw_.data(), header_.raw_bytes}; }
  Status damaged(const std::string& what) const;  // names the trace and the frame

 private:
  struct FreeContext {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  Status read_header();
  Status check_order() const;
  Status check_sizes(std::uint64_t pages_so_far) const;
  Status read_stored();
  Status decompress();

  ByteSource& source_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  FrameHeaderFormat header_ = {};
  std::vector<std::byte> stored_;
  std::vector<std::byte> raw_;
  std::uint64_t previous_ = 0;
  std::uint64_t sequence_ = 0;  // of the next frame
  std::uint64_t offset_ = 0;
  std::uint64_t next_offset_ = 0;
};

}  // namespace perdure::trace
