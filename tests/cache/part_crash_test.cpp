// SPDX-License-Identifier: BSD-3-Clause
//
// Crash sweep of a cache part: a script of writes and write-backs on the crash device; at every
// fence, the part is recovered from every image that a power failure could leave, into what the
// cached file could then hold.
//
// The file's stamp could be that of its last sync or of any change since: none of them may look
// like somebody else's change, and one of after the next boot must (cache.P14).
//
// The oracle knows nothing of grains or journals. It keeps, for each byte, the values that it may
// have: that of its last durable acknowledgement, and all that were written since.
// ctest: DEPS cache crash_device ALONE TIMEOUT 300 LONG 1800
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>
#include <functional>

#include "cache/testing/small_device.hpp"
#include "pmem/testing/crash_device.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t file_bytes = 11000;
constexpr std::uint64_t bytes_max = 5 * 4096;
constexpr std::uint64_t images_per_fence = 60;

// An image as a device, for recovery, which does not write to it.
class ImageDevice final : public Device {
 public:
  explicit ImageDevice(std::span<const std::byte> image) : bytes_(image.begin(), image.end()) {}
  DeviceDescription describe() const override {
    return {"image", PersistenceClass::power_failure, 64};
  }
  std::byte* base() const override { return bytes_.data(); }
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  DeviceCounters counters() const override { return {}; }
  Status resize(std::uint64_t) override { return refused(); }
  void store(std::uint64_t, const void*, std::size_t) override { ADD_FAILURE(); }
  void store_word(std::uint64_t, std::uint64_t) override { ADD_FAILURE(); }
  void copy(std::uint64_t, const void*, std::size_t) override { ADD_FAILURE(); }
  void flush(std::uint64_t, std::size_t) override {}  // of what is known of changes to the file
  Status fence() override { return Status::success(); }

 private:
  static Status refused() { return {Code::wrong_state, "recovery writes to the part"}; }
  mutable std::vector<std::byte> bytes_;
};

// The values that each byte may have after a crash.
class Allowed {
 public:
  explicit Allowed(const Bytes& bytes) {
    for (std::size_t i = 0; i < bytes_max; ++i) {
      now_.push_back(i < bytes.size() ? bytes[i] : 0);
      values_.push_back(only(now_.back()));
    }
    ever_ = values_;
  }
  void write(std::uint64_t offset, const Bytes& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      now_[offset + i] = bytes[i];
      values_[offset + i].set(bytes[i]);
      ever_[offset + i].set(bytes[i]);
    }
  }
  // A cut that is under way may leave any older byte where it cuts.
  void cut(std::uint64_t offset, std::uint64_t bytes) {
    write(offset, Bytes(bytes, 0));
    for (std::size_t i = offset; i < offset + bytes; ++i) values_[i] = ever_[i];
  }
  void acknowledge(std::uint64_t offset, std::uint64_t bytes) {
    for (std::size_t i = offset; i < offset + bytes; ++i) values_[i] = only(now_[i]);
  }
  // The first byte of a range that is wrong, or nothing. What was last written is always allowed.
  std::string fault(const Bytes& file, std::uint64_t offset, std::uint64_t bytes) const {
    const std::size_t end = offset + bytes;
    for (std::size_t first = offset; first < end; first += run) {
      const std::size_t last = std::min(first + run, end);
      if (last <= file.size() && std::memcmp(&file[first], &now_[first], last - first) == 0) {
        continue;
      }
      for (std::size_t i = first; i < last; ++i) {
        const unsigned char got = i < file.size() ? file[i] : 0;
        if (values_[i].test(got)) continue;
        return "byte " + std::to_string(i) + " is " + std::to_string(got) + ", last written " +
               std::to_string(now_[i]);
      }
    }
    return "";
  }
  Bytes now(std::uint64_t offset, std::uint64_t bytes) const {
    const auto from = now_.begin() + static_cast<std::ptrdiff_t>(offset);
    return {from, from + static_cast<std::ptrdiff_t>(bytes)};
  }

 private:
  static constexpr std::size_t run = 64;  // compared at once
  using Values = std::bitset<256>;        // of one byte
  static Values only(unsigned char value) { return Values().set(value); }

  Bytes now_;
  std::vector<Values> values_;
  std::vector<Values> ever_;
};

