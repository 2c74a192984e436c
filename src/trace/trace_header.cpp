// SPDX-License-Identifier: BSD-3-Clause
#include "trace/trace_header.hpp"

#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/checksum.hpp"
#include "trace/cache_filter.hpp"
#include "trace/trace_format.hpp"

namespace perdure::trace {
namespace {

Status damaged(const ByteSource& source, const std::string& what) {
  return Status(Code::damaged, source.name(), ": ", what);
}

// Says which other format it looks like.
Status foreign(const ByteSource& source, std::span<const std::byte> begin) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  std::string hint = "is no trace of Perdure";
  if (text.starts_with("==") || text.starts_with("I  ") || text.starts_with(" L ") ||
      text.starts_with(" S ") || text.starts_with(" M ")) {
    hint += "; it looks like text of Valgrind's lackey, which can be imported (lackey)";
  } else if (text.starts_with("0x")) {
    hint += "; it looks like a text trace, which can be imported (dramsim3, ramulator)";
  } else if (text.starts_with("LD ") || text.starts_with("ST ")) {
    hint += "; it looks like a trace of Ramulator, which can be imported (ramulator)";
  } else if (text.size() > 2 && text[0] >= '0' && text[0] <= '4' && text[1] == ' ') {
    hint += "; it looks like a trace of Dinero, which can be imported (din)";
  } else if (text.starts_with("\x28\xb5\x2f\xfd") || text.starts_with("\x1f\x8b")) {
    hint += "; it is compressed, and must be unpacked first";
  }
  return Status(Code::foreign, source.name(), ": ", hint);
}

bool is_sensible(const Header& header) {
  const std::uint32_t page = header.page_bytes;
  return std::has_single_bit(page) && std::has_single_bit(header.cache.line_bytes) &&
         header.cache.line_bytes >= 8 && page >= header.cache.line_bytes && page <= 1U << 30U &&
         header.rank < header.ranks &&
         (header.mode == FilterMode::none || header.mode == FilterMode::paper ||
          header.mode == FilterMode::modern) &&
         (header.mode == FilterMode::none || check_shape(header.cache).ok());
}

Header header_of(const TraceHeaderFormat& format) {
  Header header;
  header.page_bytes = format.page_bytes;
  header.mode = static_cast<FilterMode>(format.mode);
  header.cache = {format.cache_bytes, format.line_bytes, format.cache_ways};
  header.floor_pages = format.floor_pages;
  header.rank = format.rank;
  header.ranks = format.ranks;
  header.created_ns = format.created_ns;
  return header;
}

}  // namespace

Result<ReadHeader> read_header(ByteSource& source) {
  TraceHeaderFormat format = {};
  const auto bytes = std::as_writable_bytes(std::span(&format, 1));
  auto count = source.read(bytes);
  if (!count.ok()) return count.status();
  if (count.value() == 0) {
    return damaged(source, "the trace is empty: nothing was recorded, or the disk was full");
  }
  if (count.value() < sizeof format.magic || format.magic != trace_magic) {
    return foreign(source, bytes.first(count.value()));
  }
  if (count.value() < sizeof format) return damaged(source, "the trace is truncated in its header");
  if (format.format_version > trace_format_version) {
    return newer_format(source.name(), format.format_version, trace_format_version);
  }
  if (format.command_bytes > command_bytes_max) {
    return damaged(source, "the header of the trace is corrupt: its command is too long");
  }
  ReadHeader read = {header_of(format), format.checksum, sizeof format + format.command_bytes};
  read.header.command.resize(format.command_bytes);
  count = source.read(std::as_writable_bytes(std::span(read.header.command)));
  if (!count.ok()) return count.status();
  if (count.value() != format.command_bytes) {
    return damaged(source, "the trace is truncated in its header");
  }
  const std::uint64_t seed = crc64(&format, offsetof(TraceHeaderFormat, checksum));
  if (crc64(read.header.command.data(), format.command_bytes, seed) != format.checksum) {
    return damaged(source, "the header of the trace is corrupt: its checksum is wrong");
  }
  if (format.format_version == 0 || format.flags != 0 || !is_sensible(read.header)) {
    return damaged(source, "the header of the trace has values that can't be");
  }
  return read;
}

}  // namespace perdure::trace
