// SPDX-License-Identifier: BSD-3-Clause
//
// Pairs against plain bytes: double-buffered loops whose versions fail, which are killed at every
// fence, and which break the contract. PERDURE_TEST_SEED and PERDURE_IPV_HISTORIES say which and
// how many histories.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "ipv/pair_object.hpp"
#include "model_job.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t page_bytes = 4096;

struct PairShape : ModelShape {
  unsigned every = 1;
};

IpvOptions options_of(const PairShape& shape) {
  IpvOptions options;
  options.lag = shape.lag;
  options.helper = shape.helper;
  options.every = shape.every;
  options.verify = shape.verify;
  options.move_views = shape.move_views;
  return options;
}

// A stencil of bytes: the first `wall` bytes of each 512 are never stored to.
class PairJob {
 public:
  PairJob(const PairShape& shape, std::unique_ptr<CrashDevice> device)
      : shape_(shape),
        on_(std::move(device), options_of(shape)),
        mapped_bytes_(align_up(shape.bytes, page_bytes)) {
    for (std::byte*& array : arrays_) {
      void* mapped = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      PERDURE_ASSERT(mapped != MAP_FAILED);
      array = static_cast<std::byte*>(mapped);
    }
  }
  ~PairJob() {
    on_.set.reset();
    for (std::byte* array : arrays_) ::munmap(array, mapped_bytes_);
  }
  PairJob(const PairJob&) = delete;
  PairJob& operator=(const PairJob&) = delete;

  Result<std::uint64_t> start(const ModelVersion& fresh) {
    std::memcpy(arrays_[0], fresh.bytes.data(), shape_.bytes);
    step_ = fresh.step;
    PERDURE_TRY(on_.pool->bind_scalar("step", &step_, sizeof step_));
    PERDURE_TRY(on_.set->add_pair("u", arrays_[0], arrays_[1], shape_.bytes));
    auto version = on_.set->restart();
    if (!version.ok()) return version;
    alive = which();
    now.bytes.resize(shape_.bytes);
    std::memcpy(now.bytes.data(), arrays_[alive], shape_.bytes);
    now.step = step_;
    return version;
  }

  // Overwrites the array that is not alive, from the one that is, all but [missed.begin, end).
  void iterate(ByteRange missed = {}) {
    ModelVersion next = now;
    auto* const to = reinterpret_cast<volatile std::uint8_t*>(arrays_[1 - alive]);
    const auto* const from = reinterpret_cast<const volatile std::uint8_t*>(arrays_[alive]);
    for (std::uint64_t i = 0; i < shape_.bytes; ++i) {
      if (from[i] != now.bytes[i]) complain("a load", i);
      if (i % 512 < wall) continue;
      next.bytes[i] =
          static_cast<std::uint8_t>(now.bytes[i] * 5U + now.bytes[i - 1] + now.step + 1);
      if (i < missed.begin || i >= missed.end) to[i] = next.bytes[i];
    }
    alive = 1 - alive;
    now = next;
    ++now.step;
    step_ = now.step;
  }
  Result<std::uint64_t> persist() {
    auto durable = on_.set->persist();
    for (std::uint64_t i = 0; i < shape_.bytes; ++i) {
      if (array(alive)[i] != now.bytes[i]) complain("after a persistence point a load", i);
    }
    return durable;
  }
  unsigned which() const { return on_.set->alive_of("u").value() == arrays_[0] ? 0U : 1U; }
  volatile std::uint8_t* array(unsigned place) {
    return reinterpret_cast<volatile std::uint8_t*>(arrays_[place]);
  }
  ObjectSet& set() { return *on_.set; }
  CrashDevice& device() { return *on_.device; }

  static constexpr std::uint64_t wall = 40;
  ModelVersion now;
  unsigned alive = 0;
  std::string wrong;

 private:
  void complain(const char* what, std::uint64_t at) {
    if (wrong.empty()) wrong = std::string(what) + " of byte " + std::to_string(at) + " was wrong";
  }

  PairShape shape_;
  ObjectsOnDevice on_;
  std::uint64_t mapped_bytes_;
  std::byte* arrays_[2] = {};
  std::uint64_t step_ = 0;
};

