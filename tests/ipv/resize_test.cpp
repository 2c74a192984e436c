// SPDX-License-Identifier: BSD-3-Clause
//
// Objects and pairs that get other sizes and places: random histories of that, of stores, frees,
// failed versions and restarts, in which a crash at every fence leaves images that recover to the
// version before or the one that is being made, each with its sizes. PERDURE_TEST_SEED and
// PERDURE_IPV_HISTORIES say which and how many.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <mutex>

#include "growing_job.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t images_per_fence = 6;

class GrowingHistory {
 public:
  explicit GrowingHistory(std::uint64_t seed) : random_(seed), seed_(seed) {
    shape_.tier = below(random_, 5) == 0 ? PERDURE_IPV_STREAM : PERDURE_IPV_COPY;
    if (below(random_, 4) == 0) shape_.misaligned = 8 * below(random_, 512);
    shape_.lag = static_cast<unsigned>(below(random_, 3) != 0);
    shape_.helper = below(random_, 3) == 0;
    shape_.verify = below(random_, 3) == 0;
    shape_.keep = 1 + static_cast<std::uint32_t>(below(random_, 3) / 2);
    model_ = static_cast<AtomicityModel>(below(random_, 3));
  }

  // The first thing that was wrong; "" if nothing was.
  std::string run() {
    auto device = growing_device(shape_);
    history_.push_back(random_growing(object_bytes(), pair_bytes(), random_));
    for (int run = 0; run < 3 && wrong_.empty(); ++run) {
      const std::vector<std::byte> image = run_once(std::move(device));
      if (wrong_.empty()) device = growing_device(shape_, image);
    }
    return wrong_;
  }

  std::uint64_t fences = 0;
  std::uint64_t images = 0;
  std::uint64_t resizes = 0;

