// SPDX-License-Identifier: BSD-3-Clause
//
// Level files: what they hold is whole or not there, whatever was cut short, flipped or planted.
// ctest: NAME levels_file_test
#include "levels/level_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/checksum.hpp"
#include "levels/sealed_format.hpp"
#include "levels/testing/level_fixture.hpp"
#include "pmem/testing/crash_device.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr LevelFileName name{SealedKind::image, 2, 1};
constexpr std::uint64_t small_max = 8192;

LevelFile on(std::unique_ptr<CrashDevice> device) {
  auto opened = LevelFile::on_device(std::move(device), name, "the file");
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.take();
}

Result<LevelFile> open_image(std::span<const std::byte> image) {
  auto device = std::make_unique<CrashDevice>(align_up(image.size(), 64), 64);
  device->load(image);
  return LevelFile::on_device(std::move(device), name, "the file");
}

SealedHeader header_for(std::uint64_t version, const Bytes& payload) {
  return level_header(name, 4, version, payload.size());
}

// The bytes of a whole file.
Bytes small_file(const Bytes& payload) {
  auto device = std::make_unique<CrashDevice>(small_max, 64);
  CrashDevice& medium = *device;
  LevelFile file = on(std::move(device));
  EXPECT_TRUE(fill(file, header_for(7, payload), payload).ok());
  return {medium.durable().begin(), medium.durable().end()};
}

TEST(LevelFile, names_are_read_as_they_are_made) {
  for (const SealedKind kind : {SealedKind::image, SealedKind::guard}) {
    for (const std::uint32_t rank : {0U, 7U, 99999U, 100000U, 4294967295U}) {
      const auto parsed = parse_level_file_name(level_file_name(kind, rank, 2));
      ASSERT_TRUE(parsed);
      EXPECT_EQ(parsed->kind, kind);
      EXPECT_EQ(parsed->rank, rank);
      EXPECT_EQ(parsed->slot, 2U);
    }
  }
  EXPECT_EQ(level_file_name(SealedKind::guard, 3, 1), "guard-00003.1");
  for (const char* const other :
       {"image", "image-", "image-1.0", "image-00001", "image-00001.", "image-00001.01",
        "image-00001.0x", "images-00001.0", "guard_00001.0", "guard-00001,0", "rank-00001",
        "guard-99999999999.0", "guard-00001.0.new"}) {
    EXPECT_FALSE(parse_level_file_name(other)) << other;
  }
}

TEST(LevelFile, a_payload_written_in_any_order_is_read_again) {
  const ScratchLevel directory;
  std::mt19937_64 random(test_seed());
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, sealed_chunk_bytes,
                                   3 * sealed_chunk_bytes + 12345, std::uint64_t{77}}) {
    const Bytes payload = bytes_of(size, size + 1);
    {
      LevelFile file = directory.file(name);
      ASSERT_TRUE(file.begin(size).ok());
      std::vector<std::uint64_t> offsets;
      for (std::uint64_t at = 0; at < size; at += sealed_chunk_bytes) offsets.push_back(at);
      std::shuffle(offsets.begin(), offsets.end(), random);
      for (const std::uint64_t at : offsets) {
        file.write(at, std::span(payload).subspan(at, std::min(sealed_chunk_bytes, size - at)));
      }
      EXPECT_FALSE(file.whole());
      const Status completed = file.complete(header_for(size, payload));
      ASSERT_TRUE(completed.ok()) << completed.message();
    }
    const auto file = LevelFile::open(directory.open(), name, Trust::own);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE(file.value().whole()) << size;
    const SealedHeader& header = file.value().header();
    EXPECT_EQ(header.id, (VersionId{3, size}));
    EXPECT_EQ(header.rank, 2U);
    EXPECT_EQ(header.job.ranks, 4U);
    EXPECT_EQ(header.job.job_name, "test");
    EXPECT_EQ(header.job.created_ns, 13U);
    EXPECT_TRUE(header.job.job_id == (JobId{{11, 12}}));
    EXPECT_EQ(bytes_in(file.value()), payload);
    EXPECT_TRUE(file.value().verify().ok());
    Bytes copy(size);
    for (std::uint64_t at = 0; at < size; at += sealed_chunk_bytes) {
      const auto chunk = std::span(copy).subspan(at, std::min(sealed_chunk_bytes, size - at));
      const Status read = file.value().read_chunk(at, chunk);
      ASSERT_TRUE(read.ok()) << read.message();
    }
    EXPECT_EQ(copy, payload);
  }
}

