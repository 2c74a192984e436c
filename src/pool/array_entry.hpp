// SPDX-License-Identifier: BSD-3-Clause
//
// Array entry: what a version says of one array, as a value. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/data_checksum.hpp"
#include "base/status.hpp"

namespace perdure {

class ExtentHold;  // extents.hpp

// The numbers are perdure.h's.
enum class ArrayType : std::uint32_t {
  byte = 1,
  int32 = 2,
  int64 = 3,
  float32 = 4,
  float64 = 5,
  complex128 = 6,
  uint32 = 7,
  uint64 = 8,
  boolean = 9,
  int8 = 11,
  int16 = 12,
  uint16 = 13,
  complex64 = 14,
};
enum class ArrayMode : std::uint32_t { copy = 1, twin = 2, log = 3, flush = 4 };

constexpr std::uint64_t array_bytes_max = std::uint64_t{1} << 48;

// 0: it is none of these.
std::size_t element_bytes(ArrayType type);
const char* type_name(ArrayType type);
const char* mode_name(ArrayMode mode);

struct ArrayShape {
  ArrayType type = ArrayType::byte;
  ArrayMode mode = ArrayMode::copy;
  bool checksums = true;
  std::vector<std::uint64_t> extents;

  bool operator==(const ArrayShape&) const = default;
  std::string text() const;  // "float64[100, 20] twin"
};

// Bytes of one copy, perhaps 0; an error if a shape has no or too many extents, over 2^48 bytes, or
// checksums in flush mode.
Result<std::uint64_t> checked_bytes(const ArrayShape& shape);

// The arrays of a version are distinguished by (name, part). Copies, and their tables of checksums,
// are at equal distances.
struct ArrayEntry {
  std::string name;
  std::uint32_t part = 0;
  ArrayShape shape;
  std::uint64_t size_bytes = 0;
  std::uint32_t copies = 0;        // not on the medium: 1 in flush mode, else one for each slot
                                   // and the spare one
  std::uint32_t spare_copies = 0;  // 0 or 1 (versioned_array.hpp, move_on())
  std::uint32_t copy = 0;          // that holds the version
  DataChecksum checksum = DataChecksum::crc64;  // of each block, if the shape has checksums
  std::uint64_t first_offset = 0;
  std::uint64_t stride_bytes = 0;
  std::uint64_t table_first_offset = 0;  // 0 without checksums
  std::uint64_t table_stride_bytes = 0;
  std::uint64_t table_checksum = 0;
  std::shared_ptr<ExtentHold> hold;  // not on the medium: keeps the extent in use

  std::uint64_t copy_offset(std::uint32_t index) const {
    return first_offset + index * stride_bytes;
  }
  std::uint64_t table_offset(std::uint32_t index) const {
    return table_first_offset + index * table_stride_bytes;
  }
  // The extent [first_offset, end_offset) is this array's alone.
  std::uint64_t end_offset(std::uint64_t block_bytes) const;
  // Whether it has the places of `other` in another version, and so is the same array, perhaps of
  // another size.
  bool same_places(const ArrayEntry& other) const;
};

// Whether copies of an array have lines instead of pages: they would waste most of a page, and only
// the pool stores to them. Others may be mapped.
bool is_packed(ArrayMode mode, std::uint64_t size_bytes, std::uint64_t align_bytes);

inline std::uint64_t block_count(std::uint64_t size_bytes, std::uint64_t block_bytes) {
  return (size_bytes + block_bytes - 1) / block_bytes;
}

// A name is UTF-8 of 1 to 255 bytes without NUL.
Status check_name(const std::string& name);

// The name in quotes as a person may see it: control characters are escaped.
std::string quoted(const std::string& name);

}  // namespace perdure
