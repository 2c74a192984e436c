// SPDX-License-Identifier: BSD-3-Clause
//
// Random lives of pools of several ranks (testing/rank_life.hpp), which commit together. Each rank
// has arrays of its own, in sizes of its own, some of them in memory of one of two GPUs. The device
// of one rank fails, or a call of the GPUs' driver, or its program refuses; ranks make calls that
// do not match; another number of ranks goes on; all processes are killed at some moment of one
// rank, with whatever a crash leaves of the devices.
// ctest: LABELS truth
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/testing/thread_group.hpp"
#include "pool/box_note.hpp"
#include "pool/inspect.hpp"
#include "pool/pool_directory.hpp"
#include "pool/testing/crashing_file.hpp"
#include "pool/testing/rank_shares.hpp"
#include "slow_tests.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;
using Numbers = std::set<std::uint64_t>;

// What a rank knows at one moment of what a crash may lead back to.
struct Knowledge {
  Numbers heads;  // one of these comes back
  Numbers must;   // these can be restored,
  Numbers may;    // and none but these
};

Numbers both(const Numbers& one, const Numbers& other) {
  Numbers result;
  for (const std::uint64_t each : one) {
    if (other.contains(each)) result.insert(each);
  }
  return result;
}

// What is drawn for all ranks of a run, which begins when the pool is opened.
struct RunPlan {
  std::uint64_t seed = 0;  // of what all ranks draw alike
  std::uint64_t steps = 0;
  bool is_last = false;
  std::uint64_t killed_fence = 0;      // of the killed rank, from the opening on; 0: none
  std::uint64_t killed_agreement = 0;  // the same
  std::uint32_t killed_rank = 0;
  std::uint64_t killed_change = 0;    // an agreement of it, from the first commit on
  const SharePlan* shares = nullptr;  // of what another number of ranks made; null: these did
  bool spoiled = false;               // what a rank says of them does not fit
};

// The pool of a life, and where each rank's file is found again, whatever becomes of its name.
struct LifeDirectory {
  perdure_test::TemporaryDirectory directory;
  std::string pool() const { return directory / "pool"; }
  std::string aside(std::uint32_t rank) const {
    return directory / ("rank" + std::to_string(rank));
  }
  std::uint32_t ranks() const {
    const auto opened = Directory::open(pool(), Trust::own);
    const auto record = read_job_record(opened.value());
    EXPECT_TRUE(record.ok()) << record.status().message();
    return record.ok() ? record.value().ranks : 0;
  }
};

OpenOptions life_options(const Geometry& geometry) {
  OpenOptions options;
  options.any_ranks = true;
  options.job_name = "test";
  options.geometry = geometry;
  return options;
}

// What a driver may refuse, and be right.
constexpr const char* failing_calls[] = {
    "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",
    "cuMemAlloc_v2",        "cuMemHostRegister_v2", "cuLaunchKernel",       "cuEventRecord",
    "cuEventSynchronize",   "cuStreamWaitEvent"};

enum class CallKind { commit, begin, restore, remove };

// A rank in all runs of a life.
class Rank {
 public:
  Rank(std::uint32_t number, std::uint32_t ranks, const Geometry& geometry,
       const LifeDirectory& directory, FakeGpu& gpu, std::uint64_t seed)
      : number_(number),
        ranks_(ranks),
        geometry_(geometry),
        directory_(directory),
        life_(seed, &gpu),
        moments_(seed + 1) {}

  RankLife& life() { return life_; }
  const Knowledge& knowledge() const { return now_; }
  void set_knowledge(const Knowledge& of_all) { now_ = of_all; }
  // The pool is still that of other ranks, as far as this one knows.
  bool is_changing() const { return changing_; }
  // When the run is over: its file has what the crash has left. A file that was removed by one who
  // was dead by then is there again, under the name that it had.
  void leave_file(const std::string& lost_name) {
    const std::string aside = directory_.aside(number_);
    if (!fs::exists(aside)) return;
    if (!image_.empty()) {
      const auto* const bytes = reinterpret_cast<const char*>(image_.data());
      perdure_test::write_file(aside, {bytes, image_.size()});
    }
    if (!lost_name.empty() && fs::hard_link_count(aside) == 1) {
      fs::create_hard_link(aside, directory_.pool() + "/" + lost_name);
    }
    fs::remove(aside);
  }