 private:
  void complain(const std::string& what) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    if (wrong_.empty()) wrong_ = what;
  }
  std::uint64_t object_bytes() {
    constexpr std::uint64_t sizes[] = {0, 1, 100, 4096, 5000, 8192, 9000, 12'288, 20'000, 40'000};
    return sizes[below(random_, std::size(sizes))];
  }
  std::uint64_t pair_bytes() {
    constexpr std::uint64_t sizes[] = {100, 4096, 5000, 12'288};
    return sizes[below(random_, std::size(sizes))];
  }

  // Ends with a crash that keeps what is durable.
  std::vector<std::byte> run_once(std::unique_ptr<CrashDevice> device) {
    GrowingJob job(shape_, std::move(device));
    const auto version = job.start(history_.front());
    if (!version.ok()) {
      complain("it can't start: " + version.status().message());
      return {};
    }
    if (version.value() < durable_ || version.value() >= history_.size()) {
      complain("version " + std::to_string(version.value()) + " came back");
      return {};
    }
    durable_ = version.value();
    history_.resize(durable_ + 1);
    if (!(job.now == history_[durable_])) complain("it restarted with other contents");
    job.device().on_fence = [this](CrashDevice& at) { crash_here(at); };
    for (std::uint64_t left = 2 + below(random_, 8); left > 0 && wrong_.empty(); --left) {
      run_iteration(job);
    }
    if (below(random_, 2) == 0 && !job.set().wait().ok()) complain("a version failed");
    (void)job.set().drain();
    job.device().on_fence = nullptr;
    if (!job.wrong.empty()) complain(job.wrong);
    const auto kept = job.device().durable();
    std::vector<std::byte> image(kept.begin(), kept.end());
    if (below(random_, 3) == 0 && !job.set().close().ok()) complain("it can't be closed");
    return image;
  }

  void run_iteration(GrowingJob& job) {
    if (below(random_, 3) == 0) done(job.resize_pair(pair_bytes(), random_), "resize_pair");
    job.iterate_pair();
    for (std::uint64_t actions = below(random_, 4); actions > 0; --actions) act(job);
    persist(job);
  }

  void act(GrowingJob& job) {
    const std::uint64_t bytes = job.now.object.size();
    switch (below(random_, 8)) {
      case 0:
      case 1:
      case 2: {
        const std::uint64_t begin = below(random_, bytes + 1);
        return job.store({begin, begin + below(random_, bytes - begin + 1)}, random_);
      }
      case 3:
        if (!job.is_gone() && below(random_, 3) == 0) job.free_object();
        return;
      default:
        return done(job.resize(object_bytes(), static_cast<Growth>(below(random_, 4)), random_),
                    "resize");
    }
  }

  void done(const Status& status, const char* what) {
    ++resizes;
    if (!status.ok()) complain(std::string(what) + ": " + status.message());
  }

  void persist(GrowingJob& job) {
    const bool fails = below(random_, 10) == 0;
    if (fails && !job.set().finish().ok()) return complain("a version failed");
    if (fails) {
      const std::lock_guard<std::recursive_mutex> lock(mutex_);
      durable_ = history_.size() - 1;
      job.device().failing_fence = job.device().counters().fence_calls + 1 + below(random_, 2);
    }
    {
      const std::lock_guard<std::recursive_mutex> lock(mutex_);
      history_.push_back(job.now);
      ++history_.back().step;
    }
    const auto persisted = job.persist();
    // Sizes change before it is known that the version fails, perhaps several times.
    if (fails && persisted.ok()) {
      if (below(random_, 3) == 0) done(job.resize_pair(pair_bytes(), random_), "resize_pair");
      for (std::uint64_t actions = below(random_, 4); actions > 0; --actions) act(job);
    }
    const bool lost = fails && (!persisted.ok() || !job.set().finish().ok());
    job.device().failing_fence = 0;
    if (!persisted.ok() && !fails) complain("persist: " + persisted.status().message());
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    if (lost) {
      history_.pop_back();
    } else if (persisted.ok()) {
      durable_ = std::max(durable_, persisted.value());
    }
  }

  // Perhaps in the flushing thread.
  void crash_here(CrashDevice& device) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    ++fences;
    device.for_each_image(model_, images_per_fence, seed_ + fences,
                          [this](std::span<const std::byte> image) { check(image); });
  }

  void check(std::span<const std::byte> image) {
    ++images;
    const GrowingRecovery found = recover_growing(shape_, image);
    const std::string at = "fence " + std::to_string(fences) + ": ";
    if (!found.status.ok()) return complain(at + "recovery: " + found.status.message());
    const std::string version = "version " + std::to_string(found.version);
    if (found.version < durable_ || found.version >= history_.size()) {
      return complain(at + version + " came back, " + std::to_string(durable_) + " was durable");
    }
    const bool same = found.version == 0 || found.contents == history_[found.version];
    if (!same) complain(at + version + " has other contents");
  }

  Random random_;
  std::uint64_t seed_;
  GrowingShape shape_;
  AtomicityModel model_ = AtomicityModel::prefix;
  std::recursive_mutex mutex_;  // what the flushing thread reads
  std::vector<GrowingVersion> history_;
  std::uint64_t durable_ = 0;
  std::string wrong_;
};

TEST(IpvResize, random_histories_recover_with_their_sizes_from_a_crash_at_every_fence) {
  const std::uint64_t seed = number_from("PERDURE_TEST_SEED", 1);
  const std::uint64_t histories = number_from("PERDURE_IPV_HISTORIES", 30);
  RecordProperty("seed", std::to_string(seed));
  std::uint64_t fences = 0, images = 0, resizes = 0;
  for (std::uint64_t i = 0; i < histories; ++i) {
    GrowingHistory history(seed + i);
    ASSERT_EQ(history.run(), "") << "PERDURE_TEST_SEED=" << seed + i << " PERDURE_IPV_HISTORIES=1";
    fences += history.fences;
    images += history.images;
    resizes += history.resizes;
  }
  std::printf("%llu histories from seed %llu: %llu fences, %llu images, %llu resizes\n",
              static_cast<unsigned long long>(histories), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(fences), static_cast<unsigned long long>(images),
              static_cast<unsigned long long>(resizes));
  EXPECT_GT(images, fences);
  EXPECT_GT(resizes, histories);
}

