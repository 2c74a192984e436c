// SPDX-License-Identifier: BSD-3-Clause
#include "trace/import.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "trace/cache_filter.hpp"
#include "trace/csv_columns.hpp"

namespace perdure::trace {
namespace {

constexpr std::array<std::pair<std::string_view, ImportFormat>, 6> formats = {{
    {"lackey", ImportFormat::lackey},
    {"din", ImportFormat::din},
    {"dramsim3", ImportFormat::dramsim3},
    {"ramulator", ImportFormat::ramulator},
    {"oracle_general", ImportFormat::oracle_general},
    {"csv", ImportFormat::csv},
}};
constexpr std::size_t chunk_bytes = std::size_t{1} << 18U;
constexpr std::size_t text_line_bytes_max = 4096;
constexpr std::uint64_t access_bytes_max = std::uint64_t{1} << 20U;
constexpr std::uint64_t csv_bytes_max = std::uint64_t{1} << 26U;
constexpr std::size_t shown_bytes = 60;

// What compressors begin their files with.
constexpr std::array<std::pair<std::string_view, const char*>, 4> compressors = {{
    {"\x1f\x8b\x08", "gzip -dc"},
    {"\x28\xb5\x2f\xfd", "zstd -dc"},
    {std::string_view("\xfd"
                      "7zXZ\0",
                      6),
     "xz -dc"},
    {"BZh", "bzip2 -dc"},
}};

// Some of the text as a person may see it: what is not printable ASCII is escaped.
std::string printable(std::string_view text) {
  std::string shown;
  for (const char letter : text.substr(0, shown_bytes)) {
    if (letter >= ' ' && letter <= '~') {
      shown += letter;
      continue;
    }
    char escaped[5];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(letter));
    shown += escaped;
  }
  return shown;
}

// Remembers what its source begins with.
class NotingSource final : public ByteSource {
 public:
  explicit NotingSource(ByteSource& source) : source_(source) {}
  const std::string& name() const override { return source_.name(); }
  std::optional<std::uint64_t> size_bytes() const override { return std::nullopt; }
  Status seek(std::uint64_t offset) override { return source_.seek(offset); }
  Result<std::size_t> read(std::span<std::byte> to) override {
    PERDURE_TRY_ASSIGN(const auto count, source_.read(to));
    if (first_.empty())
      first_.assign(reinterpret_cast<const char*>(to.data()), std::min<std::size_t>(count, 8));
    return count;
  }
  const std::string& first() const { return first_; }

 private:
  ByteSource& source_;
  std::string first_;
};

struct Access {
  std::uint64_t address = 0;
  std::uint64_t bytes = 1;
  bool reads = false;
  bool writes = false;
};

// What a line of text is.
enum class Line { access, left_out, nothing, wrong };

// Blanks and tabs separate words.
std::string_view take_word(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  const std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

bool parse(std::string_view text, int base, std::uint64_t& value) {
  const auto number = number_in<std::uint64_t>(text, base);
  value = number.value_or(0);
  return number.has_value();
}

bool parse_address(std::string_view text, std::uint64_t& value) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return parse(text, 16, value);
}

Line lackey_line(std::string_view line, Access& access) {
  if (line.starts_with("==") || line.starts_with("--")) return Line::nothing;  // of Valgrind itself
  const std::string_view kind = take_word(line);
  const std::string_view place = take_word(line);
  const std::size_t comma = place.find(',');
  if (comma == place.npos || !take_word(line).empty()) return Line::wrong;
  if (!parse_address(place.substr(0, comma), access.address) ||
      !parse(place.substr(comma + 1), 10, access.bytes)) {
    return Line::wrong;
  }
  if (kind == "I") return Line::left_out;
  access.reads = kind == "L" || kind == "M";
  access.writes = kind == "S" || kind == "M";
  return access.reads || access.writes ? Line::access : Line::wrong;
}

// Words after the address are comments there.
Line din_line(std::string_view line, Access& access) {
  const std::string_view label = take_word(line);
  if (!parse_address(take_word(line), access.address)) return Line::wrong;
  access.reads = label == "0";
  access.writes = label == "1";
  if (label == "2") return Line::left_out;
  return access.reads || access.writes ? Line::access : Line::wrong;
}

Line dramsim3_line(std::string_view line, Access& access) {
  const std::string_view address = take_word(line);
  const std::string_view kind = take_word(line);
  std::uint64_t cycle = 0;
  if (!address.starts_with("0x") || !parse_address(address, access.address)) return Line::wrong;
  if (!parse(take_word(line), 10, cycle) || !take_word(line).empty()) return Line::wrong;
  access.reads = kind == "READ" || kind == "read" || kind == "P_MEM_RD";
  access.writes = kind == "WRITE" || kind == "write" || kind == "P_MEM_WR";
  return access.reads || access.writes ? Line::access : Line::wrong;
}

Line ramulator_line(std::string_view line, Access& access) {
  const std::string_view first = take_word(line);
  const std::string_view second = take_word(line);
  const bool kind_first = first == "LD" || first == "ST";
  const std::string_view kind = kind_first ? first : second;
  if (!take_word(line).empty() || !parse_address(kind_first ? second : first, access.address)) {
    return Line::wrong;
  }
  access.reads = kind == "LD" || kind == "R";
  access.writes = kind == "ST" || kind == "W";
  return access.reads || access.writes ? Line::access : Line::wrong;
}

Line parse_line(ImportFormat format, std::string_view line, Access& access) {
  if (line.find_first_not_of(" \t\r") == line.npos) return Line::nothing;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with('#')) return Line::nothing;
  switch (format) {
    case ImportFormat::lackey:
      return lackey_line(line, access);
    case ImportFormat::din:
      return din_line(line, access);
    case ImportFormat::dramsim3:
      return dramsim3_line(line, access);
    case ImportFormat::ramulator:
      return ramulator_line(line, access);
    case ImportFormat::oracle_general:
    case ImportFormat::csv:
      break;
  }
  return Line::wrong;
}