struct Sweep {
  AtomicityModel model;
  std::uint64_t block_bytes;
  std::uint32_t nodes;
  // Which blocks have room (cache.P16).
  std::function<bool(std::uint64_t block)> has_room = [](std::uint64_t) { return true; };
  // So many have room at a time, and make it for others (cache.P17); 0: as has_room says.
  std::uint32_t room = 0;
};

// Called when a file is synchronised, by this program's fsync and fdatasync.
std::function<void()> on_sync;

}  // namespace
}  // namespace perdure

extern "C" int fdatasync(int fd) {
  const int done = static_cast<int>(::syscall(SYS_fdatasync, fd));
  if (perdure::on_sync) perdure::on_sync();
  return done;
}
extern "C" int fsync(int fd) {
  const int done = static_cast<int>(::syscall(SYS_fsync, fd));
  if (perdure::on_sync) perdure::on_sync();
  return done;
}

namespace perdure {
namespace {

class Sweeper {
 public:
  Sweeper(const Sweep& sweep, std::uint64_t seed)
      : sweep_(sweep), random_(seed), first_(random_bytes(file_bytes, random_)), allowed_(first_) {
    write_file(directory_ / "file", first_);
    write_file(directory_ / "crashed", first_);
    synced_ = first_;
    backing_.emplace(must(BackingFile::open(directory_ / "file", access)));
    crashed_.emplace(must(BackingFile::open(directory_ / "crashed", access)));
    make_part();
    if (sweep_.room != 0) on_sync = [this] { note_file_synced(); };
  }
  ~Sweeper() { on_sync = nullptr; }
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // A random script of `steps`; all of the file that is this node's.
  void run(int steps) {
    for (int step = 0; step < steps && wrong_.empty(); ++step) one_step();
    crash();
    device_->on_fence = nullptr;  // the part's end is not swept
  }
  // The same by hand.
  void write(std::uint64_t offset, std::uint64_t bytes, Acknowledge when) {
    const Bytes fresh = random_bytes(bytes, random_);
    const bool durable = when == Acknowledge::durable;
    if (durable && bytes <= std::min(journal_bytes, sweep_.block_bytes)) {
      whole_or_absent_ = [before = allowed_, offset, fresh](const Bytes& file) {
        Bytes got(fresh.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          got[i] = offset + i < file.size() ? file[offset + i] : 0;
        }
        return got == fresh ? "" : before.fault(file, offset, fresh.size());
      };
    }
    allowed_.write(offset, fresh);
    note("write " + std::to_string(bytes) + " at " + std::to_string(offset) +
         (durable ? " durably" : ""));
    if (durable && sweep_.room == 0) before_durable_ = read_file(directory_ / "file");
    must(part_->write(offset, fresh.data(), bytes, when));
    before_durable_.reset();
    whole_or_absent_ = nullptr;
    if (durable) allowed_.acknowledge(offset, bytes);
    if (durable && any_through(offset, bytes)) note_synced();
  }
  void write_pieces(const PiecesFormat& run, Acknowledge when) {
    const Bytes fresh = random_bytes(std::uint64_t{run.bytes} * run.count, random_);
    const bool durable = when == Acknowledge::durable;
    const auto each_piece = [run](const auto& visit) {
      for (std::uint64_t i = 0; i < run.count; ++i)
        visit(run.offset + i * run.stride, i * run.bytes);
    };
    const auto bytes_from = [run, fresh](std::uint64_t at) {
      const auto from = fresh.begin() + static_cast<std::ptrdiff_t>(at);
      return Bytes(from, from + run.bytes);
    };
    if (durable) {
      whole_or_absent_ = [=, before = allowed_](const Bytes& file) {
        std::string wrong;
        each_piece([&](std::uint64_t offset, std::uint64_t at) {
          Bytes got(run.bytes);
          for (std::size_t i = 0; i < got.size(); ++i) {
            got[i] = offset + i < file.size() ? file[offset + i] : 0;
          }
          if (wrong.empty() && got != bytes_from(at)) wrong = before.fault(file, offset, run.bytes);
        });
        return wrong;
      };
    }
    each_piece(
        [&](std::uint64_t offset, std::uint64_t at) { allowed_.write(offset, bytes_from(at)); });
    note("write " + std::to_string(run.count) + " pieces of " + std::to_string(run.bytes) + " at " +
         std::to_string(run.offset) + ", " + std::to_string(run.stride) + " apart" +
         (durable ? ", durably" : ""));
    if (durable && sweep_.room == 0) before_durable_ = read_file(directory_ / "file");
    must(part_->write_pieces(run, reinterpret_cast<const std::byte*>(fresh.data()), when));
    before_durable_.reset();
    whole_or_absent_ = nullptr;
    each_piece([&](std::uint64_t offset, std::uint64_t) {
      if (durable) allowed_.acknowledge(offset, run.bytes);
      if (durable && any_through(offset, run.bytes)) note_synced();
    });
  }
  void persist() {
    note("persist");
    must(part_->persist());
    allowed_.acknowledge(0, bytes_max);
    if (part_->through_bytes() != 0) note_synced();
  }
  void write_back(bool sync) {
    note(sync ? "write back and sync" : "write back");
    (void)must(part_->write_back(random_(), sync));
    if (!sync) return;
    allowed_.acknowledge(0, bytes_max);
    stamps_ = {must(backing_->stamp())};
    note_synced();
  }
  // As MPI_File_set_size would.
  void set_size(std::uint64_t bytes) {
    note("set the size to " + std::to_string(bytes));
    const std::uint64_t before = part_->size_bytes();
    if (bytes < before) allowed_.cut(bytes, before - bytes);
    must(part_->changes().begin());
    must(part_->set_size(bytes));
    must(backing_->set_size(bytes));
    note_stamp();
    must(backing_->sync());
    must(part_->changes().end());
    if (bytes < before) allowed_.acknowledge(bytes, before - bytes);
    synced_.resize(bytes);
  }
  // A power failure now.
  void crash() { check_images(*device_); }

