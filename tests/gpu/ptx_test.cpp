// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels' text as it is committed, run instruction by instruction, against what the library
// computes on the processor.
// ctest: DEPS base LIBS perdure_ptx perdure_source_tree
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "address.hpp"
#include "base/data_checksum.hpp"
#include "ptx_run.hpp"
#include "source_tree.hpp"
#include "test_seed.hpp"

namespace fake {
namespace {

using perdure::data_checksum;
using perdure::DataChecksum;

// The address of an array is where it is; what else is accessed is an error.
class Arrays : public Memory {
 public:
  template <typename T>
  std::uint64_t add(std::vector<T>& array, bool may_store = true) {
    pieces_.push_back(
        {reinterpret_cast<std::uint64_t>(array.data()), array.size() * sizeof(T), may_store});
    return pieces_.back().begin;
  }
  std::byte* place(std::uint64_t address, std::size_t size_bytes, bool to_store) override {
    for (const auto& piece : pieces_) {
      if (address < piece.begin || address - piece.begin + size_bytes > piece.size_bytes) continue;
      return to_store && !piece.may_store ? nullptr : at_address(address);
    }
    return nullptr;
  }

 private:
  struct Piece {
    std::uint64_t begin;
    std::size_t size_bytes;
    bool may_store;
  };
  std::vector<Piece> pieces_;
};

std::string kernels_text() {
  std::ifstream file(perdure::source_file("src/device/kernels.ptx"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const PtxModule& kernels() {
  static const PtxModule module = read_ptx(kernels_text());
  return module;
}

void run(const std::string& name, std::uint32_t blocks, const std::vector<std::uint64_t>& words,
         Arrays& arrays, std::uint32_t threads = 256) {
  const PtxKernel& kernel = kernels().kernels.at(name);
  ASSERT_EQ(words.size(), kernel.parameters);
  run_kernel(kernels(), kernel, {blocks, threads, words, perdure::test_seed()}, arrays);
}

// A multiple of 16, as memory of a device is.
std::vector<std::uint64_t> random_words(std::size_t size_bytes, std::mt19937_64& random) {
  std::vector<std::uint64_t> words(size_bytes / 8);
  for (auto& word : words) word = random();
  return words;
}

void expect_sums(const std::string& kernel, std::size_t unit_bytes, std::size_t units,
                 std::uint32_t blocks) {
  std::mt19937_64 random(perdure::test_seed() + units);
  std::vector<std::uint64_t> words = random_words(units * unit_bytes, random);
  std::vector<std::uint64_t> sums(units, 0);
  Arrays arrays;
  run(kernel, blocks, {arrays.add(words, false), arrays.add(sums), units}, arrays);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < units; i++) {
    const auto* const unit = reinterpret_cast<const std::byte*>(words.data()) + i * unit_bytes;
    if (sums[i] != data_checksum(DataChecksum::xxh3, unit, unit_bytes)) wrong++;
  }
  EXPECT_EQ(wrong, 0U) << "of " << units;
}

TEST(Kernels, sums_of_ten_thousand_random_blocks_are_those_of_the_format) {
  for (int round = 0; round < 10; round++) expect_sums("perdure_block_sums", 65536, 1000, 8);
}
TEST(Kernels, sums_of_ten_thousand_random_pages_are_those_of_the_format) {
  expect_sums("perdure_page_sums", 4096, 10'000, 8);
}
TEST(Kernels, each_number_of_units_and_of_thread_blocks_gives_all_sums) {
  for (std::size_t units = 0; units < 20; units++) {
    for (const std::uint32_t blocks : {1U, 2U, 3U, 17U}) {
      expect_sums("perdure_block_sums", 65536, units, blocks);
      expect_sums("perdure_page_sums", 4096, units, blocks);
    }
  }
}

TEST(Kernels, a_unit_is_listed_once_if_its_sum_changed) {
  std::mt19937_64 random(perdure::test_seed());
  for (const std::size_t units : {1U, 31U, 32U, 33U, 255U, 256U, 1000U, 5000U}) {
    std::vector<std::uint64_t> sums = random_words(units * 8, random);
    std::vector<std::uint64_t> table = sums;
    std::vector<std::uint32_t> changed;
    for (std::uint32_t i = 0; i < units; i++) {
      if (random() % 3 != 0) continue;
      table[i] ^= std::uint64_t{1} << random() % 64;  // the smallest difference there is
      changed.push_back(i);
    }
    std::vector<std::uint32_t> list(units, 0);
    std::vector<std::uint32_t> count(1, 0);
    Arrays arrays;
    run("perdure_list_changed", 2,
        {arrays.add(sums, false), arrays.add(table), arrays.add(list), arrays.add(count), units},
        arrays);
    ASSERT_EQ(count[0], changed.size());
    list.resize(count[0]);
    std::sort(list.begin(), list.end());
    EXPECT_EQ(list, changed);
    EXPECT_EQ(table, sums);
  }
}

TEST(Kernels, listed_units_are_stored_to_their_places_and_nothing_else_is) {
  std::mt19937_64 random(perdure::test_seed());
  for (const std::size_t pages : {1U, 2U, 3U, 16U, 17U}) {  // of a unit
    for (const std::size_t units : {1U, 15U, 16U, 40U}) {
      std::vector<std::uint64_t> from = random_words(units * pages * 4096, random);
      std::vector<std::uint64_t> to = random_words(units * pages * 4096, random);
      std::vector<std::uint32_t> list(units);
      std::iota(list.begin(), list.end(), 0);
      std::shuffle(list.begin(), list.end(), random);
      std::vector<std::uint32_t> count(1, static_cast<std::uint32_t>(random() % (units + 1)));
      std::vector<std::uint64_t> expected = to;
      for (std::uint32_t i = 0; i < count[0]; i++) {
        const std::size_t begin = list[i] * pages * 512;
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(begin), pages * 512,
                    expected.begin() + static_cast<std::ptrdiff_t>(begin));
      }
      Arrays arrays;
      run("perdure_store", 2,
          {arrays.add(from, false), arrays.add(to), arrays.add(list, false),
           arrays.add(count, false), pages * 4096},
          arrays);
      EXPECT_EQ(to, expected);
    }
  }
}

TEST(Kernels, an_access_outside_of_memory_names_the_line) {
  std::vector<std::uint64_t> words(512);
  std::vector<std::uint64_t> sums(1);
  Arrays arrays;
  const std::uint64_t data = arrays.add(words);
  const std::uint64_t to = arrays.add(sums);
  try {
    run("perdure_page_sums", 1, {data, to, 2}, arrays);
    FAIL() << "page 1 is nowhere";
  } catch (const AccessError& wrong) {
    EXPECT_FALSE(wrong.is_misaligned);
    EXPECT_NE(std::string(wrong.what()).find("perdure_page_sums loads 16 bytes at 0x"),
              std::string::npos)
        << wrong.what();
  }
  EXPECT_THROW(run("perdure_page_sums", 1, {data + 8, to, 1}, arrays), AccessError);
}

TEST(Kernels, a_shuffle_without_all_of_its_lanes_is_an_error) {
  std::vector<std::uint64_t> words(1024);
  std::vector<std::uint64_t> sums(2);
  Arrays arrays;
  EXPECT_THROW(run("perdure_page_sums", 1, {arrays.add(words), arrays.add(sums), 2}, arrays, 33),
               PtxError);
}

TEST(Ptx, what_is_not_known_is_an_error_that_names_its_line) {
  const std::string text = kernels_text();
  std::size_t refused = 0;
  // Each instruction's name in turn becomes another one.
  for (std::size_t at = text.find("\n  "); at != std::string::npos;
       at = text.find("\n  ", at + 1)) {
    const std::size_t begin = text[at + 3] == '@' ? text.find(' ', at + 3) + 1 : at + 3;
    if (std::islower(static_cast<unsigned char>(text[begin])) == 0) continue;
    std::string other = text;
    other.insert(begin, "x");
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
    try {
      read_ptx(other);
      FAIL() << "line " << line << " was read";
    } catch (const PtxError& wrong) {
      EXPECT_EQ(std::string(wrong.what()).rfind("line " + std::to_string(line) + ": the instr", 0),
                0U)
          << wrong.what();
    }
    refused++;
    at = text.find("\n  ", at + 2000);  // one in a hundred or so
    if (at == std::string::npos) break;
    at--;
  }
  EXPECT_GT(refused, 20U);
}

TEST(Ptx, a_text_that_ends_early_is_refused) {
  const std::string text = kernels_text();
  for (std::size_t size = 200; size + 3 < text.size(); size += 499) {
    EXPECT_THROW(
        {
          const PtxModule read = read_ptx(text.substr(0, size));
          if (read.kernels.size() == 4) throw PtxError(0, "all of it was there");
        },
        PtxError)
        << size;
  }
}

}  // namespace
}  // namespace fake