// Access → cache → writer.
class Importer {
 public:
  Importer(ImportFormat format, const ByteSource& source, const Header& header, Writer& writer,
           const CsvOptions& csv)
      : format_(format),
        source_(source),
        writer_(writer),
        page_shift_(static_cast<unsigned>(std::countr_zero(header.page_bytes))),
        filter_(header.cache, is_filtered(format) ? FilterMode::none : header.mode, append, this),
        csv_(csv) {}

  // `line` without its end.
  Status take_line(std::string_view line) {
    ++lines_;
    if (format_ == ImportFormat::csv) return take_csv(line);
    Access access;
    switch (parse_line(format_, line, access)) {
      case Line::nothing:
        return Status::success();
      case Line::left_out:
        ++imported.left_out;
        return Status::success();
      case Line::access:
        return take(access, "line");
      case Line::wrong:
        break;
    }
    return not_of_format(line);
  }

  Status take(const Access& access, const char* what) {
    if (access.bytes == 0 || access.bytes > access_bytes_max ||
        access.address > ~std::uint64_t{0} - access.bytes) {
      return wrong(what, "has an access that can't be");
    }
    ++imported.requests;
    if (access.reads) filter_.access(access.address, access.bytes, false);
    if (access.writes) filter_.access(access.address, access.bytes, true);
    return writer_.status();
  }

  // A request of oracleGeneral: u32 time, u64 object, u32 bytes, i64 next request of the object,
  // counted from 0; -1, or the largest number, where there is none; packed.
  Status take_request(const std::byte* bytes) {
    std::uint32_t time = 0;
    std::uint64_t object = 0;
    std::uint32_t size = 0;
    std::int64_t next = 0;
    std::memcpy(&time, bytes, sizeof time);
    std::memcpy(&object, bytes + 4, sizeof object);
    std::memcpy(&size, bytes + 12, sizeof size);
    std::memcpy(&next, bytes + 16, sizeof next);
    ++lines_;
    if (time < time_) return wrong("request", "is earlier than the one before: no oracleGeneral");
    if (next != -1 && (next < 0 || static_cast<std::uint64_t>(next) < lines_)) {
      return wrong("request", "names as the next one of its object " + std::to_string(next) +
                                  ", which is not after it: no oracleGeneral");
    }
    time_ = time;
    ++imported.requests;
    imported.largest_bytes = std::max<std::uint64_t>(imported.largest_bytes, size);
    if (size > std::uint64_t{1} << page_shift_) ++imported.cut_requests;
    writer_.append(object, 1, 0);
    return writer_.status();
  }

  Status wrong(const char* what, const std::string& why) const {
    return Status(Code::damaged, source_.name(), ": ", what, " ", lines_, " ", why);
  }

  Imported imported;

 private:
  Status not_of_format(std::string_view line) const {
    return wrong("line", "is not of this format: " + printable(line));
  }

  Status take_header(std::string_view header) {
    auto columns = CsvColumns::of_header(header);
    if (!columns.ok()) {
      return Status(Code::damaged, source_.name(), ": ", columns.status().message());
    }
    columns_ = columns.take();
    return Status::success();
  }