  void run(ThreadJob& job, ThreadGroup& group, const RunPlan& plan) {
    job_ = &job;
    group_ = &group;
    plan_ = plan;
    changing_ = plan.shares != nullptr;
    common_.seed(plan.seed);
    is_captured_ = false;
    image_.clear();
    medium_ = nullptr;
    fences_ = agreements_ = 0;
    group.on_enter = [this] {
      if (dies() && ++agreements_ == plan_.killed_agreement) die();
    };
    group.on_ended = [this] { capture(); };
    if (opens() && restarts()) live();
    if (testing::Test::HasFailure()) job.end();
    capture();
    group.on_enter = group.on_ended = nullptr;
    life_.forget_pool();
    pool_.reset();
    if (!testing::Test::HasFailure()) now_ = at_crash_;
  }

 private:
  std::uint64_t common_below(std::uint64_t end) { return common_() % end; }
  bool common_one_in(std::uint64_t count) { return common_below(count) == 0; }
  bool is_over() const { return job_->ended() || testing::Test::HasFailure(); }
  bool dies() const { return plan_.killed_rank == number_; }

  // One of the images that a crash now could leave. The first moment counts.
  void capture() {
    if (is_captured_.exchange(true)) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      at_crash_ = now_;
    }
    if (medium_ == nullptr) return;
    medium_->for_each_image(
        AtomicityModel::prefix, 1 + moments_() % 3, moments_(),
        [this](std::span<const std::byte> image) { image_.assign(image.begin(), image.end()); });
  }
  void die() {
    capture();
    job_->end();
  }
  void watch_fences() {
    if (plan_.killed_fence == 0) return;
    medium_->on_fence = [this](CrashDevice&) {
      if (dies() && ++fences_ == plan_.killed_fence) die();
      if (job_->ended() && late_++ % 2 == 0) capture();
    };
  }

  // The same on all ranks?
  void expect_alike(std::uint64_t value, const char* what) {
    std::uint64_t words[] = {value, ~value};
    if (!group_->all_max(words).ok()) return;
    ASSERT_EQ(words[0], ~words[1]) << what;
  }
  bool is_on_any(bool here) {
    std::uint64_t words[] = {here ? 1U : 0U};
    return !group_->all_max(words).ok() || words[0] != 0;
  }

  bool gpu_fails() { return common_one_in(life_.is_on_gpus() ? 2 : 12); }
  // One call of the driver fails while all ranks are in `call`, on whichever rank makes it.
  template <typename Call>
  auto with_failing_gpu(bool fails, const Call& call) {
    if (!fails) return call();
    const bool here = common_below(ranks_) == number_;
    const char* const name = failing_calls[common_below(std::size(failing_calls))];
    const std::uint64_t at = 1 + common_below(common_one_in(2) ? 2 : 8);
    (void)is_on_any(false);  // nobody calls the driver from here on
    if (here) life_.gpu()->fail(name, at, 999);
    (void)is_on_any(false);
    auto result = call();
    (void)is_on_any(false);
    if (here) life_.gpu()->fail(nullptr, 0, 0);
    (void)is_on_any(false);
    return result;
  }

  Numbers listed() const {
    Numbers list;
    for (const VersionInfo& info : pool_->versions()) list.insert(info.version);
    return list;
  }
  // Nothing is under way: what the pool should have is known.
  void settle() {
    if (!pool_->usable().ok()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::uint64_t head = life_.head();
    if (pool_->is_changing()) {
      now_ = {};
      return;
    }
    if (changing_) {
      const bool keeps = geometry_.slots > 2 && !plan_.shares->lacks;
      if (!keeps) kept_.clear();
      changing_ = false;
    }
    if (head != 0) kept_.insert(head);
    const std::uint64_t next = pool_->next_version();
    std::erase_if(kept_, [&](std::uint64_t v) { return v + geometry_.slots <= next; });
    now_ = {{head}, kept_, kept_};
  }
  void begin_commit() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::uint64_t next = pool_->next_version();
    now_.heads.insert(next);
    now_.may.insert(next);
    if (!changing_) return;
    now_.may.insert(life_.head());
    if (plan_.killed_change != 0) plan_.killed_agreement = agreements_ + plan_.killed_change;
    // The slot of the version after it is opened at its end.
    std::erase_if(now_.must, [&](std::uint64_t v) { return v + geometry_.slots <= next + 1; });
  }

  bool opens() {
    OpenOptions options = life_options(geometry_);
    options.around = [this](std::unique_ptr<Device> file) -> std::unique_ptr<Device> {
      fs::create_hard_link(file->file().path, directory_.aside(number_));
      auto device = std::make_unique<CrashingFile>(std::move(file), std::uint64_t{4} << 20U);
      medium_ = &device->medium();
      watch_fences();
      return device;
    };
    auto pool = open_pool(directory_.pool(), *group_, options);
    if (pool.ok()) {
      pool_ = pool.take();
    } else {
      medium_ = nullptr;  // as it was
      EXPECT_TRUE(job_->ended()) << pool.status().message();
    }
    return pool_ != nullptr;
  }

  // What came back is what must, on all ranks.
  void check_found() {
    const std::uint64_t version = life_.head();
    ASSERT_TRUE(now_.heads.contains(version)) << "version " << version << " came back";
    life_.take_attempt(version);
    const Numbers list = listed();
    for (const std::uint64_t each : list) {
      const bool known = each == version || now_.may.contains(each);
      ASSERT_TRUE(known) << "version " << each;
    }
    for (const std::uint64_t each : now_.must) {
      const bool may_go = each + geometry_.slots <= pool_->next_version();
      ASSERT_TRUE(may_go || list.contains(each)) << "lost: version " << each;
    }
    kept_ = list;
    settle();
  }
  bool restarts() {
    life_.set_pool(*pool_, *medium_);
    EXPECT_EQ(pool_->is_changing(), changing_);
    if (changing_) return takes_shares();
    check_found();
    const std::uint64_t head = life_.head();
    expect_alike(head, "the version that came back");
    std::uint64_t bits = 0;  // of a few that follow each other
    for (const std::uint64_t version : kept_) bits |= std::uint64_t{1} << version % 64;
    expect_alike(bits, "the versions that can be restored");
    if (is_over()) return false;
    const auto list = pool_->versions();
    bool goes_back = !list.empty() && common_one_in(4);
    std::uint64_t to = goes_back ? list[common_below(list.size())].version : head;
    life_.attach(head, !goes_back);
    if (goes_back && is_on_any(!life_.fits(to))) {
      goes_back = false;
      to = head;
    }
    if (is_over()) return false;
    if (!life_.is_staged()) open_window();
    if (is_over()) return false;
    if (!goes_back && common_one_in(3)) fail_to_restart();
    if (is_over()) return false;
    const bool fails = common_one_in(10) && common_below(ranks_) == number_;
    if (fails) life_.fail_fence(1 + moments_() % 4);
    if (goes_back) begin_restore(to);
    const auto restarted = with_failing_gpu(gpu_fails(), [&] {
      if (!goes_back) return pool_->restart();
      const Status restored = pool_->restore(to);
      return restored.ok() ? Result<std::uint64_t>(to) : Result<std::uint64_t>(restored);
    });
    const Status restored = restarted.status();
    life_.end_failing();
    if (job_->ended()) return false;
    expect_alike(restored.ok() ? 1 : 0, "whether the pool restarted");
    if (is_over() || !restored.ok()) return false;
    EXPECT_EQ(restarted.value(), to);
    life_.take(to, true);
    settle();
    return true;
  }

  // The restart brings what another number of ranks made.
  bool takes_shares() {
    const std::uint64_t version = plan_.shares->version;
    kept_ = version == 0 ? Numbers() : Numbers{version};
    settle();
    EXPECT_EQ(listed(), kept_);
    life_.attach_shares(plan_.shares->names);
    if (!life_.is_staged() && !is_over()) open_window();
    if (is_over()) return false;
    if (common_one_in(10) && common_below(ranks_) == number_) life_.fail_fence(1 + moments_() % 4);
    const auto restarted = with_failing_gpu(gpu_fails(), [this] { return pool_->restart(); });
    life_.end_failing();
    if (job_->ended()) return false;
    expect_alike(restarted.ok() ? 1 : 0, "whether the pool restarted");
    if (is_over()) return false;
    EXPECT_TRUE(!plan_.spoiled || restarted.status().code() == Code::shape_mismatch);
    if (!restarted.ok()) return false;
    EXPECT_EQ(restarted.value(), version);
    if (version == 0) {
      life_.take(0, true);
    } else {
      life_.take_shares(version);
    }
    settle();
    return true;
  }
  // An array of an old rank, or a part of it.
  void read_by_hand() {
    const RankLives& lives = plan_.shares->old;
    const auto from = static_cast<std::uint32_t>(life_.below(lives.size()));
    const LifeArray& member = lives[from]->array(life_.below(lives[from]->arrays().size()));
    const auto held = member.versions.find(plan_.shares->version);
    const bool is_held = held != member.versions.end();
    const std::uint64_t count = is_held ? held->second.size() : 0;
    const std::uint64_t first = life_.below(count + 1);
    Words got(life_.below(count - first + 1));
    const Status read = pool_->read_old(member.name, from, first, got.size(), got.data());
    ASSERT_EQ(read.code(), is_held ? Code::ok : Code::not_found) << read.message();
    if (!is_held) return;
    const auto begin = held->second.begin() + static_cast<std::ptrdiff_t>(first);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), begin)) << member.name << " of " << from;
  }

  // A rank, or several, had memory for an array that is gone. All can restart without that array.
  void fail_to_restart() {
    for (LifeArray& array : life_.arrays()) {
      if (array.array != nullptr && array.is_given && life_.one_in(4)) life_.lose(array);
    }
    const bool lost = life_.has_lost();
    if (!is_on_any(lost) || is_over()) return;
    const auto restarted = pool_->restart();
    life_.close_lost();
    if (job_->ended()) return;
    ASSERT_EQ(restarted.status().code(), lost ? Code::wrong_state : Code::peer_failed);
  }

  void live() {
    for (std::uint64_t at = 0; at < plan_.steps && !is_over(); ++at) {
      SCOPED_TRACE(sentence("rank ", number_, ", step ", at));
      step();
      if (is_over()) return;
      expect_alike(pool_->usable().ok() ? 1 : 0, "whether the pool is usable");
      if (is_over() || !pool_->usable().ok()) return;
      check();
    }
    if (plan_.is_last && !is_over()) compare_versions();
  }
  // As a window of MPI, which is open from the start on.
  void open_window() {
    const ArrayShape shape{ArrayType::int64, ArrayMode::twin, false, {40}};
    ArrayOptions options;
    options.ranks = RankRule::same;
    const auto opened = pool_->open_array_on_all("window", shape, options);
    if (job_->ended()) return;
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    window_ = opened.value();
  }
  void check() {
    // pool.I8: a rank puts into another's copy by the number of its own.
    if (!life_.is_staged()) {
      expect_alike(window_->working_copy(), "the copy that is worked on");
      if (is_over()) return;
    }
    life_.compare();
    ASSERT_EQ(listed(), kept_);
    if (changing_ && life_.one_in(3)) read_by_hand();
    if (changing_ && geometry_.slots == 2) return;  // the version is what the program has
    for (const std::uint64_t version : kept_) life_.compare_shapes(version);
  }

  void step() {
    switch (common_below(12)) {
      case 0:
        return go_back();
      case 1:
        return delete_some();
      case 2:
        return open_somewhere();
      case 3:
        return mismatch();
      case 4:
      case 5:
      case 6:
        return between();
      default:
        return commit_somehow();
    }
  }
  void between() {
    for (std::uint64_t calls = life_.below(4); calls > 0; --calls) {
      LifeArray& array = life_.some_array();
      const std::uint64_t what = life_.below(7);
      if (what == 0) life_.close(array, life_.one_in(3));
      if (what == 1 || what == 2) life_.open(array, true);
      if (what > 2) life_.resize_somehow(array);
    }
  }

  // On all ranks, or on none.
  void open_somewhere() {
    LifeArray& array = life_.array(common_below(life_.arrays().size()));
    life_.close(array, life_.one_in(3));
    const bool refused = common_one_in(3);
    const bool here = common_below(ranks_) == number_;
    const bool opened = life_.open_on_all(array, refused && here);
    if (job_->ended()) return;
    ASSERT_EQ(opened, !refused);
  }

  LifeCommit some_commit() {
    LifeCommit how;
    how.asynchronous = common_one_in(2);
    const bool refused = common_one_in(8);
    if (common_below(ranks_) == number_) how.refused = refused;
    const std::uint64_t fence = common_one_in(5) ? 1 + common_below(4) : 0;
    if (common_below(ranks_) == number_) how.failing_fence = fence;
    how.quiet = gpu_fails();
    may_fail_ = refused || fence != 0 || how.quiet;
    return how;
  }
  Result<std::uint64_t> commit_once() {
    const LifeCommit how = some_commit();
    return with_failing_gpu(how.quiet, [&] { return life_.commit(how); });
  }
  Result<std::uint64_t> commit_staged_several() {
    const std::uint64_t fence = common_one_in(6) ? 1 + common_below(8) : 0;
    const bool here = common_below(ranks_) == number_;
    return life_.commit_staged_several(
        here ? fence : 0, [this] { return common_one_in(2); },
        [this](bool ok) {
          if (is_on_any(!ok)) return false;
          settle();
          begin_commit();
          return true;
        });
  }
  // What another number of ranks takes over by boxes, or as the same everywhere.
  void store_alike() {
    const std::uint64_t what = common_below(8);
    const std::uint64_t seed = common_();
    if (what < 2) life_.store_alike(life_.array(seed % life_.arrays().size()), seed);
    if (what == 2) life_.set_alike(seed % 2, static_cast<std::int64_t>(seed));
    if (common_one_in(3)) life_.say_boxes();
  }
  void commit_somehow() {
    life_.store_some();
    store_alike();
    life_.note_contents();
    begin_commit();
    const std::uint64_t head = life_.head();
    const bool staged = life_.is_staged() && !common_one_in(4);
    may_fail_ = true;
    const auto committed = staged ? commit_staged_several() : commit_once();
    life_.accept(committed);
    if (job_->ended()) return;
    const bool full = is_on_any(committed.status().code() == Code::no_space);
    if (is_over()) return;
    ASSERT_TRUE(committed.ok() || may_fail_ || full) << committed.status().message();
    expect_alike(committed.ok() ? committed.value() : 0, "the version that was committed");
    if (is_over() || !pool_->usable().ok()) return;
    if (!staged) {
      ASSERT_EQ(life_.head(), committed.ok() ? life_.attempt() : head);
    }
    settle();
  }

  std::optional<std::uint64_t> some_version() {
    const auto list = pool_->versions();
    if (list.empty()) return std::nullopt;
    return list[common_below(list.size())].version;
  }
  void begin_restore(std::uint64_t version) {
    const std::lock_guard<std::mutex> lock(mutex_);
    now_.heads.insert(version);
  }
  void begin_delete(std::uint64_t version) {
    const std::lock_guard<std::mutex> lock(mutex_);
    now_.must.erase(version);
  }

  void fail_somewhere() {
    const bool fails = common_one_in(10) && common_below(ranks_) == number_;
    if (fails) life_.fail_fence(1);
    const bool kills = plan_.killed_fence != 0 && common_one_in(2);  // at once
    if (kills && dies()) plan_.killed_fence = fences_ + 1;
  }
  void go_back() {
    const auto version = some_version();
    if (!version) return;
    if (!common_one_in(3)) life_.make_fit(*version);
    const bool fits = life_.fits(*version);
    const bool fits_all = !is_on_any(!fits);
    if (is_over()) return;
    fail_somewhere();
    begin_restore(*version);
    const bool fails = gpu_fails();
    const Status restored = with_failing_gpu(fails, [&] { return pool_->restore(*version); });
    life_.end_failing();
    if (job_->ended() || !pool_->usable().ok()) return;
    const bool may = fits_all && !changing_;
    ASSERT_TRUE(restored.ok() ? may : fails || !may) << restored.message();
    if (restored.ok()) life_.take(*version, false);
    settle();
  }
  void delete_some() {
    const auto version = some_version();
    if (!version) return;
    if (*version == life_.head()) {
      const Status refused = pool_->delete_version(*version);
      ASSERT_TRUE(job_->ended() || refused.code() == Code::wrong_state) << refused.message();
      return;
    }
    fail_somewhere();
    begin_delete(*version);
    const Status deleted = pool_->delete_version(*version);
    life_.end_failing();
    if (job_->ended() || !pool_->usable().ok()) return;
    ASSERT_TRUE(deleted.ok()) << deleted.message();
    kept_.erase(*version);
    settle();
  }

  // Each rank draws what all of them call.
  void mismatch() {
    if (changing_) return;  // which is said first
    std::vector<std::pair<CallKind, std::uint64_t>> calls;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const auto kind = static_cast<CallKind>(common_below(4));
      const std::uint64_t version = some_version().value_or(0);
      const bool of_version = kind == CallKind::restore || kind == CallKind::remove;
      calls.emplace_back(kind, of_version ? version : 0);
    }
    if (std::ranges::all_of(calls, [&](const auto& call) { return call == calls[0]; })) return;
    const auto [kind, version] = calls[number_];
    Status made;
    if (kind == CallKind::commit || kind == CallKind::begin) {
      life_.store_some();
      life_.note_contents();
      begin_commit();
      LifeCommit how;
      how.asynchronous = kind == CallKind::begin;
      const auto committed = life_.commit(how);
      life_.accept(committed);
      made = committed.status();
    } else if (kind == CallKind::restore) {
      life_.make_fit(version);
      made = pool_->restore(version);
    } else {
      made = pool_->delete_version(version);
    }
    if (job_->ended()) return;
    ASSERT_FALSE(made.ok());
    const bool same_call =
        std::ranges::all_of(calls, [&](const auto& call) { return call.first == kind; });
    if (!same_call) {  // else one that can't be made alone is no mismatch
      ASSERT_EQ(made.code(), Code::invalid_argument) << made.message();
    }
    settle();
  }

  // All that are left, at the end.
  void compare_versions() {
    if (changing_) return;
    life_.close_all();
    for (const std::uint64_t version : listed()) {
      if (is_on_any(!life_.fits(version))) continue;
      const Status restored = pool_->restore(version);
      ASSERT_TRUE(restored.ok()) << restored.message();
      life_.take(version, false);
      life_.compare_restored();
    }
  }

  std::uint32_t number_;
  std::uint32_t ranks_;
  Geometry geometry_;
  const LifeDirectory& directory_;
  RankLife life_;
  std::mt19937_64 moments_;  // of this rank's device
  std::mt19937_64 common_;   // draws the same on all ranks
  RunPlan plan_;
  ThreadJob* job_ = nullptr;
  ThreadGroup* group_ = nullptr;
  CrashDevice* medium_ = nullptr;
  std::unique_ptr<Pool> pool_;
  VersionedArray* window_ = nullptr;
  Numbers kept_;
  std::mutex mutex_;
  Knowledge now_{{0}, {}, {}};
  Knowledge at_crash_;
  std::atomic<bool> is_captured_{false};
  std::vector<std::byte> image_;
  std::uint64_t fences_ = 0;
  std::uint64_t agreements_ = 0;
  std::uint64_t late_ = 0;
  bool changing_ = false;
  bool may_fail_ = false;  // the commit
};

