#include "trace/record_codec.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace perdure::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are loaded as they stand");

// Of reads and of writes: how a number stands in the fields.
enum Amount : std::uint32_t { zero = 0, one = 1, byte = 2, word = 3 };
constexpr std::array<std::uint8_t, 4> amount_bytes = {0, 0, 1, 4};
constexpr std::array<std::uint32_t, 4> amount_mask = {0, 0, 0xff, 0xffffffff};
constexpr std::array<std::uint32_t, 4> page_mask = {0xff, 0xffff, 0xffffff, 0xffffffff};

constexpr std::uint32_t amount_of(std::uint32_t value) {
  if (value <= 1) return value;
  return value <= 0xff ? byte : word;
}

// What a control byte means.
struct Shape {
  std::uint32_t page_mask;
  std::uint32_t reads_mask;
  std::uint32_t reads_fixed;
  std::uint32_t writes_mask;
  std::uint32_t writes_fixed;
  std::uint8_t reads_at;
  std::uint8_t writes_at;
  std::uint8_t bytes;
};

constexpr std::array<Shape, 64> make_shapes() {
  std::array<Shape, 64> shapes = {};
  for (std::uint32_t control = 0; control < 64; ++control) {
    const std::uint32_t page = control & 3U, reads = control >> 2U & 3U, writes = control >> 4U;
    Shape& shape = shapes[control];
    shape.page_mask = page_mask[page];
    shape.reads_mask = amount_mask[reads];
    shape.reads_fixed = reads == one ? 1 : 0;
    shape.writes_mask = amount_mask[writes];
    shape.writes_fixed = writes == one ? 1 : 0;
    shape.reads_at = static_cast<std::uint8_t>(page + 1);
    shape.writes_at = static_cast<std::uint8_t>(shape.reads_at + amount_bytes[reads]);
    shape.bytes = static_cast<std::uint8_t>(shape.writes_at + amount_bytes[writes]);
  }
  return shapes;
}

constexpr std::array<Shape, 64> shapes = make_shapes();

std::uint32_t load(const std::byte* from) {
  std::uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::uint32_t zigzag32(std::uint32_t difference) {
  return difference << 1U ^ (0U - (difference >> 31U));
}
std::uint32_t unzigzag32(std::uint32_t coded) {
  return coded >> 1U ^ (0U - (coded & 1U));
}

std::byte* put(std::byte* to, std::uint32_t value, std::size_t bytes) {
  std::memcpy(to, &value, bytes);
  return to + bytes;
}

}  // namespace

void encode_records(std::span<const Record> records, std::vector<std::byte>& to) {
  const std::size_t begin = to.size();
  to.resize(begin + records.size() * (1 + record_bytes_max));
  std::byte* control = to.data() + begin;
  std::byte* field = control + records.size();
  std::uint32_t before = 0;
  for (const Record& record : records) {
    const std::uint32_t page = zigzag32(record.page - before);
    const auto page_bytes = page == 0 ? 1U : (static_cast<unsigned>(std::bit_width(page)) + 7) / 8;
    const std::uint32_t reads = amount_of(record.reads), writes = amount_of(record.writes);
    *control++ = static_cast<std::byte>((page_bytes - 1) | reads << 2U | writes << 4U);
    field = put(field, page, page_bytes);
    field = put(field, record.reads, amount_bytes[reads]);
    field = put(field, record.writes, amount_bytes[writes]);
    before = record.page;
  }
  to.resize(static_cast<std::size_t>(field - to.data()));
}

bool decode_records(std::span<const std::byte> from, std::uint32_t pages, std::span<Record> to,
                    Decoded& decoded) {
  if (from.size() < to.size()) return false;
  const std::byte* control = from.data();
  const std::byte* field = control + to.size();
  std::uint32_t page = 0, codes = 0;
  std::uint64_t reads = 0, writes = 0;
  bool wrong = false;
  for (Record& record : to) {
    const auto code = static_cast<std::uint32_t>(*control++);
    const Shape& shape = shapes[code & 63U];
    codes |= code;
    page += unzigzag32(load(field) & shape.page_mask);
    wrong |= page >= pages;
    const std::uint32_t r = (load(field + shape.reads_at) & shape.reads_mask) + shape.reads_fixed;
    const std::uint32_t w =
        (load(field + shape.writes_at) & shape.writes_mask) + shape.writes_fixed;
    record = {page, r, w};
    field += shape.bytes;
    reads += r;
    writes += w;
  }
  decoded = {reads, writes, static_cast<std::size_t>(field - from.data())};
  return !wrong && codes <= 63 && decoded.bytes <= from.size();
}

void put_varint(std::uint64_t value, std::vector<std::byte>& to) {
  for (; value > 0x7f; value >>= 7U) to.push_back(static_cast<std::byte>(value | 0x80U));
  to.push_back(static_cast<std::byte>(value));
}

bool take_varint(std::span<const std::byte>& from, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<std::uint64_t>(from.front());
    from = from.subspan(1);
    value |= (byte & 0x7fU) << shift;
    if (byte <= 0x7f) return shift < 63 || byte <= 1;
  }
  return false;
}

}  // namespace perdure::trace