  std::uint64_t images() const { return images_; }
  std::uint64_t fences() const { return fences_; }
  std::uint64_t judged() const { return judged_; }
  std::uint64_t evicted_blocks() const {
    return part_->evicted_bytes_of_all() / sweep_.block_bytes;
  }
  const std::string& wrong() const { return wrong_; }

  // As much as makes a block worth room.
  void use(std::uint64_t offset) {
    note("use " + std::to_string(offset));
    for (int times = 0; times < 12; ++times) {
      std::byte byte{};
      must(part_->read(offset, &byte, 1));
    }
  }

 private:
  static constexpr auto access = BackingFile::Access::read_write;

  void make_part() {
    PartIdentity identity;
    identity.path = directory_ / "file";
    identity.node = sweep_.nodes - 1;
    identity.layout = make_layout(LayoutKind::cyclic, sweep_.nodes, sweep_.block_bytes, file_bytes);
    const PartGeometry geometry{.blocks = bytes_max / sweep_.block_bytes, .journal_entries = 2};
    const std::uint64_t bytes = part_file_bytes(identity.layout, geometry);
    auto device = std::make_unique<CrashDevice>(bytes, 64);
    device_ = device.get();
    must(device->resize(bytes));
    identity.file_stamp = must(backing_->stamp());
    stamps_ = {identity.file_stamp};
    must(CachePart::format(*device, identity, geometry, file_bytes));
    device->on_fence = [this](CrashDevice& crashing) {
      ++fences_;
      check_images(crashing);
    };
    const PartHeaderFormat header = must(read_part_header(*device));
    std::unique_ptr<Device> small;
    if (sweep_.room != 0) {
      small = std::make_unique<RoomDevice>(std::move(device), room_);
    } else {
      small = std::make_unique<SmallDevice>(std::move(device), room_for(header, sweep_.has_room));
    }
    part_ = must(CachePart::attach(std::move(small)));
    part_->set_backing(&*backing_);
    if (sweep_.room == 0) return;
    write_file(directory_ / "owners", {});
    const std::string owners = directory_ / "owners";
    must(part_->join_owners(FileHandle(::open(owners.c_str(), O_RDWR | O_CLOEXEC))));
    part_->set_evicting({3, 3});
  }