class RankHistories : public testing::Test {
 protected:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }

  using Ranks = std::vector<std::unique_ptr<Rank>>;

  void begin_life() {
    geometry_ = {4096, one_in(3) ? 4096U : 64U, one_in(2) ? 65536U : 4096U,
                 static_cast<std::uint32_t>(2 + below(4))};
    arrays_ = 1 + below(3);
    staged_ = one_in(4);
    on_gpus_ = !staged_ && one_in(3);
    ranks_.clear();
    directory_ = std::make_unique<LifeDirectory>();
    ranks_ = some_ranks(static_cast<std::uint32_t>(2 + below(3)));
    for (const auto& rank : ranks_) rank->life().files().emplace_back();
    ThreadJob job(static_cast<std::uint32_t>(ranks_.size()));
    job.run([&](ThreadGroup& group) {
      const auto made = open_pool(directory_->pool(), group, life_options(geometry_));
      EXPECT_TRUE(made.ok()) << made.status().message();
    });
  }
  Ranks some_ranks(std::uint32_t ranks) {
    Ranks some;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      FakeGpu& gpu = rank % 2 == 0 ? gpu_ : other_gpu_;
      some.push_back(std::make_unique<Rank>(rank, ranks, geometry_, *directory_, gpu, random_()));
      some.back()->life().begin(arrays_, staged_, on_gpus_);
    }
    return some;
  }
  static RankLives lives_of(const Ranks& ranks) {
    RankLives lives;
    for (const auto& rank : ranks) lives.push_back(&rank->life());
    return lives;
  }

  RunPlan some_plan(std::uint64_t ranks, bool is_last) {
    RunPlan plan;
    plan.seed = random_();
    plan.steps = 1 + below(20);
    plan.is_last = is_last;
    plan.killed_rank = static_cast<std::uint32_t>(below(ranks));
    if (!is_last && one_in(2)) plan.killed_fence = 1 + below(one_in(2) ? 6 : 40);
    if (!is_last && one_in(4)) plan.killed_agreement = 1 + below(one_in(2) ? 10 : 80);
    return plan;
  }
  // Whether a run was killed.
  bool run(Ranks& ranks, const RunPlan& plan) {
    ThreadJob job(static_cast<std::uint32_t>(ranks.size()));
    job.run([&](ThreadGroup& group) { ranks[group.rank()]->run(job, group, plan); });
    return job.ended();
  }
  void run(bool is_last) {
    const RunPlan plan = some_plan(ranks_.size(), is_last);
    (void)run(ranks_, plan);
    for (const auto& rank : ranks_) rank->leave_file("");
    if (!HasFailure()) tell_knowledge();
  }
  void tell_knowledge() {
    Knowledge all = ranks_[0]->knowledge();
    for (const auto& rank : ranks_) {
      all.heads = both(all.heads, rank->knowledge().heads);
      all.may = both(all.may, rank->knowledge().may);
      all.must.insert(rank->knowledge().must.begin(), rank->knowledge().must.end());
    }
    ASSERT_FALSE(all.heads.empty());
    for (const auto& rank : ranks_) rank->set_knowledge(all);
  }

  // The version that another number of ranks goes on from.
  std::optional<std::uint64_t> version_found() {
    const auto report = inspect_pool(directory_->pool(), {});
    EXPECT_TRUE(report.ok() && report.value().version);
    if (HasFailure()) return std::nullopt;
    EXPECT_TRUE(ranks_[0]->knowledge().heads.contains(*report.value().version));
    for (const auto& rank : ranks_) rank->life().take_attempt(*report.value().version);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      compare_boxes(ranks_[i]->life(), report.value().ranks[i], *report.value().version);
    }
    return HasFailure() ? std::nullopt : report.value().version;
  }
  static void compare_boxes(RankLife& life, const RankReport& report, std::uint64_t version) {
    const GlobalBoxes found = boxes_of(*catalogue_of(report, version));
    for (const LifeArray& member : life.arrays()) {
      const auto box = found.find({member.name, 0});
      const auto held = member.boxes.find(version);
      ASSERT_EQ(box == found.end() ? LifeBox() : box->second.first[0],
                held == member.boxes.end() ? LifeBox() : held->second)
          << member.name << " of rank " << report.rank << ", version " << version;
    }
  }
  // A row more than there are.
  bool spoil(const RankLives& lives) {
    for (RankLife* const life : lives) {
      for (LifeArray& member : life->arrays()) {
        if (!member.share || member.share->rule != RankRule::rows) continue;
        member.share->contents.push_back(0);
        return true;
      }
    }
    return false;
  }
  void run_on(std::uint32_t ranks, bool is_last) {
    const auto version = version_found();
    if (!version) return;
    Ranks others = some_ranks(ranks);
    const SharePlan shares =
        ShareOut(random_, *version, lives_of(ranks_), lives_of(others)).share();
    RunPlan plan = some_plan(ranks, is_last);
    plan.shares = &shares;
    if (!is_last && one_in(2)) plan.killed_change = 1 + below(14);
    plan.spoiled = one_in(8) && spoil(lives_of(others));
    const bool killed = run(others, plan);
    if (HasFailure()) return;
    const bool changed = directory_->ranks() == ranks;
    ASSERT_TRUE(changed || directory_->ranks() == ranks_.size());
    const bool may_lack = killed && !changed;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      others[rank]->leave_file(may_lack ? next_rank_file_name(rank) : "");
      ASSERT_TRUE(changed || others[rank]->is_changing()) << "lost: the first version";
    }
    if (!changed) return;
    ranks_ = std::move(others);
    tell_knowledge();
  }
  void run_somehow(bool is_last) {
    const auto ranks = static_cast<std::uint32_t>(one_in(3) ? 1 + below(4) : ranks_.size());
    if (ranks == ranks_.size()) {
      run(is_last);
    } else {
      run_on(ranks, is_last);
    }
  }

  FakeGpu gpu_{0};
  FakeGpu other_gpu_{1};
  std::mt19937_64 random_;
  Geometry geometry_;
  std::uint64_t arrays_ = 1;
  bool staged_ = false;
  bool on_gpus_ = false;
  std::unique_ptr<LifeDirectory> directory_;
  Ranks ranks_;
};

TEST_F(RankHistories, of_several_ranks_bring_back_each_version) {
  random_.seed(test_seed());
  const int lives = slow_tests() ? 800 : 24;
  for (int life = 0; life < lives && !HasFailure(); ++life) {
    begin_life();
    const std::uint64_t runs = 2 + below(6);
    for (std::uint64_t at = 0; at < runs && !HasFailure(); ++at) {
      SCOPED_TRACE(sentence("life ", life, ", run ", at));
      run_somehow(at + 1 == runs);
    }
    if (HasFailure()) std::printf("life %d\n", life);
  }
}

}  // namespace
}  // namespace perdure
