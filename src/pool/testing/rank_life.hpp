// SPDX-License-Identifier: BSD-3-Clause
//
// The random life of one rank's part of a pool, beside what each version must hold of it: arrays
// of every way in which changes are found, scalars, and files that grow. It can begin with what
// another number of ranks has left (rank_shares.hpp).
//
// Sizes change, also several times while a version is saved; buffers of the program move, or go and
// come back at the same address with other contents; commits fail; versions are restored, in place
// of the restart too; arrays come and go. What all ranks do together is drawn by the caller, whose
// calls of accept(), take() and the like say how it ended. Expectations that fail are GoogleTest's.
//
// Threads: one at a time.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/testing/fake_gpu.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/pool.hpp"
#include "pool/testing/words.hpp"
#include "pool/written_tracker.hpp"
#include "text_file.hpp"

namespace perdure {

struct LifeKind {
  ArrayMode mode;
  bool checksums = true;
  bool marks = false;
  bool compare = false;
  TrackerKind tracker = TrackerKind::chosen;
  bool gpu = false;  // its buffer may be memory of a GPU
};
inline constexpr LifeKind life_kinds[] = {
    {ArrayMode::copy, true},
    {ArrayMode::copy, false},
    {ArrayMode::log, true},
    {ArrayMode::log, false},
    {ArrayMode::log, true, false, false, TrackerKind::kernel},
    {ArrayMode::log, false, false, false, TrackerKind::kernel},
    {ArrayMode::log, true, false, false, TrackerKind::faults},
    {ArrayMode::log, false, false, false, TrackerKind::faults},
    {ArrayMode::log, true, true},
    {ArrayMode::log, false, true},
    {ArrayMode::log, true, false, true},
    {ArrayMode::twin, true},
    {ArrayMode::twin, false},
    {ArrayMode::copy, true, false, false, TrackerKind::chosen, true},
    {ArrayMode::copy, false, false, false, TrackerKind::chosen, true},
    {ArrayMode::log, true, false, false, TrackerKind::chosen, true},
};

// Memory of the program, of which one of three places is the buffer: two begin at pages. With a
// `gpu`, memory of that as well.
class LifePlaces {
 public:
  static constexpr std::uint64_t bytes = std::uint64_t{128} << 10U;
  explicit LifePlaces(FakeGpu* gpu)
      : at_(::mmap(nullptr, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        gpu_(gpu) {
    EXPECT_NE(at_, MAP_FAILED);
    if (gpu != nullptr) on_gpu_ = gpu->allocate(3 * bytes);
  }
  ~LifePlaces() {
    ::munmap(at_, 3 * bytes);
    if (gpu_ != nullptr) gpu_->free(on_gpu_);
  }
  LifePlaces(const LifePlaces&) = delete;
  LifePlaces& operator=(const LifePlaces&) = delete;
  std::int64_t* of(std::uint64_t place) const {
    return reinterpret_cast<std::int64_t*>(static_cast<std::byte*>(at_) + place * bytes +
                                           (place == 2 ? 24 : 0));
  }
  std::byte* of_gpu(std::uint64_t place) const {
    return on_gpu_ + place * bytes + (place == 2 ? 24 : 0);
  }

 private:
  void* at_;
  FakeGpu* gpu_;
  std::byte* on_gpu_ = nullptr;
};

using LifeBox = std::optional<std::uint64_t>;  // the first cell, in a global array

// What a rank gets of an array that another number of ranks made.
struct LifeShare {
  RankRule rule = RankRule::none;
  Words contents;  // by hand: as many of any
  LifeBox first;
};

// An array of a life, and what it must hold.
struct LifeArray {
  std::string name;
  LifeKind kind{};
  VersionedArray* array = nullptr;  // null: it is closed
  bool held_by_head = false;        // as this array, not as one of its name before
  bool in_commit = false;           // under way
  bool in_version = false;          // that it makes
  bool closing = false;             // it was closed, and its commit is under way
  bool erased = false;              // by that
  bool is_lost = false;             // what it has as its buffer is not there
  bool is_given = false;            // its buffer is the program's
  std::byte* on_gpu = nullptr;      // that, if it is a GPU's
  Words now;                        // what may be read
  Words working;                    // twin: what is being written
  Words saved;                      // by the commit under way
  std::uint64_t rows = 0;           // twin: how it is written
  std::map<std::uint64_t, Words> versions;
  LifeBox box;                                   // of the next version
  bool said_box = false;                         // by the program in this run, of this size
  LifeBox saved_box;                             // as the commit under way notes it
  std::map<std::uint64_t, std::uint64_t> boxes;  // of versions
  std::optional<LifeShare> share;                // of what others made, at this start
  std::unique_ptr<LifePlaces> places;

  bool is_twin() const { return kind.mode == ArrayMode::twin; }
};

// A variable of the program, and what versions must hold of it.
struct LifeScalar {
  std::string name;
  std::int64_t value = 0;
  std::int64_t now = 0;  // what it must be
  bool is_bound = false;
  bool may_be_bound = true;           // before the restart
  std::optional<std::int64_t> saved;  // by the commit under way
  std::map<std::uint64_t, std::int64_t> versions;
};

// What all ranks that ever had a file know of it. Named once, it is named in every run.
struct LifeLines {
  perdure_test::TextFile file;
  std::optional<std::string> first;  // what it was when it was named first
};
// A file that the program writes, and what versions must hold of it.
struct LifeFile {
  std::shared_ptr<LifeLines> lines = std::make_shared<LifeLines>();
  std::string now;
  bool is_named = false;             // in this run
  std::optional<std::string> saved;  // by the commit under way
  std::map<std::uint64_t, std::string> versions;
};

// How a version is committed, on all ranks; what fails of it fails on this one.
struct LifeCommit {
  bool asynchronous = false;
  bool refused = false;             // by the program
  bool quiet = false;               // it does nothing meanwhile
  std::uint64_t failing_fence = 0;  // from here on; 0: none
};

class RankLife {
 public:
  static constexpr std::uint64_t most_words = 2600;
  static constexpr std::uint64_t global_words = 20000;  // of all arrays that have boxes
  static constexpr std::uint64_t most_given = LifePlaces::bytes / 8 - 3;

  explicit RankLife(std::uint64_t seed, FakeGpu* gpu = nullptr) : random_(seed), gpu_(gpu) {}

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  std::int64_t word() { return static_cast<std::int64_t>(random_()); }
  std::uint64_t head() const { return pool_->status().version; }
  std::vector<LifeArray>& arrays() { return arrays_; }
  std::array<LifeScalar, 2>& scalars() { return scalars_; }
  std::vector<LifeFile>& files() { return files_; }
  LifeArray& array(std::uint64_t index) { return arrays_[index]; }
  bool is_staged() const { return staged_; }
  FakeGpu* gpu() const { return gpu_; }
  LifeArray& some_array() { return arrays_[below(arrays_.size())]; }

  bool is_on_gpus() const { return on_gpus_; }

  // Another one begins. `staged`: all arrays can be committed while the program stores.
  void begin(std::uint64_t arrays, bool staged, bool on_gpus = false) {
    arrays_.clear();
    arrays_.resize(arrays);
    staged_ = staged;
    on_gpus_ = on_gpus;
    for (std::size_t i = 0; i < arrays; ++i) {
      arrays_[i].name = "array" + std::to_string(i);
      do {
        arrays_[i].kind = life_kinds[below(std::size(life_kinds))];
      } while (!is_possible(arrays_[i].kind));
      arrays_[i].places = std::make_unique<LifePlaces>(arrays_[i].kind.gpu ? gpu_ : nullptr);
    }
    scalars_ = {};
    scalars_[0].name = "iteration";
    scalars_[1].name = "other";
    files_.clear();
    attempt_ = 0;
  }

  void set_pool(Pool& pool, CrashDevice& medium) {
    pool_ = &pool;
    medium_ = &medium;
  }
  void forget_pool() {
    pool_ = nullptr;
    medium_ = nullptr;
    for (LifeArray& member : arrays_) member.array = nullptr;
  }
  // The pool was opened, at `version`.
  void attach(std::uint64_t version, bool may_be_given) {
    for (LifeArray& member : arrays_) {
      member.array = nullptr;
      member.in_commit = member.closing = member.erased = member.is_lost = false;
      member.held_by_head = member.versions.contains(version);
      if (!one_in(4)) open(member, may_be_given);
    }
    attach_others();
  }
  // The same where another number of ranks made it: an array of theirs is open where there is a
  // share of it.
  void attach_shares(const std::set<std::string>& theirs) {
    for (LifeArray& member : arrays_) {
      if (member.share || (!theirs.contains(member.name) && !one_in(4))) open(member, true);
      const bool lies = member.share && member.share->first;
      if (lies && member.array != nullptr) say_box(member, *member.share->first);
    }
    attach_others();
  }
  // Of the version that was under way. It exists, though no call said so.
  void take_attempt(std::uint64_t version) {
    if (version != attempt_) return;
    for (LifeArray& member : arrays_) {
      take_saved(member, version);
    }
    for (LifeScalar& scalar : scalars_) {
      scalar.versions.erase(version);
      if (scalar.saved) scalar.versions[version] = *scalar.saved;
    }
    take_files(version);
  }
  std::uint64_t attempt() const { return attempt_; }

  // Contents are looked at when the pool has restarted.
  void open(LifeArray& member, bool may_be_given) {
    if (member.array != nullptr || member.closing) return;
    const ArrayShape of = shape_to_open(member);
    const ArrayOptions options = options_to_open(member, of, may_be_given);
    const auto opened = pool_->open_array(member.name, of, options);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    note_opened(member, opened.value());
  }
  // [collective] `refused`: this rank has a reason why not. Returns whether the array is open.
  bool open_on_all(LifeArray& member, bool refused) {
    const ArrayShape of = shape_to_open(member);
    const ArrayOptions options = options_to_open(member, of, true);
    const Status local = refused ? Status(Code::io_error, "refused") : Status::success();
    const auto opened = pool_->open_array_on_all(member.name, of, options, local);
    if (opened.ok()) note_opened(member, opened.value());
    return opened.ok();
  }

  // It was restored. What it lacks is zero, or as it was in the beginning.
  void take(std::uint64_t version, bool at_start) {
    for (LifeArray& member : arrays_) {
      member.held_by_head = member.versions.contains(version);
      member.rows = random_();
      if (member.array == nullptr) continue;
      if (member.held_by_head) {
        member.now = member.versions.at(version);
      } else if (!at_start) {
        std::ranges::fill(member.now, 0);
      }
      member.box = box_of(member, version);
      if (member.said_box) say_box(member, below(3000));  // where it lies is the program's affair
    }
    for (LifeScalar& scalar : scalars_) {
      const auto found = scalar.versions.find(version);
      if (scalar.is_bound && found != scalar.versions.end()) scalar.now = found->second;
    }
    for (LifeFile& file : files_) cut(file, version);
  }
  // The restart has brought what another number of ranks had at `version`, and this rank's share of
  // it is that version from now on.
  void take_shares(std::uint64_t version) {
    for (LifeArray& member : arrays_) {
      member.rows = random_();
      if (member.array == nullptr) continue;
      const bool taken = member.share && member.share->rule != RankRule::by_hand;
      if (taken) member.now = member.share->contents;
      member.versions[version] = member.now;
      if (member.box) member.boxes[version] = *member.box;
      member.held_by_head = pool_->keep() > 1;  // else it is part of the next one only
    }
    for (LifeScalar& scalar : scalars_) {
      const auto found = scalar.versions.find(version);
      if (scalar.is_bound && found != scalar.versions.end()) scalar.now = found->second;
      if (scalar.is_bound) scalar.versions[version] = scalar.now;
    }
    for (LifeFile& file : files_) {
      cut(file, version);
      if (file.is_named) file.versions[version] = file.now;
    }
  }

  void store(LifeArray& member) {
    if (member.array == nullptr || !wait_for(member)) return;
    if (member.is_twin()) return store_all_of_twin(member);
    const std::uint64_t stores = member.now.empty() || one_in(3) ? 0 : below(20);
    for (std::uint64_t i = 0; i < stores; ++i) {
      const std::uint64_t at = below(member.now.size());
      const std::uint64_t most = one_in(5) ? member.now.size() - at : 1;
      const std::uint64_t count = 1 + below(most);
      if (member.kind.marks) {
        ASSERT_TRUE(member.array->mark(8 * at, 8 * count).ok());
      }
      for (std::uint64_t each = at; each < at + count; ++each) member.now[each] = word();
      put(member, at, count);
    }
  }
  void store_some() {
    for (LifeArray& member : arrays_) {
      if (one_in(2) || member.is_twin()) store(member);
    }
    for (LifeScalar& scalar : scalars_) {
      if (!scalar.is_bound && one_in(8)) bind(scalar);
      if (one_in(2)) scalar.value = scalar.now = word();
    }
    for (LifeFile& file : files_) {
      if (!file.is_named && one_in(8)) name(file);
      if (one_in(2)) write_line(file);
    }
  }
  // What is stored last before a commit, of one array on all ranks: the same words everywhere.
  void store_alike(LifeArray& member, std::uint64_t seed) {
    std::mt19937_64 common(seed);
    const std::uint64_t count = staged_ ? 700 : common() % 1000;
    if (member.array == nullptr) open(member, false);
    if (member.array == nullptr || !wait_for(member)) return;
    if (member.now.size() != count) {
      if (staged_ || (count == 0 && member.on_gpu != nullptr)) return;
      if (member.on_gpu != nullptr) {
        move_on_gpu(member, count);
      } else {
        resize(member, count, nullptr);
        member.now.resize(count);
      }
    }
    Words words(count);
    for (std::int64_t& each : words) each = static_cast<std::int64_t>(common());
    if (member.is_twin()) {
      member.working = words;
      return store_twin(member);
    }
    if (member.kind.marks) {
      ASSERT_TRUE(member.array->mark(0, 8 * count).ok());
    }
    member.now = words;
    put(member, 0, count);
  }
  void set_alike(std::uint64_t index, std::int64_t value) {
    LifeScalar& scalar = scalars_[index];
    if (!scalar.is_bound) bind(scalar);
    scalar.value = scalar.now = value;
  }
  // Where all that are open lie in global arrays.
  void say_boxes() {
    for (LifeArray& member : arrays_) {
      if (member.array != nullptr && member.now.size() <= 3000) say_box(member, below(3000));
    }
  }

  void resize_somehow(LifeArray& member) {
    if (member.array == nullptr || staged_ || !wait_for(member)) return;
    std::uint64_t count = some_count();
    const std::uint64_t before = member.now.size();
    if (one_in(2)) count = std::min(before + below(40), most_words);
    if (one_in(3)) count = before - std::min(before, below(40));
    if (member.on_gpu != nullptr) return move_on_gpu(member, one_in(6) ? 9000 : count);
    if (!member.is_twin() && one_in(3)) return give_buffer(member, count);
    resize(member, count, nullptr);
    member.now.resize(count);
  }

  // Memory of the program goes, with which nothing can be done but to close the array.
  void lose(LifeArray& member) {
    member.array->lose_buffer("freed");
    member.is_lost = true;
  }
  bool has_lost() const {
    return std::ranges::any_of(arrays_, [](auto& member) { return member.is_lost; });
  }
  void close_lost() {
    for (LifeArray& member : arrays_) {
      if (member.is_lost) close(member, false);
    }
  }

  void close(LifeArray& member, bool erase) {
    if (member.array == nullptr) return;
    ASSERT_TRUE(pool_->close_array(std::exchange(member.array, nullptr), erase).ok());
    if (member.in_commit) {
      member.closing = true;
      member.erased = erase;
      if (erase) member.closing = false;  // its name is free at once
    }
    if (erase) member.held_by_head = false;
    member.is_lost = false;
  }

  void between_the_steps() {
    for (std::uint64_t calls = below(5); calls > 0; --calls) {
      LifeArray& member = some_array();
      const std::uint64_t what = below(8);
      if (what < 4) resize_somehow(member);
      if (what == 4 || what == 5) store(member);
      if (what == 6) close(member, one_in(2));
      if (what == 7) open(member, true);
    }
  }

  // What the next commit must make.
  void note_contents() {
    attempt_ = pool_->next_version();
    for (LifeArray& member : arrays_) {
      member.in_commit = member.array != nullptr;
      member.closing = member.erased = false;
      member.saved = member.is_twin() ? member.working : member.now;
      member.in_version = member.in_commit || member.held_by_head;
      // Closed, it stays in the version as it is in the one before.
      if (!member.in_commit && member.held_by_head) member.saved = member.versions.at(head());
      member.saved_box = member.in_commit ? member.box : box_of(member, head());
    }
    for (LifeScalar& scalar : scalars_) {
      const auto held = scalar.versions.find(head());
      scalar.saved.reset();
      if (scalar.is_bound) {
        scalar.saved = scalar.now;
      } else if (held != scalar.versions.end()) {
        scalar.saved = held->second;
      }
    }
    for (LifeFile& file : files_) {
      file.saved.reset();
      if (file.is_named) file.saved = file.now;
    }
  }
  Result<std::uint64_t> commit(const LifeCommit& how) {
    fail_fence(how.failing_fence);
    if (!how.asynchronous) {
      return pool_->commit(how.refused ? Status(Code::io_error, "refused") : Status::success());
    }
    const Status begun = pool_->commit_begin();
    if (begun.ok() && !how.quiet) between_the_steps();
    const auto committed = pool_->commit_wait();
    EXPECT_TRUE(begun.ok() || !committed.ok());
    return committed;
  }
  // Each makes the one before it durable. `ends`: draws on all ranks whether the last one is waited
  // for now. `all_ok`: whether it is so on all.
  Result<std::uint64_t> commit_staged_several(std::uint64_t failing_fence,
                                              const std::function<bool()>& ends,
                                              const std::function<bool(bool)>& all_ok) {
    fail_fence(failing_fence);
    auto begun = pool_->commit_staged();
    while (all_ok(begun.ok())) {
      between_the_steps();
      if (ends()) return pool_->commit_wait();
      store_some();
      const auto number = begun.value();
      begun = pool_->commit_staged();
      accept(head() == number ? Result(number) : Result<std::uint64_t>(Status(Code::io_error, "")));
      if (pool_->usable().ok()) note_contents();
    }
    return pool_->commit_pending() ? pool_->commit_wait() : begun;
  }
  void fail_fence(std::uint64_t from_here) {
    if (from_here != 0) medium_->failing_fence = medium_->counters().fence_calls + from_here;
  }
  void end_failing() { medium_->failing_fence = 0; }
  void accept(const Result<std::uint64_t>& committed) {
    end_failing();
    for (LifeArray& member : arrays_) {
      if (committed.ok()) take_saved(member, committed.value());
      if (committed.ok() && member.in_version) {
        if (member.in_commit && !member.erased) member.held_by_head = true;
        const bool stays_open = member.in_commit && member.array != nullptr && !member.erased;
        if (stays_open && member.is_twin()) member.now = member.working;
      }
      if (member.in_commit) member.rows = random_();
      member.in_commit = member.closing = member.erased = false;
    }
    for (LifeScalar& scalar : scalars_) {
      if (committed.ok()) scalar.versions.erase(committed.value());
      if (committed.ok() && scalar.saved) scalar.versions[committed.value()] = *scalar.saved;
    }
    if (committed.ok()) take_files(committed.value());
  }

  // Memory of the program, or what is staged, that has another size in `version`.
  bool fits(const LifeArray& member, std::uint64_t version) const {
    const auto found = member.versions.find(version);
    const bool follows = !member.is_given && !staged_;
    return member.array == nullptr || follows || found == member.versions.end() ||
           found->second.size() == member.now.size();
  }
  // And files, which are only cut back.
  bool fits(std::uint64_t version) const {
    for (const LifeFile& file : files_) {
      const auto held = file.versions.find(version);
      const bool goes_back = file.is_named && held != file.versions.end();
      if (goes_back && !file.now.starts_with(held->second)) return false;
    }
    return std::ranges::all_of(arrays_, [&](auto& member) { return fits(member, version); });
  }
  void make_fit(std::uint64_t version) {
    for (LifeArray& member : arrays_) {
      if (fits(member, version)) continue;
      const std::uint64_t count = member.versions.at(version).size();
      if (staged_ || (member.on_gpu != nullptr && count == 0)) {
        close(member, false);  // there is no memory of a GPU without elements
      } else if (member.on_gpu != nullptr) {
        move_on_gpu(member, count);
      } else {
        resize(member, member.now.size(), nullptr);
      }
    }
  }

  void compare() const {
    for (const LifeArray& member : arrays_) {
      if (member.array == nullptr) continue;
      ASSERT_EQ(member.array->size_bytes() / 8, member.now.size()) << member.name;
      ASSERT_TRUE(has_now(member)) << member.name << ", kind " << kind_of(member);
    }
    for (const LifeScalar& scalar : scalars_) ASSERT_EQ(scalar.value, scalar.now) << scalar.name;
    for (const LifeFile& file : files_) ASSERT_EQ(file.lines->file.text(), file.now);
  }
  // Which arrays a version has, and of which sizes.
  void compare_shapes(std::uint64_t version) const {
    const auto arrays = pool_->arrays_of(version);
    ASSERT_TRUE(arrays.ok()) << arrays.status().message();
    std::map<std::string, std::uint64_t> found;
    for (const ArrayEntry& entry : arrays.value()) {
      if (entry.name.starts_with("array")) found[entry.name] = entry.shape.extents[0];
    }
    std::map<std::string, std::uint64_t> held;
    for (const LifeArray& member : arrays_) {
      const auto of_version = member.versions.find(version);
      if (of_version != member.versions.end()) held[member.name] = of_version->second.size();
    }
    ASSERT_EQ(found, held) << "version " << version;
  }
  // `version` was restored: all that it has.
  void compare_restored() {
    for (LifeArray& member : arrays_) {
      if (member.held_by_head) open(member, false);
    }
    compare();
    for (LifeArray& member : arrays_) close(member, false);
  }
  void close_all() {
    for (LifeArray& member : arrays_) close(member, false);
  }

 private:
  static std::int64_t* words(LifeArray& member) {
    return reinterpret_cast<std::int64_t*>(member.array->working());
  }
  // Around 16 KiB it changes how stores are found.
  std::uint64_t some_count() {
    if (staged_) return 700;  // they keep their sizes
    const std::uint64_t drawn = below(8);
    return drawn == 0 ? 0 : drawn < 4 ? 2000 + below(100) : below(most_words);
  }
  bool is_possible(const LifeKind& kind) const {
    if (kind.gpu) return gpu_ != nullptr && !staged_;
    if (on_gpus_) return false;
    if (staged_) return kind.mode == ArrayMode::copy || kind.compare;
    return kind.tracker != TrackerKind::kernel || WrittenTracker::available().ok();
  }

  ArrayShape shape_to_open(const LifeArray& member) {
    const ArrayShape* const held = pool_->held_shape(member.name);
    EXPECT_EQ(held != nullptr, member.held_by_head) << member.name;
    if (held != nullptr) return *held;
    const std::uint64_t count = shared(member) ? member.share->contents.size() : some_count();
    return {ArrayType::int64, member.kind.mode, member.kind.checksums, {count}};
  }
  ArrayOptions options_to_open(LifeArray& member, const ArrayShape& of, bool may_be_given) {
    const LifeKind& kind = member.kind;
    ArrayOptions options;
    options.of_program = options.keep_contents = true;
    options.marks = kind.marks;
    options.compare = kind.compare;
    options.tracker = kind.tracker;
    options.staged = staged_;
    if (shared(member) && !member.share->first) options.ranks = member.share->rule;
    const std::uint64_t count = of.extents[0];
    const bool on_gpu = kind.gpu && count != 0 && count <= most_given && may_be_given && !one_in(4);
    const bool may = may_be_given && !member.is_twin() && count != 0 && count <= most_given;
    member.is_given = on_gpu || (may && one_in(3));
    member.on_gpu = on_gpu ? member.places->of_gpu(below(3)) : nullptr;
    member.now.assign(count, 0);
    if (!member.is_given) return options;
    if (on_gpu) {
      for (std::int64_t& each : member.now) each = word();
      gpu_->write(member.on_gpu, member.now);
      options.buffer = member.on_gpu;
      return options;
    }
    std::int64_t* const buffer = member.places->of(below(3));
    for (std::int64_t& each : member.now) each = word();
    std::ranges::copy(member.now, buffer);
    options.buffer = buffer;
    return options;
  }
  void note_opened(LifeArray& member, VersionedArray* array) {
    member.array = array;
    member.in_commit = member.said_box = false;
    member.box = member.held_by_head ? box_of(member, head()) : std::nullopt;
    if (pool_->restarted() && member.held_by_head) member.now = member.versions.at(head());
  }

  // Of another number of ranks' array, before the restart.
  bool shared(const LifeArray& member) const { return member.share && !pool_->restarted(); }
  static LifeBox box_of(const LifeArray& member, std::uint64_t version) {
    const auto held = member.boxes.find(version);
    return held == member.boxes.end() ? std::nullopt : LifeBox(held->second);
  }
  void say_box(LifeArray& member, std::uint64_t first) {
    const Status said = pool_->set_box(*member.array, {{global_words}, {first}});
    ASSERT_TRUE(said.ok()) << said.message();
    member.box = first;
    member.said_box = true;
  }
  static void take_saved(LifeArray& member, std::uint64_t version) {
    member.versions.erase(version);
    member.boxes.erase(version);
    if (!member.in_version) return;
    member.versions[version] = member.saved;
    if (member.saved_box) member.boxes[version] = *member.saved_box;
  }

  void attach_others() {
    for (LifeScalar& scalar : scalars_) {
      scalar.is_bound = false;
      scalar.now = scalar.value;
      if (scalar.may_be_bound && !one_in(3)) bind(scalar);
    }
    for (LifeFile& file : files_) {
      file.now = file.lines->file.text();
      file.is_named = false;
      if (file.lines->first || one_in(3)) name(file);
    }
  }
  void name(LifeFile& file) {
    const Status named = pool_->name_file(file.lines->file.path(), nullptr);
    ASSERT_TRUE(named.ok()) << named.message();
    file.is_named = true;
    if (!file.lines->first) file.lines->first = file.now;
  }
  void write_line(LifeFile& file) {
    const std::string line = std::to_string(random_()) + "\n";
    file.lines->file.append(line);
    file.now += line;
  }
  // A version of before it was named has what it was then, if the pool's directory can say that.
  void cut(LifeFile& file, std::uint64_t version) const {
    const auto held = file.versions.find(version);
    if (!file.is_named) return;
    if (held != file.versions.end()) {
      file.now = held->second;
    } else if (!pool_->directory().empty()) {
      file.now = *file.lines->first;
    }
  }
  void take_files(std::uint64_t version) {
    for (LifeFile& file : files_) {
      file.versions.erase(version);
      if (file.saved) file.versions[version] = *file.saved;
    }
  }

  // One that the head has is loaded by it if the pool has restarted.
  void bind(LifeScalar& scalar) {
    scalar.value = scalar.now = word();
    const Status bound = pool_->bind_scalar(scalar.name, &scalar.value, sizeof scalar.value);
    ASSERT_TRUE(bound.ok()) << bound.message();
    scalar.is_bound = true;
    const auto held = scalar.versions.find(head());
    if (pool_->restarted() && held != scalar.versions.end()) scalar.now = held->second;
  }

  // The program may store to it.
  bool wait_for(LifeArray& member) {
    if (member.is_twin() && member.in_commit) return false;
    EXPECT_TRUE(pool_->before_write(*member.array).ok());
    return true;
  }
  // What it has of these words.
  void put(LifeArray& member, std::uint64_t first, std::uint64_t count) {
    if (count == 0) return;
    if (member.on_gpu == nullptr) {
      std::copy_n(&member.now[first], count, words(member) + first);
    } else {
      gpu_->store(member.on_gpu + 8 * first, &member.now[first], 8 * count, nullptr);
      gpu_->synchronise();
    }
  }
  // Rows past the cache, and others: each in one way, until there is a version.
  void store_all_of_twin(LifeArray& member) {
    member.working.resize(member.now.size());
    for (std::int64_t& each : member.working) each = word();
    store_twin(member);
  }
  static void store_twin(LifeArray& member) {
    std::mt19937_64 rows(member.rows);
    for (std::uint64_t at = 0; at < member.working.size();) {
      const std::uint64_t count = 1 + rows() % (member.working.size() - at);
      if (rows() % 2 == 0) {
        ASSERT_TRUE(member.array->write(8 * at, 8 * count, &member.working[at]).ok());
      } else {
        std::copy_n(&member.working[at], count, words(member) + at);
      }
      at += count;
    }
  }
  void resize(LifeArray& member, std::uint64_t count, std::int64_t* buffer) {
    const Status resized = pool_->resize_array(*member.array, {count}, buffer);
    ASSERT_TRUE(resized.ok()) << resized.message();
    member.is_given = buffer != nullptr;
    member.box.reset();
    member.said_box = false;
    member.rows = random_();
  }
  // It stays on the GPU, where it is or elsewhere; what is new there is the program's.
  void move_on_gpu(LifeArray& member, std::uint64_t count) {
    count = std::max<std::uint64_t>(count, 1);
    if (one_in(2)) member.on_gpu = member.places->of_gpu(below(3));
    const std::uint64_t kept = std::min<std::uint64_t>(count, member.now.size());
    member.now.resize(count);
    for (std::uint64_t at = kept; at < count; ++at) member.now[at] = word();
    gpu_->write(member.on_gpu, member.now);
    resize(member, count, reinterpret_cast<std::int64_t*>(member.on_gpu));
  }
  // Where it is, or elsewhere; or where it is, though it was freed, with other contents.
  void give_buffer(LifeArray& member, std::uint64_t count) {
    const bool goes = member.is_given && one_in(3);
    const bool stays = goes || (member.is_given && one_in(2));
    std::int64_t* const from = words(member);
    std::int64_t* const to = stays ? from : member.places->of(below(3));
    if (goes) member.array->lose_buffer("freed");
    const std::uint64_t kept = goes ? 0 : std::min<std::uint64_t>(count, member.now.size());
    if (to != from) std::copy_n(from, kept, to);
    member.now.resize(count);
    for (std::uint64_t at = kept; at < count; ++at) to[at] = member.now[at] = word();
    resize(member, count, to);
  }

  bool has_now(const LifeArray& member) const {
    const std::uint64_t count = member.now.size();
    if (count == 0) return true;
    if (member.on_gpu != nullptr) {
      return gpu_->read<std::int64_t>(member.on_gpu, count) == member.now;
    }
    return std::memcmp(member.array->consistent(), member.now.data(), 8 * count) == 0;
  }
  static std::string kind_of(const LifeArray& member) {
    const LifeKind& kind = member.kind;
    return sentence(mode_name(kind.mode), kind.checksums ? "" : ", plain",
                    kind.marks ? ", marks" : "", kind.compare ? ", compared" : "", ", tracker ",
                    static_cast<int>(kind.tracker), member.is_given ? ", given" : "",
                    member.on_gpu != nullptr ? ", on a GPU" : "");
  }

  std::mt19937_64 random_;
  FakeGpu* gpu_;
  Pool* pool_ = nullptr;
  CrashDevice* medium_ = nullptr;
  std::vector<LifeArray> arrays_;
  std::array<LifeScalar, 2> scalars_;
  std::vector<LifeFile> files_;
  bool staged_ = false;
  bool on_gpus_ = false;
  std::uint64_t attempt_ = 0;
};

}  // namespace perdure