  void note(const std::string& step) { script_ += step + "; "; }
  void note_synced() { synced_ = read_file(directory_ / "file"); }
  // Not of the other file, into which crashes are recovered.
  void note_file_synced() {
    if (!recovering_) note_synced();
  }
  bool any_through(std::uint64_t offset, std::uint64_t bytes) const {
    for (std::uint64_t at = offset; at < offset + bytes; ++at) {
      if (!sweep_.has_room(place_of(part_->layout(), at).block)) return true;
    }
    return false;
  }

  // A random range of this node's, of one block if there are several nodes.
  std::pair<std::uint64_t, std::uint64_t> range() {
    while (true) {
      const std::uint64_t offset = random_() % (bytes_max - 1);
      const std::uint64_t most = random_() % 4 == 0 ? 9000 : 300;
      const std::uint64_t request = std::min(bytes_max - offset, 1 + random_() % most);
      const Layout& layout = part_->layout();
      if (place_of(layout, offset).node == part_->node()) {
        return {offset, run_on_node(layout, offset, request)};
      }
    }
  }

  // Some of that, in pieces; most of them words.
  PiecesFormat pieces() {
    const auto [begin, bytes] = range();
    PiecesFormat run{begin, 1,
                     static_cast<std::uint32_t>(random_() % 4 == 0 ? 3 : 1 << random_() % 4),
                     static_cast<std::uint32_t>(2 + random_() % 20)};
    run.offset -= random_() % 4 == 0 ? 0 : begin % run.bytes;
    run.stride = std::uint64_t{run.bytes} * (1 + random_() % 30);
    if (run.bytes > bytes) return {begin, 1, 1, 1};
    const std::uint64_t most = (bytes - run.bytes) / run.stride + 1;
    run.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.count, most));
    return run;
  }

  void one_step() {
    if (sweep_.room != 0 && random_() % 3 == 0) return use(range().first);
    if (random_() % 4 == 0) {
      return write_pieces(pieces(), random_() % 2 == 0 ? Acknowledge::durable : Acknowledge::sync);
    }
    const std::uint64_t choice = random_() % 20;
    if (choice < 14) {
      const auto [offset, bytes] = range();
      write(offset, bytes, choice < 7 ? Acknowledge::durable : Acknowledge::sync);
    } else if (choice < 16) {
      persist();
    } else if (choice < 19) {
      write_back(choice != 18);
    } else {
      set_size(random_() % bytes_max);
    }
  }

  void check_images(CrashDevice& device) {
    if (!wrong_.empty()) return;
    note_stamp();
    const Bytes handed = read_file(directory_ / "file");
    // A durable write that passes through has the file synchronised before the next fence.
    if (before_durable_ && *before_durable_ != handed) synced_ = handed;
    device.for_each_image(sweep_.model, images_per_fence, fences_,
                          [&](std::span<const std::byte> image) { check(image, handed); });
  }

