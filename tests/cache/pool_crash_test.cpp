// SPDX-License-Identifier: BSD-3-Clause
//
// Crash sweep of a file that is committed with a pool (cache_part.hpp, cache.P8 and cache.P9):
// random writes, write-backs and commits; at every fence, from every image that a power failure
// could leave, and from what a killed process leaves, recovery to the version that the pool has
// must give the file byte for byte as it was at that version, size included. Recovery is crashed
// too. The file has a part, or two of two nodes, which recover in any order.
//
// The oracle keeps the whole file at each version and knows nothing of grains.
// ctest: DEPS cache crash_device TIMEOUT 300 LONG 1800
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "cache/testing/scratch_part.hpp"
#include "pmem/testing/crash_device.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t file_bytes = 11000;
constexpr std::uint64_t bytes_max = 5 * 4096;
constexpr std::uint64_t images_per_fence = 5;

// Parts and undo logs fail together: ranges of one crash device.
class Slice final : public Device {
 public:
  Slice(CrashDevice& device, std::uint64_t begin, std::uint64_t bytes)
      : device_(device), begin_(begin), bytes_(bytes) {}
  DeviceDescription describe() const override { return device_.describe(); }
  std::byte* base() const override { return device_.base() + begin_; }
  std::uint64_t size_bytes() const override { return bytes_; }
  DeviceCounters counters() const override { return device_.counters(); }
  Status resize(std::uint64_t) override { return {Code::unsupported, "a slice"}; }
  void store(std::uint64_t offset, const void* source, std::size_t count) override {
    device_.store(begin_ + offset, source, count);
  }
  void store_word(std::uint64_t offset, std::uint64_t word) override {
    device_.store_word(begin_ + offset, word);
  }
  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    device_.copy(begin_ + offset, source, count);
  }
  void flush(std::uint64_t offset, std::size_t count) override {
    device_.flush(begin_ + offset, count);
  }
  Status fence() override { return device_.fence(); }

 private:
  CrashDevice& device_;
  std::uint64_t begin_;
  std::uint64_t bytes_;
};

struct Sweep {
  AtomicityModel model;
  std::uint64_t block_bytes;
  std::uint32_t nodes = 1;
};

class Sweeper {
 public:
  Sweeper(const Sweep& sweep, std::uint64_t seed)
      : sweep_(sweep),
        layout_{LayoutKind::cyclic, sweep.nodes, sweep.block_bytes, 0},
        geometry_{.blocks = (bytes_max + sweep.block_bytes - 1) / sweep.block_bytes,
                  .journal_entries = 1},
        undo_geometry_{geometry_.blocks, sweep.block_bytes},
        part_bytes_((part_file_bytes(layout_, geometry_) + 4095) / 4096 * 4096),
        node_bytes_(part_bytes_ + (undo_geometry_.file_bytes() + 4095) / 4096 * 4096),
        all_bytes_(sweep.nodes * node_bytes_),
        device_(all_bytes_, 64),
        random_(seed),
        now_(random_bytes(file_bytes, random_)) {
    write_file(directory_ / "file", now_);
    write_file(directory_ / "crashed", now_);
    synced_ = now_;
    versions_[version_] = now_;
    backing_.emplace(must(BackingFile::open(directory_ / "file", access)));
    crashed_.emplace(must(BackingFile::open(directory_ / "crashed", access)));
    make_parts();
  }

