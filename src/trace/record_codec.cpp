// SPDX-License-Identifier: BSD-3-Clause
#include "trace/record_codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "trace/decode_avx2.hpp"

namespace perdure::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "words are loaded as they stand");

// Eight numbers of w bits are w bytes: a group. A column is padded to whole groups.
constexpr std::size_t group = 8;
constexpr std::size_t chunk = 256;  // numbers that are unpacked at once; they stay in the cache
constexpr unsigned width_max = 32;

std::size_t column_bytes(std::size_t numbers, unsigned width) {
  return (numbers + group - 1) / group * width;
}

std::uint32_t zigzag32(std::uint32_t difference) {
  return difference << 1U ^ (0U - (difference >> 31U));
}
std::uint32_t unzigzag32(std::uint32_t coded) {
  return coded >> 1U ^ (0U - (coded & 1U));
}

// Appends a column, its width before it.
void pack(std::span<const std::uint32_t> numbers, Widths widths, std::vector<std::byte>& to) {
  std::uint32_t all = 0;
  for (const std::uint32_t number : numbers) all |= number;
  auto width = static_cast<unsigned>(std::bit_width(all));
  if (widths == Widths::bytes) width = (width + 7) / 8 * 8;
  to.push_back(static_cast<std::byte>(width));
  const std::size_t begin = to.size();
  const std::size_t end = begin + column_bytes(numbers.size(), width);
  to.resize(end + sizeof(std::uint32_t));  // words are stored, the last of them beyond the end
  std::byte* place = to.data() + begin;
  std::uint64_t ready = 0;
  unsigned bits = 0;
  for (const std::uint32_t number : numbers) {
    ready |= std::uint64_t{number} << bits;
    bits += width;
    if (bits < 32) continue;
    std::memcpy(place, &ready, sizeof(std::uint32_t));
    place += sizeof(std::uint32_t);
    ready >>= 32U;
    bits -= 32;
  }
  std::memcpy(place, &ready, sizeof(std::uint32_t));
  to.resize(end);
}

// The inner loop is unrolled, with all offsets and shifts known.
template <unsigned width>
void unpack(const std::byte* from, std::size_t groups, std::uint32_t* to) {
  constexpr std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  for (; groups != 0; --groups, from += width, to += group) {
#pragma GCC unroll 8
    for (unsigned i = 0; i < group; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + (width <= 8 ? 0 : i * width / 8), sizeof word);
      to[i] = static_cast<std::uint32_t>(word >> (width <= 8 ? i * width : i * width % 8) & mask);
    }
  }
}

using Unpack = void (*)(const std::byte*, std::size_t, std::uint32_t*);

template <unsigned... widths>
constexpr std::array<Unpack, sizeof...(widths)> unpack_table(
    std::integer_sequence<unsigned, widths...> /*all*/) {
  return {&unpack<widths>...};
}

constexpr auto unpack_by_width =
    unpack_table(std::make_integer_sequence<unsigned, width_max + 1>());

// Where the columns of `numbers` records begin, after the first page; the bytes of all, or 0 where
// they don't fit.
std::size_t find_columns(std::span<const std::byte> from, std::size_t numbers,
                         PackedColumns& found) {
  std::size_t at = sizeof(std::uint32_t);
  for (PackedColumn& column : found) {
    if (at >= from.size()) return 0;
    column.width = static_cast<unsigned>(from[at++]);
    if (column.width > width_max) return 0;
    column.next = from.data() + at;
    at += column_bytes(numbers, column.width);
  }
  return at <= from.size() ? at : 0;
}

using Numbers = std::array<std::uint32_t, chunk>;

// Of the first `count` numbers; it clears the others.
std::uint64_t sum(Numbers& numbers, std::size_t count) {
  for (std::size_t i = count; i < chunk; ++i) numbers[i] = 0;
  std::uint64_t sum = 0;
  for (const std::uint32_t number : numbers) sum += number;  // by vector instructions
  return sum;
}

void decode_chunk(PackedColumns& columns, std::span<Record> to, DecodingSums& sums) {
  Numbers differences, reads, writes;
  const std::array<Numbers*, 3> unpacked = {&differences, &reads, &writes};
  const std::size_t groups = (to.size() + group - 1) / group;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    PackedColumn& column = columns[i];
    unpack_by_width[column.width](column.next, groups, unpacked[i]->data());
    column.next += groups * column.width;
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    sums.page += unzigzag32(differences[i]);
    sums.page_max = std::max(sums.page_max, sums.page);
    to[i] = {sums.page, reads[i], writes[i]};
  }
  sums.reads += sum(reads, to.size());
  sums.writes += sum(writes, to.size());
}

bool decode(std::span<const std::byte> from, std::uint32_t pages, std::span<Record> to,
            Decoded& decoded, bool by_vectors) {
  PackedColumns found;
  decoded = {0, 0, find_columns(from, to.size(), found)};
  if (decoded.bytes == 0) return false;
  DecodingSums sums;
  std::memcpy(&sums.page, from.data(), sizeof sums.page);
  sums.page_max = sums.page;
  if (by_vectors && can_decode_with_avx2(found)) {
    const std::size_t groups = to.size() / group;
    decode_with_avx2(found, groups, to.data(), sums);
    to = to.subspan(groups * group);
  }
  for (; !to.empty(); to = to.subspan(std::min(chunk, to.size()))) {
    decode_chunk(found, to.first(std::min(chunk, to.size())), sums);
  }
  decoded.reads = sums.reads;
  decoded.writes = sums.writes;
  return sums.page_max < pages;
}

}  // namespace

void encode_records(std::span<const Record> records, Widths widths, std::vector<std::byte>& to) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(records.size());
  std::uint32_t before = records.empty() ? 0 : records.front().page;
  const auto first = std::as_bytes(std::span(&before, 1));
  to.insert(to.end(), first.begin(), first.end());
  for (const Record& record : records) {
    numbers.push_back(zigzag32(record.page - before));
    before = record.page;
  }
  pack(numbers, widths, to);
  for (const auto member : {&Record::reads, &Record::writes}) {
    numbers.clear();
    for (const Record& record : records) numbers.push_back(record.*member);
    pack(numbers, widths, to);
  }
}

bool decode_records(std::span<const std::byte> from, std::uint32_t pages, std::span<Record> to,
                    Decoded& decoded) {
  return decode(from, pages, to, decoded, true);
}

bool decode_records_portably(std::span<const std::byte> from, std::uint32_t pages,
                             std::span<Record> to, Decoded& decoded) {
  return decode(from, pages, to, decoded, false);
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