  void check(std::span<const std::byte> image, const Bytes& handed) {
    if (!wrong_.empty()) return;
    ++images_;
    const Bytes before = file_after_crash(handed, synced_, images_, random_);
    must(crashed_->set_size(0));
    must(crashed_->write(0, before.data(), before.size()));
    auto part = CachePart::attach(std::make_unique<ImageDevice>(image));
    if (!part.ok()) {
      wrong_ = part.status().message();
      return;
    }
    part.value()->set_backing(&*crashed_);
    check_stamps(*part.value());
    recovering_ = true;
    must(part.value()->recover(false));
    recovering_ = false;
    const Bytes after = read_file(directory_ / "crashed");
    if (wrong_.empty()) wrong_ = allowed_.fault(after, 0, bytes_max);
    if (wrong_.empty() && whole_or_absent_) wrong_ = whole_or_absent_(after);
    if (!wrong_.empty()) wrong_ += " at fence " + std::to_string(fences_) + " of: " + script_;
  }

  void note_stamp() {
    const FileStamp now = must(backing_->stamp());
    if (stamps_.empty() || !(stamps_.back() == now)) stamps_.push_back(now);
  }

  // After another boot, and only where recovery would write.
  void check_stamps(const CachePart& part) {
    if (part.unsaved_bytes(false) == 0) return;
    const FileEvidence evidence = part.changes().evidence();
    const std::uint64_t boot = stamps_.back().changed_ns + 1'000'000'000;
    for (const FileStamp& stamp : stamps_) {
      if (judge_file(evidence, stamp, false, boot) == FileVerdict::changed) {
        wrong_ = "a change of the part's own looks like another's";
      }
    }
    const FileStamp later{file_bytes, boot + 5, boot + 5};
    if (judge_file(evidence, later, false, boot) != FileVerdict::changed) {
      wrong_ = "a change by others was not noticed";
    }
    ++judged_;
  }

  Sweep sweep_;
  SharedRoom room_{sweep_.room};
  bool recovering_ = false;
  std::mt19937_64 random_;
  TemporaryDirectory directory_;
  Bytes first_;
  Allowed allowed_;
  Bytes synced_;                         // the cached file at its last fsync
  std::optional<Bytes> before_durable_;  // the same at the begin of a durable write, during it
  std::optional<BackingFile> backing_;
  std::optional<BackingFile> crashed_;
  CrashDevice* device_ = nullptr;
  std::unique_ptr<CachePart> part_;
  std::function<std::string(const Bytes&)> whole_or_absent_;  // of the write that is under way
  std::string script_;
  std::string wrong_;
  std::vector<FileStamp> stamps_;  // that the file has had since its last fsync
  std::uint64_t judged_ = 0;
  std::uint64_t images_ = 0;
  std::uint64_t fences_ = 0;
};

constexpr AtomicityModel models[] = {AtomicityModel::prefix, AtomicityModel::words,
                                     AtomicityModel::lines};

TEST(PartCrash, every_image_at_every_fence_holds_what_was_acknowledged_as_durable) {
  const std::uint64_t seed = test_seed();
  for (const AtomicityModel model : models) {
    std::uint64_t fences = 0;
    std::uint64_t images = 0;
    std::uint64_t judged = 0;
    for (std::uint64_t run = 0; run < (slow_tests() ? 12U : 4U); ++run) {
      const Sweep sweep{model, run % 3 == 0 ? 1024U : 4096U, run % 4 == 3 ? 2U : 1U};
      Sweeper sweeper(sweep, seed + run);
      sweeper.run(12);
      fences += sweeper.fences();
      images += sweeper.images();
      judged += sweeper.judged();
      ASSERT_EQ(sweeper.wrong(), "") << atomicity_name(model) << ", run " << run;
    }
    std::printf("%s: %llu fences, %llu images, %llu judged\n", atomicity_name(model),
                static_cast<unsigned long long>(fences), static_cast<unsigned long long>(images),
                static_cast<unsigned long long>(judged));
    EXPECT_GT(judged, 1000U);
  }
}