TEST(LevelFile, a_file_that_is_missing_is_not_found) {
  const ScratchLevel directory;
  const auto file = LevelFile::open(directory.open(), name, Trust::own);
  EXPECT_EQ(file.status().code(), Code::not_found);
  EXPECT_NE(file.status().message().find("holds no image-00002.1"), std::string::npos);
}

TEST(LevelFile, one_that_is_begun_or_cleared_has_no_contents) {
  const ScratchLevel directory;
  const Bytes payload = bytes_of(5000, 1);
  const auto reopened = [&directory] { return directory.file(name).whole(); };
  EXPECT_FALSE(reopened());
  ASSERT_TRUE(LevelFile(directory.file(name)).clear().ok());
  {
    LevelFile file = directory.file(name);
    ASSERT_TRUE(fill(file, header_for(1, payload), payload).ok());
  }
  EXPECT_TRUE(reopened());
  {
    LevelFile file = directory.file(name);
    ASSERT_TRUE(file.begin(100).ok());
    EXPECT_FALSE(file.whole());
    EXPECT_TRUE(file.payload().empty());
  }
  EXPECT_FALSE(reopened());
  {
    LevelFile file = directory.file(name);
    ASSERT_TRUE(fill(file, header_for(2, payload), payload).ok());
    ASSERT_TRUE(file.clear().ok());
    EXPECT_FALSE(file.whole());
  }
  EXPECT_FALSE(reopened());
}

TEST(LevelFile, one_with_room_for_more_keeps_what_it_holds_and_grows_no_more) {
  const ScratchLevel directory;
  const Bytes payload = bytes_of(5000, 1);
  const Bytes larger = bytes_of(sealed_chunk_bytes + 1, 2);
  LevelFile file = directory.file(name);
  ASSERT_TRUE(fill(file, header_for(1, payload), payload).ok());
  ASSERT_TRUE(file.reserve(larger.size()).ok());
  const auto bytes = std::filesystem::file_size(file.path());
  EXPECT_GT(bytes, sealed_payload_offset + larger.size());
  const auto reopened = LevelFile::open(directory.open(), name, Trust::own);
  ASSERT_TRUE(reopened.ok() && reopened.value().whole());
  EXPECT_EQ(bytes_in(reopened.value()), payload);
  EXPECT_EQ(bytes_in(file), payload);
  ASSERT_TRUE(fill(file, header_for(2, larger), larger).ok());
  EXPECT_EQ(std::filesystem::file_size(file.path()), bytes);
}

TEST(LevelFile, a_payload_that_is_begun_for_more_than_there_is_room_is_refused) {
  LevelFile file = on(std::make_unique<CrashDevice>(small_max, 64));
  EXPECT_EQ(file.begin(small_max).code(), Code::no_space);
  EXPECT_FALSE(file.whole());
}

TEST(LevelFile, every_flipped_bit_is_noticed) {
  const Bytes payload = bytes_of(90, 4);
  const Bytes whole = small_file(payload);
  std::size_t absent = 0;
  std::size_t damaged = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes image = whole;
    image[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto file = open_image(image);
    ASSERT_TRUE(file.ok()) << file.status().message();
    if (!file.value().whole()) {
      ++absent;
    } else if (const Status verified = file.value().verify(); !verified.ok()) {
      EXPECT_EQ(verified.code(), Code::damaged);
      ++damaged;
    } else {
      ASSERT_EQ(bytes_in(file.value()), payload) << "bit " << bit;
    }
  }
  EXPECT_EQ(absent, (8 + sizeof(SealedHeaderFormat) + 8) * 8);
  EXPECT_EQ(damaged, payload.size() * 8);
}

TEST(LevelFile, one_that_was_cut_has_no_contents) {
  const Bytes whole = small_file(bytes_of(90, 4));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto file = open_image(std::span(whole).first(size));
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_FALSE(file.value().whole()) << size << " bytes";
  }
  const auto file = open_image(whole);
  EXPECT_TRUE(file.ok() && file.value().whole());
}

