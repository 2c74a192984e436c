// SPDX-License-Identifier: BSD-3-Clause
//
// Copy check: whether a copy of an array on the device is what its checksums say.
//
// Threads: any. Failure: Code::damaged names the array, and the byte range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pool/array_entry.hpp"

namespace perdure {

// Checks the copy that `entry` names against its checksums, block by block, and copies it to
// `copy_to` unless that is null; without checksums it only copies. `table` (may be null) receives
// the checksums, `of_pages` those of pages, if it has them.
Status verify_and_copy(const Device& device, const ArrayEntry& entry, std::uint64_t block_bytes,
                       std::byte* copy_to, std::vector<std::uint64_t>* table,
                       std::vector<std::uint64_t>* of_pages = nullptr);

// The checksums themselves, which are compared with theirs.
Status read_table(const Device& device, const ArrayEntry& entry, std::uint64_t block_bytes,
                  std::vector<std::uint64_t>& table);
// Success if every byte of the copy can be read.
Status check_readable(const Device& device, const ArrayEntry& entry);
// The sentence about a block.
Status block_damaged(const std::string& name, std::uint64_t begin, std::uint64_t count);

}  // namespace perdure