// cache.P16: what is acknowledged as durable is in the cached file, or intended.
TEST(PartCrash, every_image_at_every_fence_holds_what_passed_through_and_what_did_not) {
  const std::uint64_t seed = test_seed();
  for (const AtomicityModel model : models) {
    std::uint64_t images = 0;
    for (std::uint64_t run = 0; run < (slow_tests() ? 8U : 4U); ++run) {
      Sweep sweep{model, run % 3 == 0 ? 1024U : 4096U, run % 4 == 3 ? 2U : 1U};
      sweep.has_room = [run](std::uint64_t block) { return (block + run) % 4 < run % 3; };
      Sweeper sweeper(sweep, seed + run);
      sweeper.run(12);
      images += sweeper.images();
      ASSERT_EQ(sweeper.wrong(), "") << atomicity_name(model) << ", run " << run;
    }
    std::printf("%s: %llu images\n", atomicity_name(model),
                static_cast<unsigned long long>(images));
    EXPECT_GT(images, 1000U);
  }
}

// cache.P17.
TEST(PartCrash, every_image_at_every_fence_holds_what_was_evicted) {
  const std::uint64_t seed = test_seed();
  for (const AtomicityModel model : models) {
    std::uint64_t images = 0;
    std::uint64_t evicted = 0;
    for (std::uint64_t run = 0; run < (slow_tests() ? 10U : 4U); ++run) {
      Sweep sweep{model, run % 3 == 0 ? 1024U : 4096U, run % 4 == 3 ? 2U : 1U};
      sweep.room = static_cast<std::uint32_t>(1 + run % 3);
      Sweeper sweeper(sweep, seed + run);
      sweeper.run(25);
      images += sweeper.images();
      evicted += sweeper.evicted_blocks();
      ASSERT_EQ(sweeper.wrong(), "") << atomicity_name(model) << ", run " << run;
    }
    std::printf("%s: %llu images, %llu blocks evicted\n", atomicity_name(model),
                static_cast<unsigned long long>(images), static_cast<unsigned long long>(evicted));
    EXPECT_GT(images, 1000U);
    EXPECT_GT(evicted, 5U);
  }
}

// cache.P6: the part alone has it durably, and then nobody would.
TEST(PartCrash, what_is_durable_here_alone_is_durable_in_the_file_before_it_is_evicted) {
  for (const AtomicityModel model : models) {
    Sweep sweep{model, 4096, 1};
    sweep.room = 1;
    Sweeper sweeper(sweep, 1);
    sweeper.use(0);
    sweeper.write(100, 3000, Acknowledge::durable);
    sweeper.write(200, 300, Acknowledge::sync);
    sweeper.use(5000);
    sweeper.use(5000);
    sweeper.crash();
    sweeper.write(5000, 3000, Acknowledge::sync);
    sweeper.persist();
    sweeper.use(100);
    sweeper.use(100);
    sweeper.crash();
    EXPECT_EQ(sweeper.evicted_blocks(), 2U);
    EXPECT_EQ(sweeper.wrong(), "") << atomicity_name(model);
  }
}

TEST(PartCrash, a_finished_small_write_is_not_done_again_over_a_later_one) {
  for (const AtomicityModel model : models) {
    Sweeper sweeper({model, 4096, 1}, 1);
    sweeper.write(100, 50, Acknowledge::durable);
    sweeper.write(0, 8192, Acknowledge::durable);
    sweeper.crash();
    EXPECT_EQ(sweeper.wrong(), "") << atomicity_name(model);
  }
}

