// SPDX-License-Identifier: BSD-3-Clause
#include "pool/copy_check.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "pmem/media_guard.hpp"
#include "pool/block_checksum.hpp"

namespace perdure {
namespace {

Status unreadable(const std::string& name, std::uint64_t byte) {
  return Status(Code::damaged, "array ", quoted(name), ": byte ", byte,
                " can't be read: the medium is damaged there, or the file was cut");
}

}  // namespace

Status block_damaged(const std::string& name, std::uint64_t begin, std::uint64_t count) {
  return Status(Code::damaged, "array ", quoted(name), ": bytes ", begin, " to ", begin + count - 1,
                " do not match their checksum; the medium was damaged");
}

Status check_readable(const Device& device, const ArrayEntry& entry) {
  const std::byte* const from = device.base() + entry.copy_offset(entry.copy);
  const auto bad = first_unreadable(from, entry.size_bytes);
  return bad ? unreadable(entry.name, *bad) : Status::success();
}

Status read_table(const Device& device, const ArrayEntry& entry, std::uint64_t block_bytes,
                  std::vector<std::uint64_t>& table) {
  table.resize(block_count(entry.size_bytes, block_bytes));
  const std::byte* on_media = device.base() + entry.table_offset(entry.copy);
  if (first_unreadable(on_media, 8 * table.size())) {
    return Status(Code::damaged, "array ", quoted(entry.name),
                  ": its table of checksums can't be read");
  }
  if (!table.empty()) std::memcpy(table.data(), on_media, 8 * table.size());
  if (crc64(table.data(), 8 * table.size()) == entry.table_checksum) return Status::success();
  return {Code::damaged, "array " + quoted(entry.name) + ": its table of checksums is damaged"};
}

Status verify_and_copy(const Device& device, const ArrayEntry& entry, std::uint64_t block_bytes,
                       std::byte* copy_to, std::vector<std::uint64_t>* table,
                       std::vector<std::uint64_t>* of_pages) {
  const std::byte* from = device.base() + entry.copy_offset(entry.copy);
  if (!entry.shape.checksums) {
    if (copy_to == nullptr) return Status::success();
    PERDURE_TRY(check_readable(device, entry));
    if (entry.size_bytes != 0) std::memcpy(copy_to, from, entry.size_bytes);
    return Status::success();
  }
  std::vector<std::uint64_t> own;
  std::vector<std::uint64_t>& expected = table == nullptr ? own : *table;
  PERDURE_TRY(read_table(device, entry, block_bytes, expected));
  for (std::uint64_t block = 0; block < expected.size(); ++block) {
    const std::uint64_t begin = block * block_bytes;
    const std::uint64_t count = std::min(block_bytes, entry.size_bytes - begin);
    if (auto bad = first_unreadable(from + begin, count)) {
      return unreadable(entry.name, begin + *bad);
    }
    std::uint64_t* const sums =
        of_pages == nullptr ? nullptr : of_pages->data() + block * pages_per_block;
    if (block_checksum(entry.checksum, block_bytes, from + begin, count, sums) != expected[block])
      return block_damaged(entry.name, begin, count);
    if (copy_to != nullptr) std::memcpy(copy_to + begin, from + begin, count);
  }
  return Status::success();
}

}  // namespace perdure
