// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes of a trace (docs/format.md): a header followed by the command, frames, a trailer.
//
// Frames are numbered and each names the checksum of what comes before it, so that a frame that is
// missing, repeated, exchanged, or of another trace is found. The last frame is the footer; the
// trailer leads to it where one can seek. Little-endian. The payload of each frame is one zstd
// frame, or stored as it is where that would not make it smaller.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure::trace {

inline constexpr std::uint64_t trace_magic = 0x4543415254524450;    // "PDRTRACE"
inline constexpr std::uint32_t frame_magic = 0x4d415246;            // "FRAM"
inline constexpr std::uint64_t trailer_magic = 0x444e454352544450;  // "PDTRCEND"
inline constexpr std::uint32_t trace_format_version = 1;

inline constexpr std::uint32_t command_bytes_max = 65536;
inline constexpr std::uint32_t region_bytes_max = 255;
inline constexpr std::uint32_t frame_records_max = 16384;
inline constexpr std::uint32_t trace_pages_max = 0xfffffff0;
inline constexpr std::uint32_t streams_max = 65536;

enum class FrameKind : std::uint32_t { records = 1, region_begin = 2, region_end = 3, footer = 4 };

struct TraceHeaderFormat {
  std::uint64_t magic;
  std::uint32_t format_version;
  std::uint32_t command_bytes;
  std::uint32_t page_bytes;
  std::uint32_t line_bytes;
  std::uint64_t cache_bytes;
  std::uint32_t cache_ways;
  std::uint32_t mode;
  std::uint32_t floor_pages;
  std::uint32_t rank;
  std::uint32_t ranks;
  std::uint32_t flags;
  std::uint64_t created_ns;
  std::uint8_t reserved[24];
  std::uint64_t checksum;
};
static_assert(sizeof(TraceHeaderFormat) == 96);
static_assert(offsetof(TraceHeaderFormat, checksum) == 88);

struct FrameHeaderFormat {
  std::uint32_t magic;
  std::uint32_t kind;
  std::uint64_t sequence;
  std::uint64_t previous;
  std::uint32_t stored_bytes;
  std::uint32_t raw_bytes;
  std::uint32_t records;
  std::uint32_t new_pages;
  std::uint64_t checksum;
};
static_assert(sizeof(FrameHeaderFormat) == 48);
static_assert(offsetof(FrameHeaderFormat, checksum) == 40);

struct FooterFormat {
  std::uint64_t records;
  std::uint64_t reads;
  std::uint64_t writes;
  std::uint64_t program_accesses;
  std::uint64_t elapsed_ns;
  std::uint64_t compute_ns;
  std::uint32_t pages;
  std::uint32_t streams;
};
static_assert(sizeof(FooterFormat) == 56);

struct TrailerFormat {
  std::uint64_t footer_offset;
  std::uint64_t checksum;
  std::uint64_t magic;
};
static_assert(sizeof(TrailerFormat) == 24);

}  // namespace perdure::trace