// A script that was drawn once: of the later write, which is not durable, the length alone is, in
// the entry of the finished one.
TEST(PartCrash, a_finished_small_write_is_not_done_again_with_the_length_of_a_later_one) {
  Sweep sweep{AtomicityModel::prefix, 1024, 2};
  sweep.room = 1;
  Sweeper sweeper(sweep, 3'089'462'942);
  sweeper.run(25);
  EXPECT_EQ(sweeper.wrong(), "");
}

TEST(PartCrash, what_the_cached_file_has_durably_is_not_replaced_by_what_was_durable_before) {
  for (const AtomicityModel model : models) {
    Sweeper sweeper({model, 4096, 1}, 1);
    sweeper.write(100, 5000, Acknowledge::durable);
    sweeper.write(100, 5000, Acknowledge::sync);
    sweeper.write_back(true);
    sweeper.crash();
    EXPECT_EQ(sweeper.wrong(), "") << atomicity_name(model);
  }
}

TEST(PartCrash, what_was_cut_off_a_file_does_not_come_back_nor_hide_what_was_written_since) {
  for (const AtomicityModel model : models) {
    for (const std::uint64_t left : {0U, 3000U}) {
      Sweeper sweeper({model, 4096, 1}, 1);
      sweeper.write(2000, 5000, Acknowledge::durable);
      sweeper.set_size(left);
      sweeper.crash();
      sweeper.write(6000, 100, Acknowledge::sync);
      sweeper.write_back(true);
      sweeper.crash();
      sweeper.write(9000, 10, Acknowledge::durable);
      sweeper.crash();
      EXPECT_EQ(sweeper.wrong(), "") << atomicity_name(model);
    }
  }
}

TEST(PartCrash, a_part_whose_making_was_cut_short_is_whole_or_has_no_magic_number) {
  for (const AtomicityModel model : models) {
    PartIdentity identity;
    identity.path = "/some/file";
    const PartGeometry geometry{.blocks = 1, .journal_entries = 1};
    const std::uint64_t bytes = part_file_bytes(identity.layout, geometry);
    CrashDevice device(bytes, 64);
    must(device.resize(bytes));
    std::uint64_t unborn = 0;
    std::uint64_t born = 0;
    const auto check = [&](std::span<const std::byte> image) {
      std::uint64_t magic = 0;
      std::memcpy(&magic, image.data(), sizeof magic);
      ++(magic == 0 ? unborn : born);
      const auto part = CachePart::attach(std::make_unique<ImageDevice>(image));
      EXPECT_EQ(part.ok(), magic != 0) << part.status().message();
    };
    device.on_fence = [&](CrashDevice& d) { d.for_each_image(model, 30, 1, check); };
    must(CachePart::format(device, identity, geometry, 12345));
    device.for_each_image(model, 30, 1, check);
    EXPECT_GT(unborn, 0U);
    EXPECT_GT(born, 0U);
  }
}

TEST(PartCrash, a_fence_that_fails_is_told_and_nothing_is_acknowledged_by_it) {
  TemporaryDirectory directory;
  write_file(directory / "file", Bytes(10000, 1));
  const auto backing = must(BackingFile::open(directory / "file", BackingFile::Access::read_write));
  for (std::uint64_t failing = 3;; ++failing) {
    PartIdentity identity;
    identity.layout.block_bytes = 4096;
    const PartGeometry geometry{.blocks = 4, .journal_entries = 1};
    const std::uint64_t bytes = part_file_bytes(identity.layout, geometry);
    auto device = std::make_unique<CrashDevice>(bytes, 64);
    must(device->resize(bytes));
    must(CachePart::format(*device, identity, geometry, 10000));
    device->failing_fence = failing;
    auto part = must(CachePart::attach(std::move(device)));
    part->set_backing(&backing);
    const Bytes fresh(100, 2);
    const bool small = part->write(50, fresh.data(), 100, Acknowledge::durable).ok();
    const bool large = part->write(0, Bytes(8000, 3).data(), 8000, Acknowledge::durable).ok();
    const bool all = part->persist().ok();
    const bool cut = part->set_size(5000).ok();
    EXPECT_LE(!small + !large + !all + !cut, 1);
    if (small && large && all && cut) break;
    ASSERT_LT(failing, 40U);
  }
}

}  // namespace
}  // namespace perdure