ModelVersion random_contents(std::uint64_t bytes, Random& random) {
  ModelVersion fresh;
  fresh.bytes.assign(bytes, 0);
  for (auto& byte : fresh.bytes) byte = static_cast<std::uint8_t>(random());
  return fresh;
}

struct Known {
  ModelVersion contents;
  unsigned alive;
};

class PairHistory {
 public:
  explicit PairHistory(std::uint64_t seed) : random_(seed) {
    constexpr std::uint64_t sizes[] = {4096, 9000, 100, 20000};
    shape_.bytes = sizes[below(random_, std::size(sizes))];
    shape_.lag = static_cast<unsigned>(below(random_, 3) != 0);
    shape_.helper = below(random_, 2) == 0;
    shape_.keep = 1 + static_cast<std::uint32_t>(below(random_, 3) / 2);
    shape_.every = 1 + static_cast<unsigned>(below(random_, 4) / 3);
    shape_.move_views = below(random_, 6) != 0;
    shape_.verify = below(random_, 4) == 0;
  }

  std::string run() {
    auto device = model_device(shape_);
    ModelVersion fresh = random_contents(shape_.bytes, random_);
    known_.push_back({fresh, 0});
    for (int run = 0; run < 3 && wrong_.empty(); ++run) {
      PairJob job(shape_, std::move(device));
      const auto restarted = job.start(fresh);
      if (!restarted.ok()) return restarted.status().message();
      check_restart(job, restarted.value());
      run_iterations(job);
      if (!job.wrong.empty()) complain(job.wrong);
      const auto kept = job.device().durable();
      device = model_device(shape_, std::vector<std::byte>(kept.begin(), kept.end()));
    }
    return wrong_;
  }

