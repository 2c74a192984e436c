// SPDX-License-Identifier: BSD-3-Clause
//
// Shares of a file at a version: taken while the file changes on, and made a file again.
#include "cache/part_share.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cache/testing/scratch_part.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_bytes = 4096;
constexpr std::uint64_t room = 64;  // blocks of a part

// Parts of all nodes of a file, with undo logs.
class Parts {
 public:
  Parts(std::uint32_t nodes, LayoutKind kind, const Bytes& file)
      : layout(make_layout(kind, nodes, block_bytes, file.size())), now(file) {
    write_file(directory / "file", file);
    backing.emplace(must(BackingFile::open(directory / "file", BackingFile::Access::read_write)));
    for (std::uint32_t node = 0; node < nodes; ++node) add(node);
  }

  void write(std::uint64_t offset, const Bytes& bytes) {
    if (now.size() < offset + bytes.size()) now.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), now.begin() + static_cast<std::ptrdiff_t>(offset));
    for (std::uint64_t done = 0; done < bytes.size();) {
      const std::uint64_t place = (offset + done) % block_bytes;
      const std::uint64_t run = std::min(block_bytes - place, bytes.size() - done);
      CachePart& part = *all[place_of(layout, offset + done).node];
      must(part.write(offset + done, bytes.data() + done, run, Acknowledge::sync));
      done += run;
    }
    all[0]->grow_size(offset + bytes.size());
  }
  void commit() {
    for (const auto& part : all) must(part->persist());
    ++version;
    size_then = now.size();
    for (const auto& part : all) must(part->set_base_version(version, size_then).status());
  }
  // The file made of the shares of all, each node's dealt to `shares` ranks, read in odd pieces.
  Bytes taken(std::uint32_t shares) {
    write_file(directory / "made", Bytes(now.size() + 5000, 0xee));
    const auto made = must(BackingFile::open(directory / "made", BackingFile::Access::read_write));
    must(made.set_size(size_then));
    for (const auto& part : all) {
      for (std::uint32_t share = 0; share < shares; ++share) {
        const PartShare given = PartShare::of(*part, size_then, share, shares);
        std::vector<std::byte> bytes(given.bytes());
        for (std::size_t at = 0; at < bytes.size(); at += 1999) {
          must(given.read(
              *part, version, at,
              std::span(bytes).subspan(at, std::min<std::size_t>(1999, bytes.size() - at))));
        }
        must(must(PartShare::parse(given.head())).write(made, bytes));
      }
    }
    return read_file(directory / "made");
  }

  Layout layout;
  TemporaryDirectory directory;
  std::optional<BackingFile> backing;
  std::vector<std::unique_ptr<CachePart>> all;
  Bytes now;
  std::uint64_t version = 5;
  std::uint64_t size_then = now.size();

 private:
  void add(std::uint32_t node) {
    const std::string path = directory / ("part" + std::to_string(node));
    all.push_back(new_part(path, *backing, node, layout, now.size(), {.blocks = room}));
    const UndoGeometry geometry = all.back()->undo_geometry();
    FileDeviceOptions options;
    options.create = true;
    options.shared = true;
    options.sparse_bytes = geometry.file_bytes();
    all.back()->set_undo_log(
        std::make_unique<UndoLog>(must(open_file_device(path + ".undo", options)), geometry));
    must(all.back()->set_base_version(version, now.size()).status());
  }
};

TEST(PartShare, shares_of_any_file_are_the_file_as_it_was_at_the_version) {
  std::mt19937_64 random(test_seed());
  for (int turn = 0; turn < 60; ++turn) {
    const auto nodes = static_cast<std::uint32_t>(1 + random() % 3);
    const LayoutKind kind = random() % 2 == 0 ? LayoutKind::cyclic : LayoutKind::parts;
    Parts parts(nodes, kind, random_bytes(random() % 40000, random));
    Bytes then = parts.now;
    for (int step = 0; step < 30; ++step) {
      const std::uint64_t choice = random() % 10;
      if (choice < 6) {
        parts.write(random() % 60000, random_bytes(1 + random() % 3000, random));
      } else if (choice < 8) {
        for (const auto& part : parts.all) (void)must(part->write_back(random(), true));
      } else if (choice < 9) {
        parts.commit();
        then = parts.now;
      }
      ASSERT_EQ(parts.taken(static_cast<std::uint32_t>(1 + random() % 3)), then)
          << "turn " << turn << ", step " << step << ", " << nodes << " nodes";
    }
  }
}

// cache.P13: a block that was absent when it was looked for may be changed and handed on before the
// file is read.
TEST(PartShare, what_is_written_while_a_share_is_read_is_not_in_it) {
  std::mt19937_64 random(test_seed());
  Parts parts(1, LayoutKind::cyclic, random_bytes(40 * block_bytes, random));
  const Bytes then = parts.now;
  CachePart& part = *parts.all[0];
  for (int turn = 0; turn < 40; ++turn) {
    std::atomic<bool> stop{false};
    std::thread writer([&, seed = random()] {
      std::mt19937_64 own(seed);
      while (!stop) {
        const Bytes bytes = random_bytes(1 + own() % 6000, own);
        const std::uint64_t offset = own() % (40 * block_bytes - bytes.size());
        must(part.write(offset, bytes.data(), bytes.size(), Acknowledge::sync));
        if (own() % 8 == 0) (void)must(part.write_back(own(), false));
      }
    });
    const Bytes taken = parts.taken(2);
    stop = true;
    writer.join();
    ASSERT_EQ(taken, then) << "turn " << turn;
  }
}

TEST(PartShare, a_version_that_the_file_has_left_is_not_read) {
  std::mt19937_64 random(1);
  Parts parts(1, LayoutKind::cyclic, random_bytes(9000, random));
  const PartShare share = PartShare::of(*parts.all[0], 9000, 0, 1);
  std::vector<std::byte> bytes(share.bytes());
  must(share.read(*parts.all[0], 5, 0, bytes));
  EXPECT_EQ(share.read(*parts.all[0], 4, 0, bytes).code(), Code::wrong_state);
  parts.commit();
  EXPECT_EQ(share.read(*parts.all[0], 5, 0, bytes).code(), Code::wrong_state);
}

TEST(PartShare, a_head_that_can_not_be_right_is_refused) {
  std::mt19937_64 random(test_seed());
  Parts parts(2, LayoutKind::parts, random_bytes(50000, random));
  const std::vector<std::byte> head = PartShare::of(*parts.all[1], 50000, 0, 2).head();
  EXPECT_FALSE(PartShare::parse(std::span(head).first(40)).ok());
  for (int turn = 0; turn < 20000; ++turn) {
    std::vector<std::byte> changed = head;
    for (std::uint64_t times = 0; times <= random() % 3; ++times) {
      changed[random() % changed.size()] = static_cast<std::byte>(random());
    }
    const auto parsed = PartShare::parse(changed);
    if (parsed.ok()) (void)parsed.value().bytes();  // no overflow, no division by zero
  }
  const auto parsed = PartShare::parse(head);
  const std::vector<std::byte> few(10);
  EXPECT_EQ(parsed.value().write(*parts.backing, few).code(), Code::damaged);
}

}  // namespace
}  // namespace perdure