class IpvResized : public testing::Test {
 protected:
  void start(std::uint64_t bytes, unsigned lag = 1, Tier tier = PERDURE_IPV_COPY,
             bool helper = false) {
    GrowingShape shape;
    shape.helper = helper;
    shape.lag = lag;
    shape.tier = tier;
    job_.reset();
    job_ = std::make_unique<GrowingJob>(shape, growing_device(shape));
    ASSERT_TRUE(job_->start(random_growing(bytes, 4096, random_)).ok());
  }
  void persist() {
    job_->iterate_pair();
    const auto persisted = job_->persist();
    ASSERT_TRUE(persisted.ok()) << persisted.status().message();
  }
  void refused(const Status& status, Code code, const char* words) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
  void is_durable() {
    ASSERT_TRUE(job_->set().finish().ok());
    const GrowingRecovery found = recover_growing({}, job_->device().durable());
    ASSERT_TRUE(found.status.ok()) << found.status.message();
    EXPECT_TRUE(found.contents == job_->now);
  }

  Random random_{5};
  std::unique_ptr<GrowingJob> job_;
};

// The first page changes in each version, and what the tracker of now counts with it. Of the pages
// that are new each of two copies has one.
TEST_F(IpvResized, an_object_that_grows_in_its_place_and_room_saves_what_is_new) {
  constexpr std::uint64_t page = 4096;
  const auto make_versions = [this] {
    const std::uint64_t before = job_->set().list().named("u")->status().copied_bytes;
    for (int version = 0; version < 4; ++version) {
      job_->store({1, 2}, random_);
      persist();
    }
    return job_->set().list().named("u")->status().copied_bytes - before;
  };
  start(9 * page - 7, 0);
  make_versions();
  const std::uint64_t of_first_page = make_versions();
  EXPECT_LT(of_first_page, 4 * 9 * page);
  start(8 * page, 0);
  ASSERT_TRUE(job_->resize(9 * page - 7, Growth::in_place, random_).ok());  // room for more
  make_versions();
  EXPECT_EQ(make_versions(), of_first_page);
  ASSERT_TRUE(job_->resize(9 * page, Growth::in_place, random_).ok());  // within the last page
  EXPECT_LE(make_versions(), of_first_page + 2 * page);
  ASSERT_TRUE(job_->resize(9 * page + 40, Growth::in_place, random_).ok());
  EXPECT_LE(make_versions(), of_first_page + 2 * page);
  ASSERT_TRUE(job_->resize(9 * page - 100, Growth::in_place, random_).ok());
  EXPECT_LE(make_versions(), of_first_page);
  is_durable();
}

// What was stored before the call, and what lies in the new bytes, before or after it.
TEST_F(IpvResized, an_object_that_grows_in_its_place_loses_no_store_of_before) {
  constexpr std::uint64_t page = 4096;
  for (int time = 0; time < 8; ++time) {
    start(8 * page, 0);
    ASSERT_TRUE(job_->resize(9 * page - 7, Growth::in_place, random_).ok());  // room for more
    for (int version = 0; version < 4; ++version) {
      job_->store({1, 2}, random_);
      persist();
    }
    job_->store({5 * page, 5 * page + 1}, random_);
    ASSERT_TRUE(job_->resize(9 * page + 40, Growth::in_place, random_).ok());
    persist();
    is_durable();
  }
}

TEST_F(IpvResized, without_room_on_the_device_all_stays_as_it_was) {
  start(5000);
  persist();
  const GrowingVersion before = job_->now;
  std::vector<std::byte> large(8 << 20);
  refused(job_->set().resize("u", {large.data(), nullptr, large.size(), false}), Code::no_space,
          "");
  EXPECT_EQ(job_->set().list().named("u")->bytes(), 5000U);
  EXPECT_EQ(job_->set().list().named("u")->address(), job_->object_memory());
  EXPECT_TRUE(job_->now == before);
  job_->store({10, 20}, random_);
  persist();
  is_durable();
}