 private:
  void complain(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  void check_restart(PairJob& job, std::uint64_t version) {
    if (version < durable_ || version >= known_.size()) return complain("a version was lost");
    known_.resize(version + 1);
    if (!(job.now == known_[version].contents)) complain("a restart gave other contents");
    if (job.which() != known_[version].alive) complain("the contents are in the other array");
  }
  void run_iterations(PairJob& job) {
    for (std::uint64_t n = below(random_, 12), calls = 0; n > 0 && wrong_.empty(); --n) {
      job.iterate();
      const bool fails = below(random_, 8) == 0;
      if (fails) job.device().failing_fence = job.device().counters().fence_calls + 1;
      const bool commits = ++calls % shape_.every == 0;
      const auto persisted = job.persist();
      job.device().failing_fence = 0;
      if (persisted.ok() && commits) known_.push_back({job.now, job.alive});
      if (!persisted.ok() && !fails) complain("persist: " + persisted.status().message());
      if (persisted.ok()) durable_ = std::max(durable_, persisted.value());
      if (!persisted.ok() && shape_.lag != 0) known_.pop_back();  // the one before
      if (below(random_, 4) == 0) finish(job);
      if (job.which() != job.alive) complain("the roles did not alternate");
    }
    (void)job.set().drain();
  }
  void finish(PairJob& job) {
    const auto finished = job.set().finish();
    if (!finished.ok()) return complain("wait: " + finished.status().message());
    durable_ = finished.value();
    if (durable_ + 1 != known_.size()) return complain("another version's number");
    const ModelRecovery found = recover_model(shape_, job.device().durable());
    if (!(found.contents == known_.back().contents) && durable_ != 0) {
      complain("what is durable has other contents");
    }
  }

  Random random_;
  PairShape shape_;
  std::vector<Known> known_;  // by version
  std::uint64_t durable_ = 0;
  std::string wrong_;
};

TEST(IpvPair, random_histories_recover_what_plain_arrays_would_hold) {
  const std::uint64_t seed = number_from("PERDURE_TEST_SEED", 1);
  const std::uint64_t histories = number_from("PERDURE_IPV_HISTORIES", 600);
  RecordProperty("seed", std::to_string(seed));
  for (std::uint64_t i = 0; i < histories; ++i) {
    PairHistory history(seed + i);
    ASSERT_EQ(history.run(), "") << "PERDURE_TEST_SEED=" << seed + i << " PERDURE_IPV_HISTORIES=1";
  }
  std::printf("%llu histories from seed %llu\n", static_cast<unsigned long long>(histories),
              static_cast<unsigned long long>(seed));
}

struct SweepCase {
  unsigned lag;
  bool helper;
  AtomicityModel model;
};

class IpvPairCrash : public testing::TestWithParam<SweepCase> {};

TEST_P(IpvPairCrash, every_image_recovers_to_the_version_before_or_after) {
  PairShape shape;
  shape.bytes = 4096 + 520;
  shape.lag = GetParam().lag;
  shape.helper = GetParam().helper;
  Random random(7);
  PairJob job(shape, model_device(shape));
  std::mutex mutex;  // fences may come from the helper
  std::vector<ModelVersion> history{random_contents(shape.bytes, random)};
  std::uint64_t acknowledged = 0, images = 0, fences = 0;
  std::string wrong;
  job.device().on_fence = [&](CrashDevice& device) {
    ++fences;
    device.for_each_image(GetParam().model, 200, fences, [&](std::span<const std::byte> image) {
      const ModelRecovery found = recover_model(shape, image);
      const std::lock_guard<std::mutex> lock(mutex);
      ++images;
      const bool known =
          found.status.ok() && found.version >= acknowledged && found.version < history.size();
      if (known && (found.version == 0 || found.contents == history[found.version])) return;
      if (wrong.empty()) {
        wrong = "fence " + std::to_string(fences) + ": version " + std::to_string(found.version) +
                (known ? " has other contents" : " came back") + found.status.message();
      }
    });
  };
  ASSERT_TRUE(job.start(history[0]).ok());
  for (int iteration = 0; iteration < 11; ++iteration) {
    job.iterate();
    {
      const std::lock_guard<std::mutex> lock(mutex);
      history.push_back(job.now);
    }
    const auto persisted = job.persist();
    ASSERT_TRUE(persisted.ok()) << persisted.status().message();
    const std::lock_guard<std::mutex> lock(mutex);
    acknowledged = persisted.value();
  }
  ASSERT_TRUE(job.set().wait().ok());
  job.device().on_fence = nullptr;
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(job.wrong, "");
  EXPECT_GE(fences, 22U);
  EXPECT_GT(images, fences);
  std::printf("%llu fences, %llu images\n", static_cast<unsigned long long>(fences),
              static_cast<unsigned long long>(images));
}

std::vector<SweepCase> cases() {
  std::vector<SweepCase> all;
  for (const auto model : {AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines}) {
    all.push_back({0, false, model});
    all.push_back({1, false, model});
    all.push_back({1, true, model});
  }
  return all;
}
std::string name_of(const testing::TestParamInfo<SweepCase>& info) {
  return "lag" + std::to_string(info.param.lag) + (info.param.helper ? "_beside_" : "_") +
         atomicity_name(info.param.model);
}
INSTANTIATE_TEST_SUITE_P(Models, IpvPairCrash, testing::ValuesIn(cases()), name_of);

// Every look at the array that is alive gives what the last persistence point left there.
TEST(IpvPair, a_reader_beside_the_loop_sees_the_version_in_the_array_that_is_alive) {
  PairShape shape;
  shape.bytes = 4 * page_bytes;
  PairJob job(shape, model_device(shape));
  Random random(3);
  ASSERT_TRUE(job.start(random_contents(shape.bytes, random)).ok());
  constexpr std::uint64_t seen_at = 3 * page_bytes + 100;
  std::atomic<std::uint32_t> expected{0};  // turn, array, value
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<int> wrong{0};
  const auto publish = [&] {
    const std::uint32_t turn = expected.load() >> 16U;
    expected = (turn + 1) << 16U | job.alive << 8U | job.now.bytes[seen_at];
  };
  publish();
  std::thread reader([&] {
    while (!stop) {
      const std::uint32_t before = expected;
      const std::uint8_t seen = job.array(before >> 8U & 1U)[seen_at];
      if (expected != before) continue;  // it may be overwritten by now
      if (seen != (before & 255U)) ++wrong;
      ++looks;
    }
  });
  for (int iteration = 0; iteration < 300 || looks < 1000; ++iteration) {
    job.iterate();
    publish();
    ASSERT_TRUE(job.persist().ok());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(job.wrong, "");
}

TEST(IpvPairDeathTest, a_store_to_the_array_of_the_version_ends_with_a_sentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  PairShape shape;
  EXPECT_DEATH(
      {
        PairJob job(shape, model_device(shape));
        Random random(1);
        (void)job.start(random_contents(shape.bytes, random));
        job.iterate();
        (void)job.persist();
        job.array(job.alive)[17] = 1;
      },
      "pair 'u': a store to the array that holds the version");
}

TEST(IpvPairDeathTest, a_store_to_the_array_that_was_restored_ends_with_a_sentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  PairShape shape;
  EXPECT_DEATH(
      {
        PairJob job(shape, model_device(shape));
        Random random(1);
        (void)job.start(random_contents(shape.bytes, random));
        job.array(job.alive)[17] = 1;
      },
      "pair 'u': a store to the array that holds the version");
}

TEST(IpvPair, what_follows_an_array_in_its_last_page_stays_its_own) {
  PairShape shape;
  shape.bytes = 9000;
  PairJob job(shape, model_device(shape));
  Random random(1);
  ASSERT_TRUE(job.start(random_contents(shape.bytes, random)).ok());
  std::uint8_t rest[2] = {0, 0};
  for (std::uint8_t step = 1; step < 8; ++step) {
    job.iterate();
    rest[job.alive] = step;
    job.array(job.alive)[shape.bytes + 7] = step;
    ASSERT_TRUE(job.persist().ok());
    for (const unsigned place : {0U, 1U}) {
      EXPECT_EQ(job.array(place)[shape.bytes + 7], rest[place]);
    }
  }
}

TEST(IpvPairDeathTest, a_store_after_the_array_of_the_version_ends_with_a_sentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  PairShape shape;
  shape.bytes = 9000;
  EXPECT_DEATH(
      {
        PairJob job(shape, model_device(shape));
        Random random(1);
        (void)job.start(random_contents(shape.bytes, random));
        job.array(job.alive)[shape.bytes + 17] = 1;
      },
      "pair 'u': a store to byte 17 after the end of the array that holds the version");
}

// The program that leaves `missed` out of every iteration from the fifth on; the error, and at
// which iteration it came.
std::pair<std::string, int> breach(const PairShape& shape, ByteRange missed) {
  PairJob job(shape, model_device(shape));
  Random random(1);
  EXPECT_TRUE(job.start(random_contents(shape.bytes, random)).ok());
  for (int iteration = 0; iteration < 12; ++iteration) {
    job.iterate(iteration < 4 ? ByteRange{} : missed);
    const auto persisted = job.persist();
    if (!persisted.ok()) {
      job.iterate();
      EXPECT_FALSE(job.persist().ok()) << "only the first persistence point reports it";
      return {persisted.status().message(), iteration};
    }
  }
  return {"", 12};
}

TEST(IpvPair, a_page_that_an_iteration_did_not_overwrite_is_an_error) {
  PairShape shape;
  shape.lag = 0;
  shape.bytes = 8 * page_bytes;
  const auto [message, iteration] = breach(shape, {2 * page_bytes, 6 * page_bytes});
  EXPECT_NE(message.find("pair 'u': the iteration did not overwrite byte"), std::string::npos)
      << message;
  EXPECT_EQ(iteration, 4) << "words of each page are checked in the first iterations";
}

TEST(IpvPair, a_breach_at_a_persistence_point_without_a_version_is_told_by_the_next_one) {
  PairShape shape;
  shape.lag = 0;
  shape.every = 2;
  shape.bytes = 8 * page_bytes;
  PairJob job(shape, model_device(shape));
  Random random(1);
  ASSERT_TRUE(job.start(random_contents(shape.bytes, random)).ok());
  for (int iteration = 0; iteration < 6; ++iteration) {
    job.iterate(iteration == 4 ? ByteRange{2 * page_bytes, 6 * page_bytes} : ByteRange{});
    EXPECT_EQ(job.set().persist().ok(), iteration < 5) << iteration;
  }
}

TEST(IpvPair, verify_finds_the_words_that_an_iteration_did_not_overwrite) {
  PairShape shape;
  shape.lag = 0;
  shape.bytes = 8 * page_bytes;
  shape.verify = true;
  const auto [message, iteration] = breach(shape, {5 * page_bytes + 64, 5 * page_bytes + 72});
  EXPECT_NE(message.find("byte " + std::to_string(5 * page_bytes + 64)), std::string::npos)
      << message;
  EXPECT_EQ(iteration, 4);
}

// It is overwritten, by something that was made of what should have been.
TEST(IpvPair, verify_finds_numbers_that_were_read_before_they_were_overwritten) {
  PairShape shape;
  shape.lag = 0;
  shape.bytes = 2 * page_bytes;
  shape.verify = true;
  PairJob job(shape, model_device(shape));
  ModelVersion zeros;
  zeros.bytes.assign(shape.bytes, 0);
  ASSERT_TRUE(job.start(zeros).ok());
  std::string found;
  for (int iteration = 0; iteration < 6 && found.empty(); ++iteration) {
    auto* const to = reinterpret_cast<volatile double*>(job.array(1 - job.which()));
    const auto* const from = reinterpret_cast<volatile double*>(job.array(job.which()));
    for (std::uint64_t i = 0; i < shape.bytes / sizeof(double); ++i) {
      const double also = i == 70 ? to[i] : 0;  // a breach
      to[i] = 0.5 * from[i] + static_cast<double>(i) + also;
    }
    const auto persisted = job.set().persist();
    if (!persisted.ok()) found = persisted.status().message();
  }
  EXPECT_NE(found.find("byte 560 "), std::string::npos) << found;
}

TEST(IpvPair, arrays_that_cant_be_a_pair_are_refused) {
  PairShape shape;
  PairJob job(shape, model_device(shape));
  auto* const memory = const_cast<std::uint8_t*>(job.array(0));
  const auto refused = [&](void* a, void* b, std::size_t bytes, const char* words) {
    const Status status = job.set().add_pair("v", a, b, bytes);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  refused(memory, memory, 4096, "not overlap");
  refused(memory + 8, memory + 4096, 8, "multiples of 4096");
  refused(memory, nullptr, 8, "address");
}

TEST(IpvPair, a_pair_whose_memory_is_freed_keeps_its_last_version) {
  for (const unsigned lag : {0U, 1U}) {
    PairShape shape;
    shape.lag = lag;
    PairJob job(shape, model_device(shape));
    Random random(5);
    ASSERT_TRUE(job.start(random_contents(shape.bytes, random)).ok());
    for (int iteration = 0; iteration < 3; ++iteration) {
      job.iterate();
      ASSERT_TRUE(job.persist().ok());
    }
    const ModelVersion last = job.now;
    const auto second = reinterpret_cast<std::uintptr_t>(job.array(1));
    ASSERT_TRUE(job.set().list().end_within(second + 10, second + 11, Going::freed).ok());
    ASSERT_TRUE(job.set().persist().ok());
    ASSERT_TRUE(job.set().wait().ok());
    const ModelRecovery found = recover_model(shape, job.device().durable());
    EXPECT_EQ(found.version, 4U);
    EXPECT_EQ(found.contents.bytes, last.bytes);
  }
}

TEST(IpvPair, a_pair_that_is_freed_after_its_version_failed_is_in_the_next_one) {
  PairShape shape;
  shape.lag = 0;
  PairJob job(shape, model_device(shape));
  Random random(5);
  ASSERT_TRUE(job.start(random_contents(shape.bytes, random)).ok());
  job.iterate();
  ASSERT_TRUE(job.persist().ok());
  job.iterate();
  job.device().failing_fence = job.device().counters().fence_calls + 1;
  ASSERT_FALSE(job.persist().ok());
  job.device().failing_fence = 0;
  const ModelVersion last = job.now;
  const auto first = reinterpret_cast<std::uintptr_t>(job.array(0));
  ASSERT_TRUE(job.set().list().end_within(first, first + 1, Going::freed).ok());
  ASSERT_TRUE(job.set().persist().ok());
  const ModelRecovery found = recover_model(shape, job.device().durable());
  EXPECT_EQ(found.version, 2U);
  EXPECT_EQ(found.contents.bytes, last.bytes);
}

}  // namespace
}  // namespace perdure
