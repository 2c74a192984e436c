// SPDX-License-Identifier: BSD-3-Clause
//
// Box cells against a plain count, and stored arrays against their bytes.
#include "pool/box_cells.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "base/checksum.hpp"
#include "base/files.hpp"
#include "pool/block_checksum.hpp"
#include "pool/stored_array.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

using Random = std::mt19937_64;
using Cell = std::vector<std::uint64_t>;

CellBox random_box(Random& random, std::size_t dimensions) {
  CellBox box;
  for (std::size_t i = 0; i < dimensions; ++i) {
    box.first.push_back(random() % 5);
    box.extents.push_back(random() % 5);
  }
  return box;
}

// In row-major order.
std::vector<Cell> cells_in(const CellBox& box) {
  std::vector<Cell> cells;
  for (std::uint64_t i = 0; i < cells_of(box); ++i) {
    Cell cell(box.first.size());
    std::uint64_t rest = i;
    for (std::size_t d = cell.size(); d-- > 0;) {
      cell[d] = box.first[d] + rest % box.extents[d];
      rest /= box.extents[d];
    }
    cells.push_back(cell);
  }
  return cells;
}

TEST(BoxCells, runs_visit_each_shared_cell_once_and_are_where_both_boxes_have_it) {
  Random random(test_seed());
  for (int round = 0; round < 4000; ++round) {
    const std::size_t dimensions = 1 + random() % 4;
    const CellBox from = random_box(random, dimensions);
    const CellBox to = random_box(random, dimensions);
    const auto its = cells_in(from);
    const auto ours = cells_in(to);
    std::set<Cell> visited;
    CellRuns runs(from, to);
    std::uint64_t last = 0;
    while (const auto run = runs.next()) {
      ASSERT_GE(run->from, last);
      last = run->from + run->count;
      for (std::uint64_t i = 0; i < run->count; ++i) {
        ASSERT_EQ(its.at(run->from + i), ours.at(run->to + i));
        ASSERT_TRUE(visited.insert(its[run->from + i]).second);
      }
    }
    const auto shared = std::ranges::count_if(
        its, [&](const Cell& cell) { return std::ranges::find(ours, cell) != ours.end(); });
    ASSERT_EQ(visited.size(), static_cast<std::size_t>(shared));
  }
}

TEST(BoxCells, uncovered_cells_are_those_that_no_other_box_has) {
  Random random(test_seed());
  for (int round = 0; round < 2000; ++round) {
    const std::size_t dimensions = 1 + random() % 3;
    const CellBox box = random_box(random, dimensions);
    std::vector<CellBox> others;
    std::set<Cell> covered;
    for (std::uint64_t i = random() % 6; i > 0; --i) {
      others.push_back(random_box(random, dimensions));
      for (const Cell& cell : cells_in(others.back())) covered.insert(cell);
    }
    const auto cells = cells_in(box);
    const auto missing =
        std::ranges::count_if(cells, [&](const Cell& cell) { return !covered.contains(cell); });
    ASSERT_EQ(uncovered_cells(box, others), static_cast<std::uint64_t>(missing));
  }
}

constexpr std::uint64_t block = 1024;

// A file with a table of checksums at 64, and the array after it.
struct Stored {
  explicit Stored(std::uint64_t size) : bytes(size) {
    Random random(test_seed());
    for (std::byte& each : bytes) each = static_cast<std::byte>(random());
    entry.name = "u";
    entry.shape.extents = {size};
    entry.size_bytes = size;
    entry.checksum = DataChecksum::crc64;
    entry.table_first_offset = 64;
    entry.first_offset = 8192;
    std::vector<std::uint64_t> table;
    for (std::uint64_t at = 0; at < size; at += block) {
      table.push_back(
          block_checksum(entry.checksum, block, &bytes[at], std::min(block, size - at)));
    }
    entry.table_checksum = crc64(table.data(), 8 * table.size());
    std::string file(entry.first_offset + size, '\0');
    std::memcpy(file.data() + 64, table.data(), 8 * table.size());
    std::memcpy(file.data() + entry.first_offset, bytes.data(), size);
    perdure_test::write_file(path, file);
  }
  Result<StoredArray> open() const {
    return StoredArray::open(open_input(path).take(), path, entry, block);
  }

  perdure_test::TemporaryDirectory directory;
  std::string path = directory / "file";
  std::vector<std::byte> bytes;
  ArrayEntry entry;
};

TEST(StoredArray, reads_in_any_order_give_the_bytes) {
  const Stored stored(700'123);
  Random random(test_seed());
  auto array = stored.open();
  ASSERT_TRUE(array.ok()) << array.status().message();
  std::uint64_t at = 0;
  for (int round = 0; round < 3000; ++round) {
    if (random() % 4 == 0) at = random() % stored.bytes.size();
    const std::uint64_t rest = stored.bytes.size() - at;
    const std::uint64_t count = std::min(rest, random() % (random() % 20 == 0 ? 500'000 : 3000));
    std::vector<std::byte> got(count);
    ASSERT_TRUE(array.value().read(at, count, got.data()).ok());
    ASSERT_TRUE(std::equal(got.begin(), got.end(), stored.bytes.begin() + static_cast<long>(at)));
    at = (at + count + random() % 2000) % stored.bytes.size();
  }
}

TEST(StoredArray, a_changed_byte_is_damage_of_its_block_and_of_no_other) {
  Stored stored(20'000);
  std::string file = perdure_test::read_file(stored.path);
  file[stored.entry.first_offset + 5 * block + 17] ^= 1;
  perdure_test::write_file(stored.path, file);
  auto array = stored.open().take();
  std::vector<std::byte> got(20'000);
  EXPECT_TRUE(array.read(0, block, got.data()).ok());
  const Status damaged = array.read(5 * block + 100, 10, got.data());
  EXPECT_EQ(damaged.code(), Code::damaged);
  EXPECT_NE(damaged.message().find("bytes 5120 to 6144"), std::string::npos) << damaged.message();
  EXPECT_TRUE(array.read(6 * block, block, got.data()).ok());
  EXPECT_EQ(array.read(5 * block, 1, got.data()).code(), Code::damaged);
}

}  // namespace
}  // namespace perdure
