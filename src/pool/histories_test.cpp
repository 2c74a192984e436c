// SPDX-License-Identifier: BSD-3-Clause
//
// Random lives of pools with several arrays, of every way in which changes are found, beside what
// each version must hold. Sizes change, also several times while a version is saved; buffers of the
// program move, or go and come back at the same address with other contents; commits fail; versions
// are restored, in place of the restart too, and deleted; arrays come and go.
// ctest: LABELS truth
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "pool/testing/pool_fixture.hpp"
#include "pool/testing/words.hpp"
#include "pool/written_tracker.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

struct Kind {
  ArrayMode mode;
  bool checksums = true;
  bool marks = false;
  bool compare = false;
  TrackerKind tracker = TrackerKind::chosen;
};
constexpr Kind kinds[] = {
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
};

constexpr std::uint64_t most_words = 2600;

// Memory of the program, of which one of three places is the buffer: two begin at pages.
class Places {
 public:
  static constexpr std::uint64_t bytes = std::uint64_t{64} << 10U;
  Places()
      : at_(::mmap(nullptr, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0)) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Places() { ::munmap(at_, 3 * bytes); }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  std::int64_t* of(std::uint64_t place) const {
    return reinterpret_cast<std::int64_t*>(static_cast<std::byte*>(at_) + place * bytes +
                                           (place == 2 ? 24 : 0));
  }

 private:
  void* at_;
};

// An array of a life, and what it must hold.
struct Member {
  std::string name;
  Kind kind{};
  VersionedArray* array = nullptr;  // null: it is closed
  bool held_by_head = false;        // as this array, not as one of its name before
  bool in_commit = false;           // under way
  bool in_version = false;          // that it makes
  bool closing = false;             // it was closed, and its commit is under way
  bool erased = false;              // by that
  bool is_given = false;            // its buffer is the program's
  Words now;                        // what may be read
  Words working;                    // twin: what is being written
  Words saved;                      // by the commit under way
  std::uint64_t rows = 0;           // twin: how it is written
  std::map<std::uint64_t, Words> versions;
  std::unique_ptr<Places> places;

  bool is_twin() const { return kind.mode == ArrayMode::twin; }
};

class Histories : public PoolTest {
 protected:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  std::int64_t word() { return static_cast<std::int64_t>(random_()); }
  std::uint64_t head() const { return pool_->status().version; }
  // Around 16 KiB it changes how stores are found.
  std::uint64_t some_count() {
    if (staged_) return 700;  // they keep their sizes
    const std::uint64_t drawn = below(8);
    return drawn == 0 ? 0 : drawn < 4 ? 2000 + below(100) : below(most_words);
  }
  Member& some_member() { return members_[below(members_.size())]; }

