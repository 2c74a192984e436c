// SPDX-License-Identifier: BSD-3-Clause
//
// The undo log: what grains held at a version, kept once, found again, and nothing of what was cut
// short.
#include "cache/undo_log.hpp"

#include <gtest/gtest.h>

#include "cache/testing/scratch_part.hpp"
#include "pmem/testing/crash_device.hpp"

namespace perdure {
namespace {

constexpr UndoGeometry geometry{.blocks = 3, .block_bytes = 8192};
constexpr std::size_t grain_bytes = 8192 / grains_per_block;
constexpr std::uint32_t self = 7;

class Log {
 public:
  Log() {
    auto device = std::make_unique<CrashDevice>(geometry.file_bytes(), 64);
    must(device->resize(geometry.file_bytes()));
    device_ = device.get();
    log_.emplace(std::move(device), geometry);
    for (std::uint64_t block = 0; block < geometry.blocks; ++block)
      must(log_->prepare_block(block));
  }
  UndoLog& operator*() { return *log_; }
  UndoLog* operator->() { return &*log_; }
  CrashDevice& device() { return *device_; }
  std::uint32_t keep(std::uint64_t block, unsigned grain, std::uint64_t version, const Bytes& bytes,
                     std::uint32_t owner = self) {
    return must(
        log_->keep(block, grain, version, reinterpret_cast<const std::byte*>(bytes.data()), owner));
  }

 private:
  CrashDevice* device_ = nullptr;
  std::optional<UndoLog> log_;
};

Bytes bytes_at(const std::byte* place) {
  const auto* from = reinterpret_cast<const unsigned char*>(place);
  return {from, from + grain_bytes};
}

TEST(UndoLog, holds_what_each_grain_was_when_it_was_kept_first_at_a_version) {
  Log log;
  const Bytes first(grain_bytes, 1);
  const Bytes last(grain_bytes, 2);
  EXPECT_EQ(log.keep(0, 0, 4, first), 0U);
  EXPECT_EQ(log.keep(2, 127, 4, last), 0U);
  EXPECT_EQ(log.keep(0, 0, 4, Bytes(grain_bytes, 9)), 0U);  // it is kept already
  EXPECT_TRUE(log->kept(0, 0, 4));
  EXPECT_FALSE(log->kept(0, 1, 4));
  EXPECT_FALSE(log->kept(0, 0, 5));
  EXPECT_EQ(bytes_at(must(log->held(0, 0, 4))), first);
  EXPECT_EQ(bytes_at(must(log->held(2, 127, 4))), last);
  EXPECT_EQ(must(log->held(1, 3, 4)), nullptr);
}

TEST(UndoLog, a_newer_version_takes_the_place_and_older_ones_are_out_of_reach) {
  Log log;
  (void)log.keep(1, 5, 4, Bytes(grain_bytes, 1));
  EXPECT_EQ(must(log->held(1, 5, 5)), nullptr);  // it was not changed after version 5
  (void)log.keep(1, 5, 5, Bytes(grain_bytes, 2));
  EXPECT_EQ(bytes_at(must(log->held(1, 5, 5))), Bytes(grain_bytes, 2));
  const Status gone = log->held(1, 5, 4).status();
  EXPECT_EQ(gone.code(), Code::wrong_state);
  EXPECT_TRUE(says(gone, "restore the newest version")) << gone.message();
}

TEST(UndoLog, names_who_keeps_a_grain_until_that_one_is_given_up) {
  Log log;
  log.device().failing_fence = 1;
  const Bytes bytes(grain_bytes, 1);
  const auto* place = reinterpret_cast<const std::byte*>(bytes.data());
  EXPECT_EQ(log->keep(0, 3, 4, place, self).status().code(), Code::io_error);
  EXPECT_FALSE(log->kept(0, 3, 4));  // and nobody has it
  log.device().failing_fence = 0;
  // As a process leaves it that is killed while it keeps.
  auto* slots = reinterpret_cast<UndoFormat*>(log.device().base());
  slots[4].turn = (std::uint64_t{3} + 1) << owner_bits | self;
  EXPECT_EQ(log.keep(0, 4, 4, bytes, 8), self);
  log->give_up(0, 9);
  EXPECT_EQ(log.keep(0, 4, 4, bytes, 8), self);
  log->give_up(0, self);
  EXPECT_EQ(log.keep(0, 4, 4, bytes, 8), 0U);
  EXPECT_EQ(bytes_at(must(log->held(0, 4, 4))), bytes);
}

// cache.D1 at every fence: a place holds its version whole, or says that it holds nothing, or the
// one before; once keep() has returned it holds its own.
TEST(UndoLog, a_place_is_whole_or_holds_nothing_in_every_image_at_every_fence) {
  for (const auto model : {AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines}) {
    Log log;
    Bytes kept;
    Bytes keeping;
    std::uint64_t version = 3;
    std::uint64_t images = 0;
    const auto check = [&](std::span<const std::byte> image) {
      ++images;
      auto copy = std::make_unique<CrashDevice>(geometry.file_bytes(), 64);
      copy->load(image);
      const UndoLog after(std::move(copy), geometry);
      auto held = after.held(1, 2, version);
      ASSERT_TRUE(held.ok()) << held.status().message();
      if (held.value() != nullptr) {
        EXPECT_EQ(bytes_at(held.value()), keeping);
      } else {
        EXPECT_NE(kept, keeping) << "what was kept is lost";
      }
    };
    log.device().on_fence = [&](CrashDevice& device) {
      device.for_each_image(model, 50, version, check);
    };
    std::mt19937_64 random(1);
    for (; version < 10; ++version) {
      keeping = random_bytes(grain_bytes, random);
      (void)log.keep(1, 2, version, keeping);
      kept = keeping;
      log.device().for_each_image(model, 50, version, check);
    }
    EXPECT_GT(images, 30U);
  }
}

}  // namespace
}  // namespace perdure
