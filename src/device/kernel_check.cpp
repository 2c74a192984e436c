// SPDX-License-Identifier: BSD-3-Clause
#include "device/kernel_check.hpp"

#include <algorithm>
#include <vector>

#include "base/data_checksum.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t blocks = 2;
constexpr std::uint64_t block_bytes = Accelerator::bytes_of(Accelerator::Unit::block);
constexpr std::uint64_t page_bytes = Accelerator::bytes_of(Accelerator::Unit::page);
constexpr std::uint64_t data_bytes = blocks * block_bytes;
constexpr std::uint64_t pages = data_bytes / page_bytes;
constexpr std::uint64_t table_bytes = 8 * pages;
constexpr std::ptrdiff_t same = 5;  // the page that is not to be listed

std::vector<std::byte> sample() {
  std::vector<std::byte> bytes(data_bytes);
  std::uint64_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56U);
  }
  return bytes;
}

std::vector<std::uint64_t> sums_of(const std::vector<std::byte>& bytes, std::uint64_t unit_bytes) {
  std::vector<std::uint64_t> sums(bytes.size() / unit_bytes);
  for (std::uint64_t i = 0; i < sums.size(); ++i) {
    sums[i] = data_checksum(DataChecksum::xxh3, bytes.data() + i * unit_bytes, unit_bytes);
  }
  return sums;
}

template <typename T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// What is transferred from and to; it stays until all is done.
struct HostSide {
  std::vector<std::byte> data = sample();
  std::vector<std::uint64_t> page_sums = sums_of(data, page_bytes);
  std::vector<std::uint64_t> table_before = std::vector<std::uint64_t>(pages);
  std::vector<std::uint64_t> seen_block_sums = std::vector<std::uint64_t>(blocks);
  std::vector<std::uint64_t> seen_page_sums = std::vector<std::uint64_t>(pages);
  std::vector<std::uint64_t> seen_table = std::vector<std::uint64_t>(pages);
  std::uint32_t seen_count = 0;
  std::vector<std::byte> seen_data = std::vector<std::byte>(data_bytes);
};

Status run_all(Accelerator& accelerator, DeviceAddress memory, HostSide& host) {
  const DeviceAddress stored = memory + data_bytes;
  const DeviceAddress block_sums = stored + data_bytes;
  const ChangeTables tables{block_sums + table_bytes, block_sums + 2 * table_bytes,
                            block_sums + 3 * table_bytes, block_sums + 3 * table_bytes + 4 * pages};
  host.table_before[same] = host.page_sums[same];
  PERDURE_TRY(accelerator.clear(stored, data_bytes + 2 * table_bytes));
  PERDURE_TRY(accelerator.copy_from_host(memory, host.data.data(), data_bytes));
  PERDURE_TRY(accelerator.copy_from_host(tables.table, bytes_of(host.table_before), table_bytes));
  PERDURE_TRY(accelerator.sum(Accelerator::Unit::block, memory, block_sums, blocks));
  PERDURE_TRY(accelerator.sum(Accelerator::Unit::page, memory, tables.sums, pages));
  PERDURE_TRY(accelerator.list_changed(tables, pages));
  PERDURE_TRY(
      accelerator.store_listed(tables, memory, reinterpret_cast<std::byte*>(stored), page_bytes));
  PERDURE_TRY(accelerator.copy_to_host(bytes_of(host.seen_block_sums), block_sums, 8 * blocks));
  PERDURE_TRY(accelerator.copy_to_host(bytes_of(host.seen_page_sums), tables.sums, table_bytes));
  PERDURE_TRY(accelerator.copy_to_host(bytes_of(host.seen_table), tables.table, table_bytes));
  PERDURE_TRY(accelerator.copy_to_host(reinterpret_cast<std::byte*>(&host.seen_count), tables.count,
                                       sizeof host.seen_count));
  PERDURE_TRY(accelerator.copy_to_host(host.seen_data.data(), stored, data_bytes));
  return accelerator.finish();
}

}  // namespace

Result<bool> kernels_are_right(Accelerator& accelerator) {
  HostSide host;
  PERDURE_TRY_ASSIGN(
      const AcceleratorMemory memory,
      AcceleratorMemory::make(accelerator, 2 * data_bytes + 3 * table_bytes + 4 * pages + 4));
  const Status run = run_all(accelerator, memory.at(), host);
  if (!run.ok()) (void)accelerator.finish();
  PERDURE_TRY(run);
  std::vector<std::byte> expected = host.data;
  const auto left_out = expected.begin() + same * page_bytes;
  std::fill(left_out, left_out + page_bytes, std::byte{0});
  return host.seen_block_sums == sums_of(host.data, block_bytes) &&
         host.seen_page_sums == host.page_sums && host.seen_table == host.page_sums &&
         host.seen_count == pages - 1 && host.seen_data == expected;
}

}  // namespace perdure