  Status take_csv(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == line.npos) return Status::success();
    if (!columns_ && csv_.columns.empty()) return take_header(line);
    if (!columns_) PERDURE_TRY(take_header(csv_.columns));
    if (line.starts_with('#')) return Status::success();
    const auto request = columns_->request(line);
    if (!request) return not_of_format(line);
    const std::uint64_t unit = csv_.unit_bytes;
    if (request->bytes == 0 || request->bytes > csv_bytes_max ||
        request->address > (~std::uint64_t{0} - csv_bytes_max) / unit) {
      return wrong("line", "has an access that can't be: " + printable(line));
    }
    const std::uint64_t first = request->address * unit;
    const std::uint64_t last = (first + request->bytes - 1) >> page_shift_;
    for (std::uint64_t page = first >> page_shift_; page <= last; ++page) {
      writer_.append(page, request->is_write ? 0 : 1, request->is_write ? 1 : 0);
    }
    ++imported.requests;
    return writer_.status();
  }

  static void append(void* context, std::uint64_t address, bool is_write) {
    auto& self = *static_cast<Importer*>(context);
    self.writer_.append(address >> self.page_shift_, is_write ? 0 : 1, is_write ? 1 : 0);
  }

  ImportFormat format_;
  const ByteSource& source_;
  Writer& writer_;
  unsigned page_shift_;
  CacheFilter filter_;
  const CsvOptions& csv_;
  std::optional<CsvColumns> columns_;
  std::uint64_t lines_ = 0;
  std::uint32_t time_ = 0;
};

Status import_text(ByteSource& source, Importer& importer) {
  std::vector<char> chunk(chunk_bytes);
  std::string begun;  // of a line that goes on in the next chunk
  for (;;) {
    PERDURE_TRY_ASSIGN(auto count, source.read(std::as_writable_bytes(std::span(chunk))));
    if (count == 0) break;
    std::string_view text(chunk.data(), count);
    for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      const std::string_view line = text.substr(0, end);
      PERDURE_TRY(importer.take_line(begun.empty() ? line : begun.append(line)));
      begun.clear();
      text.remove_prefix(end + 1);
    }
    begun += text;
    if (begun.size() > text_line_bytes_max)
      return importer.wrong("after line", "comes no end of line");
  }
  return begun.empty() ? Status::success() : importer.take_line(begun);
}

Status import_requests(ByteSource& source, Importer& importer) {
  constexpr std::size_t request_bytes = 24;
  std::vector<std::byte> chunk(chunk_bytes / request_bytes * request_bytes);
  for (;;) {
    PERDURE_TRY_ASSIGN(auto count, source.read(chunk));
    if (count == 0) return Status::success();
    if (count % request_bytes != 0) {
      return importer.wrong("after request", "the file is cut off, or not of this format");
    }
    for (std::size_t at = 0; at < count; at += request_bytes) {
      PERDURE_TRY(importer.take_request(chunk.data() + at));
    }
  }
}

// A trace may begin with these bytes, but it is one then.
Status said_if_compressed(const Status& failure, const NotingSource& source) {
  for (const auto& [magic, command] : compressors) {
    if (failure.code() != Code::damaged || !source.first().starts_with(magic)) continue;
    return Status(Code::damaged, source.name(), " is compressed: ", command, " ", source.name(),
                  " | perdure trace import FORMAT - OUT");
  }
  return failure;
}

}  // namespace

Result<ImportFormat> import_format(const std::string& name) {
  for (const auto& [known_name, format] : formats) {
    if (name == known_name) return format;
  }
  return Status(Code::invalid_argument, "no format is called '", name, "'; known are ",
                listed(formats, &decltype(formats)::value_type::first));
}

bool is_filtered(ImportFormat format) {
  return format != ImportFormat::lackey && format != ImportFormat::din;
}

Result<Imported> import_accesses(ImportFormat format, ByteSource& source, const Header& header,
                                 Writer& writer, const CsvOptions& csv) {
  if (is_filtered(format) && header.mode != FilterMode::none) {
    return Status(Code::invalid_argument,
                  "this format holds misses of caches: import it with the filter 'none'");
  }
  if (csv.unit_bytes == 0) return Status(Code::invalid_argument, "a unit of 0 bytes can't be");
  PERDURE_TRY(writer.status());
  NotingSource noting(source);
  Importer importer(format, noting, header, writer, csv);
  const Status read = format == ImportFormat::oracle_general ? import_requests(noting, importer)
                                                             : import_text(noting, importer);
  if (!read.ok()) return said_if_compressed(read, noting);
  if (importer.imported.requests == 0) {
    return Status(Code::damaged, source.name(), ": it holds no data accesses");
  }
  return importer.imported;
}

}  // namespace perdure::trace
