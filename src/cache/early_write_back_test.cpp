// SPDX-License-Identifier: BSD-3-Clause
//
// Early write-back: what is dirty reaches the cached file while nobody asks for it, whatever else
// goes on in the part.
#include "cache/early_write_back.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "cache/testing/small_device.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_bytes = 16384;
constexpr std::uint64_t blocks = 64;
constexpr EarlyWriteBack::Terms soon{0, 200'000};

// A test that never gets there is ended by its time limit.
void until(const std::function<bool()>& done) {
  while (!done()) ::usleep(500);
}

class Files {
 public:
  explicit Files(const Bytes& bytes) : file(bytes) {
    part = new_part(directory / "part", *file.backing, 0, {LayoutKind::cyclic, 1, block_bytes, 0},
                    bytes.size(), {.blocks = blocks});
  }
  // What leaves is no longer dirty before the file has it.
  bool is_handed_over() const {
    for (std::uint64_t block = 0; block < blocks; ++block) {
      if (!part->dirty(block).none()) return false;
    }
    return read_file(file.file_path) == file.expected;
  }

  TemporaryDirectory directory;
  ExpectedFile file;
  std::unique_ptr<CachePart> part;
};

TEST(EarlyWriteBack, what_is_dirty_reaches_the_file_while_nobody_asks_for_it) {
  std::mt19937_64 random(test_seed());
  Files files(random_bytes(40 * block_bytes + 100, random));
  const auto early = EarlyWriteBack::start(*files.part, 7, soon);
  for (int i = 0; i < 50; ++i) {
    files.file.write(*files.part, random() % (38 * block_bytes), random_bytes(30000, random));
  }
  until([&] { return files.is_handed_over(); });
  EXPECT_GT(early->written_bytes(), 0U);
  // Whether the file has it durably is asked, and heard, by whoever needs to know.
  EXPECT_GT(files.part->unsaved_bytes(true), 0U);
  EXPECT_EQ(must(files.part->write_back(0, true)).bytes, 0U);
  EXPECT_EQ(files.part->unsaved_bytes(true), 0U);
}

TEST(EarlyWriteBack, parts_of_few_bytes_are_left_to_the_close) {
  Files files(Bytes(10 * block_bytes, 1));
  const auto early = EarlyWriteBack::start(*files.part, 0, {11 * block_bytes, 200'000});
  files.file.write(*files.part, 0, Bytes(10 * block_bytes, 2));
  ::usleep(20'000);
  EXPECT_EQ(early->written_bytes(), 0U);
}

TEST(EarlyWriteBack, a_block_that_is_written_again_and_again_is_written_back_less_and_less) {
  Files files(Bytes(10 * block_bytes, 1));
  const auto early = EarlyWriteBack::start(*files.part, 0, soon);
  std::uint64_t hand_overs = 0;
  std::uint64_t before = 0;
  const std::uint64_t looks = 400;
  for (std::uint64_t look = 0; look < looks; ++look) {
    files.file.write(*files.part, 0, Bytes(8, static_cast<unsigned char>(look)));
    ::usleep(500);
    hand_overs += early->written_bytes() != before ? 1U : 0U;
    before = early->written_bytes();
  }
  EXPECT_LT(hand_overs, 20U);
  until([&] { return files.is_handed_over(); });
}

// Calls back with each entry of the table that is flushed by itself.
class TableWatch final : public ForwardingDevice {
 public:
  TableWatch(std::unique_ptr<Device> device, const PartHeaderFormat& header)
      : ForwardingDevice(std::move(device)), begin_(header.table_offset) {}
  void flush(std::uint64_t offset, std::size_t count) override {
    const bool is_entry = count == sizeof(BlockFormat) && offset >= begin_ &&
                          offset < begin_ + blocks * sizeof(BlockFormat);
    if (is_entry) on_entry(*reinterpret_cast<const BlockFormat*>(base() + offset));
    ForwardingDevice::flush(offset, count);
  }
  std::function<void(const BlockFormat& entry)> on_entry = [](const BlockFormat&) {};

 private:
  std::uint64_t begin_;
};

// Else one that looks for what is dirty could hand on what is cut, beyond the end of the file.
TEST(EarlyWriteBack, finds_a_block_that_is_cut_claimed_while_its_entry_is_cleared) {
  Files files(Bytes(10 * block_bytes, 1));
  FileDeviceOptions options;
  options.shared = true;
  auto file = must(open_file_device(files.directory / "part", options));
  const PartHeaderFormat header = must(read_part_header(*file));
  auto watch = std::make_unique<TableWatch>(std::move(file), header);
  TableWatch& watched = *watch;
  const auto part = must(CachePart::attach(std::move(watch)));
  part->set_backing(&*files.file.backing);
  files.file.write(*part, 0, Bytes(10 * block_bytes, 2));
  unsigned cleared = 0;
  watched.on_entry = [&](const BlockFormat& entry) {
    EXPECT_EQ(entry.state, 0U);
    EXPECT_NE(owner_of(entry.claim), 0U) << "entry " << cleared;
    ++cleared;
  };
  files.file.cut(*part, 3 * block_bytes);
  EXPECT_EQ(cleared, 7U);
}

TEST(EarlyWriteBack, a_cut_that_comes_amid_it_leaves_no_byte_beyond) {
  std::mt19937_64 random(test_seed());
  Files files(random_bytes(30 * block_bytes, random));
  const auto early = EarlyWriteBack::start(*files.part, 0, {0, 50'000});
  for (int round = 0; round < 300; ++round) {
    files.file.write(*files.part, random() % (25 * block_bytes), random_bytes(60000, random));
    if (random() % 2 == 0) ::usleep(static_cast<useconds_t>(random() % 300));
    const std::uint64_t left = random() % (28 * block_bytes);
    files.file.cut(*files.part, left);
    EXPECT_LE(must(files.file.backing->size_bytes()), left);
    files.file.write(*files.part, left + random() % 5000, random_bytes(100, random));
  }
  (void)must(files.part->write_back(0, true));
  EXPECT_EQ(read_file(files.file.file_path), files.file.expected);
}

TEST(EarlyWriteBack, several_of_them_and_whoever_writes_back_share_the_blocks) {
  std::mt19937_64 random(test_seed());
  Files files(random_bytes(40 * block_bytes, random));
  std::vector<std::unique_ptr<EarlyWriteBack>> all;
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    all.push_back(EarlyWriteBack::start(*files.part, turn * 13, {0, 100'000}));
  }
  for (int round = 0; round < 300; ++round) {
    files.file.write(*files.part, random() % (38 * block_bytes), random_bytes(20000, random));
    if (round % 20 == 0) (void)must(files.part->write_back(random(), round % 40 == 0));
  }
  (void)must(files.part->write_back(0, true));
  all.clear();
  EXPECT_EQ(read_file(files.file.file_path), files.file.expected);
  EXPECT_EQ(files.part->unsaved_bytes(true), 0U);
}

TEST(EarlyWriteBack, where_blocks_pass_through_it_rests) {
  Files files(Bytes(20 * block_bytes, 1));
  const auto part = attach_small_part(files.directory / "part", *files.file.backing,
                                      [](std::uint64_t block) { return block % 2 == 0; });
  files.file.write(*part, 0, Bytes(20 * block_bytes, 3));
  const auto early = EarlyWriteBack::start(*part, 0, soon);
  ::usleep(20'000);
  EXPECT_EQ(early->written_bytes(), 0U);
  (void)must(part->write_back(0, true));
  EXPECT_EQ(read_file(files.file.file_path), files.file.expected);
}

}  // namespace
}  // namespace perdure