// Changes the header and makes its checksum right again.
template <typename Change>
Bytes planted(Bytes image, const Change& change) {
  SealedHeaderFormat format;
  std::memcpy(&format, image.data() + sealed_header_offset, sizeof format);
  change(format);
  const std::byte* const table = image.data() + sealed_payload_offset + 96;  // of 90 bytes
  format.checksum = crc64(table, 8, crc64(&format, offsetof(SealedHeaderFormat, checksum)));
  std::memcpy(image.data() + sealed_header_offset, &format, sizeof format);
  std::memcpy(image.data(), &format.checksum, sizeof format.checksum);
  return image;
}

TEST(LevelFile, a_header_that_cannot_be_right_is_not_believed) {
  const Bytes whole = small_file(bytes_of(90, 4));
  using Format = SealedHeaderFormat;
  const auto believed = [&whole](void (*change)(Format&)) {
    const auto file = open_image(planted(whole, change));
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() && file.value().whole();
  };
  EXPECT_TRUE(believed([](Format&) {}));
  EXPECT_TRUE(believed([](Format& format) { format.version = 8; }));
  EXPECT_FALSE(believed([](Format& format) { format.magic += 1; }));
  EXPECT_FALSE(believed([](Format& format) { format.format_version = 0; }));
  EXPECT_FALSE(believed([](Format& format) { format.kind = 2; }));
  EXPECT_FALSE(believed([](Format& format) { format.rank = 3; }));
  EXPECT_FALSE(believed([](Format& format) { format.ranks = 2; }));
  EXPECT_FALSE(believed([](Format& format) { format.ranks = ranks_max + 1; }));
  EXPECT_FALSE(believed([](Format& format) { std::memset(format.job_name, 'x', job_name_bytes); }));
  EXPECT_FALSE(believed([](Format& format) { format.payload_bytes = 200; }));
  EXPECT_FALSE(believed([](Format& format) { format.payload_bytes = UINT64_MAX; }));
  EXPECT_FALSE(believed([](Format& format) { format.payload_bytes = UINT64_MAX - 4096; }));
}

TEST(LevelFile, a_newer_format_is_refused_with_a_sentence) {
  const Bytes newer =
      planted(small_file(bytes_of(90, 4)), [](auto& format) { format.format_version = 2; });
  const auto file = open_image(newer);
  EXPECT_EQ(file.status().code(), Code::newer_format);
  EXPECT_NE(file.status().message().find("format 2, this Perdure reads up to 1"),
            std::string::npos);
}

TEST(LevelFile, damage_is_named_by_its_bytes) {
  const ScratchLevel directory;
  const Bytes payload = bytes_of(2 * sealed_chunk_bytes + 10, 5);
  {
    LevelFile file = directory.file(name);
    ASSERT_TRUE(fill(file, header_for(9, payload), payload).ok());
  }
  const auto handle = directory.open().open_file("image-00002.1", FileAccess::read_write);
  ASSERT_TRUE(handle.ok());
  const char wrong = static_cast<char>(~payload[sealed_chunk_bytes + 3]);
  const auto at = static_cast<off_t>(sealed_payload_offset + sealed_chunk_bytes + 3);
  ASSERT_EQ(::pwrite(handle.value().fd(), &wrong, 1, at), 1);
  const LevelFile file = directory.file(name);
  ASSERT_TRUE(file.whole());
  const Status all = file.verify();
  EXPECT_EQ(all.code(), Code::damaged);
  EXPECT_NE(all.message().find("bytes 1048576 to 2097151 of version 9"), std::string::npos)
      << all.message();
  EXPECT_TRUE(file.verify(0, sealed_chunk_bytes).ok());
  EXPECT_TRUE(file.verify(2 * sealed_chunk_bytes, 10).ok());
  EXPECT_TRUE(file.verify(sealed_chunk_bytes, 0).ok());
  EXPECT_EQ(file.verify(sealed_chunk_bytes - 1, 2).code(), Code::damaged);
  Bytes chunk(sealed_chunk_bytes);
  EXPECT_TRUE(file.read_chunk(0, chunk).ok());
  EXPECT_EQ(file.read_chunk(sealed_chunk_bytes, chunk).code(), Code::damaged);
}

// What a crash may leave: version 1, version 2, or nothing.
struct Sweep {
  Bytes payloads[2];
  bool old_gone = false;  // begin() returned
  bool new_done = false;  // complete() returned
  std::uint64_t images = 0;
  std::uint64_t whole[2] = {0, 0};