  void begin_life() {
    image_.clear();
    members_.clear();
    geometry_ = {4096, one_in(3) ? 4096U : 64U, one_in(2) ? 65536U : 4096U,
                 static_cast<std::uint32_t>(2 + below(4))};
    members_.resize(1 + below(4));
    staged_ = one_in(4);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      member.name = "array" + std::to_string(i);
      do {
        member.kind = kinds[below(std::size(kinds))];
      } while (!is_possible(member.kind));
      member.places = std::make_unique<Places>();
    }
    open();
    for (Member& member : members_) {
      if (!one_in(4)) open_member(member, true);
    }
    start(0);
  }

  bool is_possible(const Kind& kind) const {
    if (staged_) return kind.mode == ArrayMode::copy || kind.compare;
    return kind.tracker != TrackerKind::kernel || WrittenTracker::available().ok();
  }

  // Contents are looked at when the pool has restarted.
  void open_member(Member& member, bool may_be_given) {
    if (member.array != nullptr || member.closing) return;
    const ArrayShape* const held = pool_->held_shape(member.name);
    EXPECT_EQ(held != nullptr, member.held_by_head) << member.name;
    const Kind& kind = member.kind;
    const ArrayShape of = held != nullptr ? *held : shape(kind.mode, some_count(), kind.checksums);
    ArrayOptions options;
    options.of_program = options.keep_contents = true;
    options.marks = kind.marks;
    options.compare = kind.compare;
    options.tracker = kind.tracker;
    options.staged = staged_;
    const std::uint64_t count = of.extents[0];
    member.is_given = may_be_given && !member.is_twin() && count != 0 && one_in(3);
    member.now.assign(count, 0);
    if (member.is_given) {
      std::int64_t* const buffer = member.places->of(below(3));
      for (std::int64_t& each : member.now) each = word();
      std::ranges::copy(member.now, buffer);
      options.buffer = buffer;
    }
    member.array = array(member.name, of, options);
    ASSERT_NE(member.array, nullptr) << status_.message();
    member.in_commit = false;
    if (pool_->restarted() && member.held_by_head) member.now = member.versions.at(head());
  }

  void start(std::uint64_t version) {
    const auto restored = pool_->restart();
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    ASSERT_EQ(restored.value(), version);
    take(version, true);
  }
  // It was restored. What it lacks is zero, or as it was in the beginning.
  void take(std::uint64_t version, bool at_start) {
    for (Member& member : members_) {
      member.held_by_head = member.versions.contains(version);
      member.rows = random_();
      if (member.array == nullptr) continue;
      if (member.held_by_head) {
        member.now = member.versions.at(version);
      } else if (!at_start) {
        std::ranges::fill(member.now, 0);
      }
    }
  }

  // The program may store to it.
  bool wait_for(Member& member) {
    if (member.is_twin() && member.in_commit) return false;
    EXPECT_TRUE(pool_->before_write(*member.array).ok());
    return true;
  }
  void store(Member& member) {
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
      for (std::uint64_t word_at = at; word_at < at + count; ++word_at) {
        words(member.array)[word_at] = member.now[word_at] = word();
      }
    }
  }
  // Rows past the cache, and others: each in one way, until there is a version.
  void store_all_of_twin(Member& member) {
    member.working.resize(member.now.size());
    for (std::int64_t& each : member.working) each = word();
    std::mt19937_64 rows(member.rows);
    for (std::uint64_t at = 0; at < member.working.size();) {
      const std::uint64_t count = 1 + rows() % (member.working.size() - at);
      if (rows() % 2 == 0) {
        ASSERT_TRUE(member.array->write(8 * at, 8 * count, &member.working[at]).ok());
      } else {
        std::copy_n(&member.working[at], count, words(member.array) + at);
      }
      at += count;
    }
  }

  void resize_somehow(Member& member) {
    if (member.array == nullptr || staged_ || !wait_for(member)) return;
    std::uint64_t count = some_count();
    const std::uint64_t before = member.now.size();
    if (one_in(2)) count = std::min(before + below(40), most_words);
    if (one_in(3)) count = before - std::min(before, below(40));
    if (!member.is_twin() && one_in(3)) return give_buffer(member, count);
    resize(member, count, nullptr);
    member.now.resize(count);
  }
  void resize(Member& member, std::uint64_t count, std::int64_t* buffer) {
    const Status resized = pool_->resize_array(*member.array, {count}, buffer);
    ASSERT_TRUE(resized.ok()) << resized.message();
    member.is_given = buffer != nullptr;
    member.rows = random_();
  }
  // Where it is, or elsewhere; or where it is, though it was freed, with other contents.
  void give_buffer(Member& member, std::uint64_t count) {
    const bool goes = member.is_given && one_in(3);
    const bool stays = goes || (member.is_given && one_in(2));
    std::int64_t* const from = words(member.array);
    std::int64_t* const to = stays ? from : member.places->of(below(3));
    if (goes) member.array->lose_buffer("freed");
    const std::uint64_t kept = goes ? 0 : std::min<std::uint64_t>(count, member.now.size());
    if (to != from) std::copy_n(from, kept, to);
    member.now.resize(count);
    for (std::uint64_t at = kept; at < count; ++at) to[at] = member.now[at] = word();
    resize(member, count, to);
  }

  void close(Member& member, bool erase) {
    if (member.array == nullptr) return;
    ASSERT_TRUE(pool_->close_array(std::exchange(member.array, nullptr), erase).ok());
    if (member.in_commit) {
      member.closing = true;
      member.erased = erase;
      if (erase) member.closing = false;  // its name is free at once
    }
    if (erase) member.held_by_head = false;
  }

  // What the next commit must make.
  void note_contents() {
    for (Member& member : members_) {
      member.in_commit = member.array != nullptr;
      member.closing = member.erased = false;
      member.saved = member.is_twin() ? member.working : member.now;
      member.in_version = member.in_commit || member.held_by_head;
      // Closed, it stays in the version as it is in the one before.
      if (!member.in_commit && member.held_by_head) member.saved = member.versions.at(head());
    }
  }
  void between_the_steps() {
    for (std::uint64_t calls = below(5); calls > 0; --calls) {
      Member& member = some_member();
      const std::uint64_t what = below(8);
      if (what < 4) resize_somehow(member);
      if (what == 4 || what == 5) store(member);
      if (what == 6) close(member, one_in(2));
      if (what == 7) open_member(member, true);
    }
  }
  Result<std::uint64_t> commit_of_some_kind() {
    const bool refused = one_in(8);  // with a fence that fails, too, nobody would know the outcome
    if (!refused && one_in(6))
      medium_->failing_fence = medium_->counters().fence_calls + 1 + below(4);
    if (one_in(2)) {
      return pool_->commit(refused ? Status(Code::io_error, "refused") : Status::success());
    }
    const Status begun = pool_->commit_begin();
    if (begun.ok()) between_the_steps();
    const auto committed = pool_->commit_wait();
    EXPECT_TRUE(begun.ok() || !committed.ok());
    return committed;
  }
  // Each makes the one before it durable.
  Result<std::uint64_t> commit_staged_several() {
    if (one_in(6)) medium_->failing_fence = medium_->counters().fence_calls + 1 + below(8);
    auto begun = pool_->commit_staged();
    while (begun.ok()) {
      between_the_steps();
      if (one_in(2)) return pool_->commit_wait();
      store_some();
      const auto number = begun.value();
      begun = pool_->commit_staged();
      accept(head() == number ? Result(number) : Result<std::uint64_t>(Status(Code::io_error, "")));
      note_contents();
    }
    return pool_->commit_pending() ? pool_->commit_wait() : begun;
  }
  void store_some() {
    for (Member& member : members_) {
      if (one_in(2) || member.is_twin()) store(member);
    }
  }
  void commit_somehow() {
    store_some();
    note_contents();
    accept(staged_ && !one_in(4) ? commit_staged_several() : commit_of_some_kind());
    medium_->failing_fence = 0;
  }
  void accept(const Result<std::uint64_t>& committed) {
    ASSERT_TRUE(pool_->usable().ok()) << pool_->usable().message();
    for (Member& member : members_) {
      if (committed.ok() && member.in_version) {
        member.versions[committed.value()] = member.saved;
        if (member.in_commit && !member.erased) member.held_by_head = true;
        const bool stays_open = member.in_commit && member.array != nullptr && !member.erased;
        if (stays_open && member.is_twin()) member.now = member.working;
      }
      if (member.in_commit) member.rows = random_();
      member.in_commit = member.closing = member.erased = false;
    }
  }

  void go_back() {
    const auto list = pool_->versions();
    if (list.empty()) return;
    const std::uint64_t version = list[below(list.size())].version;
    if (version != head() && one_in(4)) {
      ASSERT_TRUE(pool_->delete_version(version).ok());
      return;
    }
    for (Member& member : members_) {
      const auto found = member.versions.find(version);
      const bool fits = found == member.versions.end() || found->second.size() == member.now.size();
      if (member.array == nullptr || fits || !member.is_given) continue;
      resize(member, member.now.size(), nullptr);
    }
    restore(version, false);
  }
  void restore(std::uint64_t version, bool at_start) {
    const Status restored = pool_->restore(version);
    ASSERT_TRUE(restored.ok()) << restored.message();
    take(version, at_start);
  }
  void crash_and_open() {
    const std::uint64_t version = head();
    crash();
    open();
    ASSERT_TRUE(attach_status_.ok()) << attach_status_.message();
    const auto list = pool_->versions();
    const bool goes_back = !list.empty() && one_in(4);
    for (Member& member : members_) {
      member.array = nullptr;
      member.held_by_head = member.versions.contains(version);
      if (!one_in(4)) open_member(member, !goes_back);
    }
    if (!goes_back) return start(version);
    restore(list[below(list.size())].version, true);
  }

  void step() {
    Member& member = some_member();
    switch (below(12)) {
      case 0:
        return go_back();
      case 1:
        return close(member, one_in(3));
      case 2:
      case 3:
        return open_member(member, true);
      case 4:
        return crash_and_open();
      case 5:
      case 6:
      case 7:
        return resize_somehow(member);
      case 8:
        return store(member);
      default:
        return commit_somehow();
    }
  }
  void compare() {
    for (const Member& member : members_) {
      if (member.array == nullptr) continue;
      ASSERT_EQ(member.array->size_bytes() / 8, member.now.size()) << member.name;
      const bool same =
          member.now.empty() ||
          std::memcmp(member.array->consistent(), member.now.data(), 8 * member.now.size()) == 0;
      ASSERT_TRUE(same) << member.name << ", kind " << kind_of(member);
    }
  }
  static std::string kind_of(const Member& member) {
    const Kind& kind = member.kind;
    return sentence(mode_name(kind.mode), kind.checksums ? "" : ", plain",
                    kind.marks ? ", marks" : "", kind.compare ? ", compared" : "", ", tracker ",
                    static_cast<int>(kind.tracker), member.is_given ? ", given" : "");
  }
  // All that are left, at the end.
  void compare_versions() {
    for (Member& member : members_) close(member, false);
    for (const VersionInfo& info : pool_->versions()) {
      restore(info.version, false);
      for (Member& member : members_) {
        if (member.held_by_head) open_member(member, false);
      }
      compare();
      for (Member& member : members_) close(member, false);
    }
  }

  std::mt19937_64 random_;
  std::vector<Member> members_;
  bool staged_ = false;  // all of them: they can be committed while the program stores
};

TEST_F(Histories, of_several_arrays_bring_back_each_version) {
  device_max_ = 4U << 20U;
  random_.seed(test_seed());
  const int lives = slow_tests() ? 400 : 30;
  for (int life = 0; life < lives; ++life) {
    begin_life();
    for (int at = 0; at < 60 && !HasFailure(); ++at) {
      SCOPED_TRACE(sentence("life ", life, ", step ", at));
      step();
      if (!HasFailure()) compare();
    }
    if (!HasFailure()) crash_and_open();
    if (!HasFailure()) compare_versions();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace perdure