  void run(int steps) {
    for (int step = 0; step < steps && wrong_.empty(); ++step) one_step();
    crash();
    device_.on_fence = nullptr;
  }
  void write(std::uint64_t offset, std::uint64_t bytes, Acknowledge when) {
    note("write " + std::to_string(bytes) + " at " + std::to_string(offset));
    const Bytes fresh = random_bytes(bytes, random_);
    if (now_.size() < offset + bytes) now_.resize(offset + bytes);
    std::copy(fresh.begin(), fresh.end(), now_.begin() + static_cast<std::ptrdiff_t>(offset));
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t run = run_on_node(layout_, offset + done, bytes - done);
      CachePart& part = *parts_[place_of(layout_, offset + done).node];
      must(part.write(offset + done, fresh.data() + done, run, when));
      done += run;
    }
    parts_[0]->grow_size(offset + bytes);
  }
  // Each fence that the write makes fails once; then the write is repeated, and may keep what it
  // said of the part before.
  void write_over_failing_fences(std::uint64_t offset, std::uint64_t bytes) {
    const Bytes fresh = random_bytes(bytes, random_);
    CachePart& part = *parts_[place_of(layout_, offset).node];
    for (std::uint64_t failing = 1;; ++failing) {
      note("write " + std::to_string(bytes) + " at " + std::to_string(offset) + ", fence " +
           std::to_string(failing) + " fails");
      device_.failing_fence = device_.counters().fence_calls + failing;
      const Status written = part.write(offset, fresh.data(), bytes, Acknowledge::durable);
      const bool failed = device_.counters().fence_calls >= device_.failing_fence;
      device_.failing_fence = 0;
      EXPECT_EQ(written.ok(), !failed) << written.message();
      if (!failed) break;
    }
    std::copy(fresh.begin(), fresh.end(), now_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void write_back(bool sync) {
    note(sync ? "write back and sync" : "write back");
    for (const auto& part : parts_) (void)must(part->write_back(random_(), sync));
    if (sync) synced_ = read_file(directory_ / "file");
  }
  // As Pool::commit does with its companions.
  void commit() {
    note("commit");
    persist();
    for (const auto& part : parts_) must(part->set_prepared(version_ + 1));
    versions_[version_ + 1] = now_;
    crash();  // before the version is decided
    ++version_;
    crash();  // and after
    std::uint64_t size = 0;
    for (const auto& part : parts_) size = must(part->set_base_version(version_, size));
  }
  void crash() { check_images(device_); }

  std::uint64_t images() const { return images_; }
  const std::string& wrong() const { return wrong_; }

 private:
  static constexpr auto access = BackingFile::Access::read_write;

  std::unique_ptr<CachePart> attach(CrashDevice& device, const BackingFile& backing,
                                    std::uint32_t node) const {
    const std::uint64_t at = node * node_bytes_;
    auto part = must(CachePart::attach(std::make_unique<Slice>(device, at, part_bytes_)));
    part->set_undo_log(std::make_unique<UndoLog>(
        std::make_unique<Slice>(device, at + part_bytes_, node_bytes_ - part_bytes_),
        undo_geometry_));
    part->set_backing(&backing);
    return part;
  }

  void make_parts() {
    PartIdentity identity;
    identity.path = directory_ / "file";
    identity.layout = layout_;
    identity.pool_job[0] = 1;
    must(device_.resize(all_bytes_));
    for (identity.node = 0; identity.node < sweep_.nodes; ++identity.node) {
      Slice slice(device_, identity.node * node_bytes_, part_bytes_);
      must(CachePart::format(slice, identity, geometry_, file_bytes));
      parts_.push_back(attach(device_, *backing_, identity.node));
    }
    // Every grain that is kept has two fences, all alike: half of them are looked at.
    device_.on_fence = [this](CrashDevice& device) {
      if (++fences_ % 2 == 0) check_images(device);
    };
    for (const auto& part : parts_) must(part->set_base_version(version_, file_bytes).status());
  }

  void persist() {
    for (const auto& part : parts_) must(part->persist());
  }
  void note(const std::string& step) { script_ += step + "; "; }

  void one_step() {
    const std::uint64_t choice = random_() % 20;
    if (choice < 12) {
      const std::uint64_t offset = random_() % (bytes_max - 1);
      const std::uint64_t most = random_() % 4 == 0 ? 1500 : 200;
      write(offset, std::min(bytes_max - offset, 1 + random_() % most),
            choice < 4 ? Acknowledge::durable : Acknowledge::sync);
    } else if (choice < 13) {
      note("persist");
      persist();
    } else if (choice < 16) {
      write_back(choice != 15);
    } else {
      commit();
    }
  }

  void check_images(CrashDevice& device) {
    if (!wrong_.empty()) return;
    const Bytes handed = read_file(directory_ / "file");
    device.for_each_image(
        sweep_.model, images_per_fence, fences_, [&](std::span<const std::byte> image) {
          check(image, file_after_crash(handed, synced_, images_, random_), false);
        });
    const std::vector<std::byte> stored(device.base(), device.base() + all_bytes_);
    check(stored, handed, true);
  }

  void check(std::span<const std::byte> image, const Bytes& file, bool same_boot) {
    if (!wrong_.empty()) return;
    ++images_;
    std::vector<std::pair<std::vector<std::byte>, Bytes>> cut_short;
    recover(image, file, same_boot, images_ % 16 == 0 ? &cut_short : nullptr);
    for (const auto& [again, left] : cut_short) recover(again, left, same_boot, nullptr);
    if (!wrong_.empty()) {
      wrong_ += (same_boot ? ", killed at fence " : ", at fence ") + std::to_string(fences_) +
                ", version " + std::to_string(version_) + " of: " + script_;
    }
  }

  // With `cut_short`, also collects what a crash of the recovery leaves.
  void recover(std::span<const std::byte> image, const Bytes& file, bool same_boot,
               std::vector<std::pair<std::vector<std::byte>, Bytes>>* cut_short) {
    if (!wrong_.empty()) return;
    must(crashed_->set_size(0));
    must(crashed_->write(0, file.data(), file.size()));
    CrashDevice device(all_bytes_, 64);
    device.load(image);
    if (cut_short != nullptr) {
      device.on_fence = [&](CrashDevice& crashing) {
        const Bytes left = read_file(directory_ / "crashed");
        crashing.for_each_image(sweep_.model, 3, fences_, [&](std::span<const std::byte> bytes) {
          cut_short->emplace_back(std::vector<std::byte>(bytes.begin(), bytes.end()), left);
        });
      };
    }
    const auto first = static_cast<std::uint32_t>(random_() % sweep_.nodes);
    for (std::uint32_t turn = 0; turn < sweep_.nodes; ++turn) {
      const auto part = attach(device, *crashed_, (first + turn) % sweep_.nodes);
      const Status back = part->roll_back({{1, 0}, version_, 0, 0});
      if (!back.ok()) {
        wrong_ = back.message();
        return;
      }
      (void)must(part->recover(same_boot));
    }
    const Bytes after = read_file(directory_ / "crashed");
    const Bytes& wanted = versions_[version_];
    if (after == wanted) return;
    const auto differs = std::mismatch(after.begin(), after.end(), wanted.begin(), wanted.end());
    wrong_ = std::to_string(after.size()) + " bytes instead of " + std::to_string(wanted.size()) +
             ", the first difference at " + std::to_string(differs.first - after.begin());
  }

  Sweep sweep_;
  Layout layout_;
  PartGeometry geometry_;
  UndoGeometry undo_geometry_;
  std::uint64_t part_bytes_;
  std::uint64_t node_bytes_;  // part and undo log of a node
  std::uint64_t all_bytes_;
  CrashDevice device_;
  std::mt19937_64 random_;
  TemporaryDirectory directory_;
  Bytes now_;
  Bytes synced_;
  std::uint64_t version_ = 3;  // of the pool
  std::map<std::uint64_t, Bytes> versions_;
  std::optional<BackingFile> backing_;
  std::optional<BackingFile> crashed_;
  std::vector<std::unique_ptr<CachePart>> parts_;  // by node
  std::string script_;
  std::string wrong_;
  std::uint64_t images_ = 0;
  std::uint64_t fences_ = 0;
};

// part_facts.hpp, parts.F1: what the nodes agree on next must not be taken back by a power failure.
TEST(GroupCrash, that_a_part_is_in_use_is_durable_when_it_is_said) {
  const Layout layout{LayoutKind::cyclic, 2, 4096, 0};
  const PartGeometry geometry{.blocks = 2, .journal_entries = 1};
  CrashDevice device((part_file_bytes(layout, geometry) + 4095) / 4096 * 4096, 64);
  PartIdentity identity;
  identity.path = "/file";
  identity.layout = layout;
  identity.pool_job[0] = 1;
  must(device.resize((part_file_bytes(layout, geometry) + 4095) / 4096 * 4096));
  Slice slice(device, 0, device.size_bytes());
  must(CachePart::format(slice, identity, geometry, 0));
  const auto part =
      must(CachePart::attach(std::make_unique<Slice>(device, 0, device.size_bytes())));
  for (const bool in_use : {true, false}) {
    must(part->set_in_use(in_use));
    std::uint64_t images = 0;
    for (const AtomicityModel model :
         {AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines}) {
      device.for_each_image(model, 10, 1, [&](std::span<const std::byte> image) {
        PartStateFormat state;
        std::memcpy(&state, image.data() + part->header().state_offset, sizeof state);
        EXPECT_EQ(fact_of(part->header(), state).in_use, in_use);
        ++images;
      });
    }
    EXPECT_GT(images, 0U);
  }
}

constexpr AtomicityModel models[] = {AtomicityModel::prefix, AtomicityModel::words,
                                     AtomicityModel::lines};

// How many scripts for each model.
std::uint64_t runs() {
  return slow_tests() ? 24 : 2;
}

TEST(GroupCrash, every_image_at_every_fence_goes_back_to_the_version_of_the_pool) {
  const std::uint64_t seed = test_seed();
  for (const AtomicityModel model : models) {
    std::uint64_t images = 0;
    for (std::uint64_t run = 0; run < runs(); ++run) {
      Sweeper sweeper({model, run % 2 == 0 ? 4096U : 16384U, run % 2 == 0 ? 2U : 1U}, seed + run);
      sweeper.run(10);
      images += sweeper.images();
      ASSERT_EQ(sweeper.wrong(), "") << atomicity_name(model) << ", run " << run;
    }
    std::printf("%s: %llu images\n", atomicity_name(model),
                static_cast<unsigned long long>(images));
  }
}

TEST(GroupCrash, what_the_file_was_handed_before_a_commit_goes_back_too) {
  for (const AtomicityModel model : models) {
    Sweeper sweeper({model, 16384}, 1);
    sweeper.write(100, 1000, Acknowledge::sync);
    sweeper.write_back(true);
    sweeper.crash();
    sweeper.commit();
    sweeper.write(100, 50, Acknowledge::durable);
    sweeper.write(11000, 700, Acknowledge::sync);  // makes the file larger
    sweeper.write_back(true);
    sweeper.crash();
    EXPECT_EQ(sweeper.wrong(), "") << atomicity_name(model);
  }
}

TEST(GroupCrash, a_write_whose_fence_failed_may_be_repeated) {
  for (const AtomicityModel model : models) {
    Sweeper sweeper({model, 4096}, 1);
    for (std::uint64_t block = 0; block < 2; ++block) {
      sweeper.write_over_failing_fences(4096 * block + 100, 50);
      sweeper.crash();
    }
    EXPECT_EQ(sweeper.wrong(), "") << atomicity_name(model);
  }
}

// The end of the file is on node 0, and node 1 has a block before it of which it kept little.
TEST(GroupCrash, what_the_file_was_handed_beyond_what_a_node_knew_goes_back_too) {
  for (const AtomicityModel model : models) {
    Sweeper sweeper({model, 4096, 2}, 1);
    sweeper.write(12200, 300, Acknowledge::sync);
    sweeper.write(16400, 300, Acknowledge::sync);
    sweeper.commit();
    sweeper.write(14000, 200, Acknowledge::sync);
    sweeper.write_back(true);
    sweeper.crash();
    EXPECT_EQ(sweeper.wrong(), "") << atomicity_name(model);
  }
}

}  // namespace
}  // namespace perdure