  void check(std::span<const std::byte> image) {
    ++images;
    const auto file = open_image(image);
    ASSERT_TRUE(file.ok()) << file.status().message();
    if (!file.value().whole()) {
      ASSERT_FALSE(new_done);
      return;
    }
    const std::uint64_t version = file.value().header().id.version;
    ASSERT_TRUE(version == 2 || (version == 1 && !old_gone));
    ASSERT_TRUE(file.value().verify().ok());
    ASSERT_EQ(bytes_in(file.value()), payloads[version - 1]);
    ++whole[version - 1];
  }
};

// Version 2 is written over version 1; `elsewhere`: by other threads than the one that completes.
Sweep sweep(AtomicityModel model, std::uint64_t old_bytes, std::uint64_t new_bytes, bool elsewhere,
            std::uint64_t bound) {
  Sweep sweep;
  sweep.payloads[0] = bytes_of(old_bytes, 1);
  sweep.payloads[1] = bytes_of(new_bytes, 2);
  const std::uint64_t size = align_up(std::max(old_bytes, new_bytes), 64) + small_max;
  auto device = std::make_unique<CrashDevice>(size, 64);
  CrashDevice& medium = *device;
  LevelFile file = on(std::move(device));
  EXPECT_TRUE(fill(file, header_for(1, sweep.payloads[0]), sweep.payloads[0]).ok());
  const auto crash = [&](CrashDevice& crashed) {
    crashed.for_each_image(model, bound, test_seed(),
                           [&](std::span<const std::byte> image) { sweep.check(image); });
  };
  medium.on_fence = crash;
  EXPECT_TRUE(file.reserve(new_bytes).ok());
  crash(medium);
  EXPECT_TRUE(file.begin(new_bytes).ok());
  sweep.old_gone = true;
  const auto write = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    file.write(begin, std::span(sweep.payloads[1]).subspan(begin, end - begin));
  };
  const std::uint64_t first = std::min(new_bytes, sealed_chunk_bytes);
  if (elsewhere) {
    std::thread([&] { write(0, first); }).join();
    std::thread([&] { write(first, new_bytes); }).join();
  } else {
    write(0, first);
    write(first, new_bytes);
  }
  crash(medium);
  EXPECT_TRUE(file.complete(header_for(2, sweep.payloads[1])).ok());
  sweep.new_done = true;
  crash(medium);
  EXPECT_TRUE(file.whole() && bytes_in(file) == sweep.payloads[1]);
  return sweep;
}

TEST(LevelFileCrash, at_every_fence_the_contents_are_whole_or_gone) {
  for (const auto model : {AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines}) {
    for (const std::uint64_t old_bytes : {0U, 64U, 300U}) {
      for (const std::uint64_t new_bytes : {0U, 1U, 200U}) {
        const Sweep swept = sweep(model, old_bytes, new_bytes, false, 3000);
        EXPECT_GT(swept.whole[0], 0U) << atomicity_name(model);
        EXPECT_GT(swept.whole[1], 0U) << atomicity_name(model);
        EXPECT_GT(swept.images, swept.whole[0] + swept.whole[1]) << atomicity_name(model);
      }
    }
  }
}

TEST(LevelFileCrash, with_several_chunks_and_threads_they_are_as_well) {
  for (const bool elsewhere : {false, true}) {
    const Sweep swept = sweep(AtomicityModel::words, 100, sealed_chunk_bytes + 100, elsewhere, 12);
    EXPECT_GT(swept.whole[0], 0U);
    EXPECT_GT(swept.whole[1], 0U);
  }
}

TEST(LevelFileCrash, a_fence_that_fails_leaves_no_contents) {
  const Bytes payload = bytes_of(200, 6);
  for (std::uint64_t failing = 1; failing <= 3; ++failing) {
    auto device = std::make_unique<CrashDevice>(small_max, 64);
    CrashDevice& medium = *device;
    medium.load(small_file(payload));
    medium.failing_fence = failing;
    LevelFile file = on(std::move(device));
    ASSERT_TRUE(file.whole());
    EXPECT_EQ(fill(file, header_for(8, payload), payload).code(), Code::io_error) << failing;
    EXPECT_FALSE(file.whole()) << failing;
    // The first failure is that of begin(): what the medium has is what it had.
    const auto left = open_image(medium.durable());
    ASSERT_TRUE(left.ok());
    EXPECT_EQ(left.value().whole(), failing == 1);
  }
}

}  // namespace
}  // namespace perdure