TEST_F(IpvResized, an_object_that_realloc_had_is_in_no_version_before_it_is_said) {
  for (const unsigned lag : {0U, 1U}) {
    start(5000, lag);
    persist();
    ASSERT_TRUE(job_->set().finish().ok());
    const auto first = reinterpret_cast<std::uintptr_t>(job_->object_memory());
    ASSERT_TRUE(job_->set().list().end_within(first, first + 1, Going::moved).ok());
    job_->iterate_pair();
    Status said = job_->set().persist().status();
    if (lag != 0) {
      EXPECT_TRUE(said.ok()) << said.message();
      said = job_->set().finish().status();
    }
    refused(said, Code::wrong_state, "given to realloc()");
    EXPECT_NE(said.message().find("perdure_ipv_resize()"), std::string::npos);
    EXPECT_EQ(recover_growing({}, job_->device().durable()).version, 1U);
    ASSERT_TRUE(job_->resize(6000, Growth::elsewhere, random_).ok());
    persist();
    is_durable();
  }
}

TEST_F(IpvResized, what_cant_be_is_refused_and_leaves_all_as_it_was) {
  start(5000);
  std::byte* const memory = job_->object_memory();
  ObjectSet& set = job_->set();
  refused(set.resize("w", {memory, nullptr, 10, true}), Code::not_found, "no object 'w'");
  refused(set.resize("u", {nullptr, nullptr, 10, true}), Code::invalid_argument, "address");
  refused(set.resize("u", {memory, memory + 8192, 10, true}), Code::invalid_argument, "no pair");
  refused(set.resize("p", {memory, nullptr, 4096, true}), Code::invalid_argument,
          "perdure_ipv_resize_pair()");
  refused(set.resize("p", {memory + 8, memory + 8192, 4096, true}), Code::invalid_argument,
          "multiples of 4096");
  auto* const pair = static_cast<std::byte*>(set.alive_of("p").value());
  refused(set.resize("u", {pair, nullptr, 10, true}), Code::invalid_argument, "overlap object 'p'");
  ASSERT_TRUE(set.list().named("u")->pin().ok());
  refused(set.resize("u", {memory, nullptr, 10, true}), Code::wrong_state, "perdure_ipv_unpin()");
  ASSERT_TRUE(set.list().named("u")->unpin().ok());
  persist();
  is_durable();
}

// The version under way has it as it was before.
TEST_F(IpvResized, a_pair_that_is_freed_after_it_got_another_size_is_in_the_next_version) {
  start(100, 1, PERDURE_IPV_COPY, true);
  persist();
  persist();
  ASSERT_TRUE(job_->resize_pair(9000, random_).ok());
  const auto* const alive = static_cast<std::byte*>(job_->set().alive_of("p").value());
  const auto first = reinterpret_cast<std::uintptr_t>(alive);
  ASSERT_TRUE(job_->set().list().end_within(first, first + 1, Going::freed).ok());
  const auto persisted = job_->persist();
  ASSERT_TRUE(persisted.ok()) << persisted.status().message();
  is_durable();
}

TEST_F(IpvResized, an_object_of_tier_stream_goes_on_in_copy_and_says_why) {
  start(8192, 1, PERDURE_IPV_STREAM);
  EXPECT_EQ(job_->set().list().named("u")->tier(), PERDURE_IPV_STREAM);
  job_->store({0, 8192}, random_);
  persist();
  job_->store({5, 700}, random_);
  ASSERT_TRUE(job_->resize(12'000, Growth::in_place, random_).ok());
  EXPECT_EQ(job_->set().list().named("u")->tier(), PERDURE_IPV_COPY);
  EXPECT_EQ(job_->set().list().named("u")->why_copy(), "it got another size or place");
  persist();
  job_->store({11'000, 12'000}, random_);
  persist();
  is_durable();
}

}  // namespace
}  // namespace perdure
