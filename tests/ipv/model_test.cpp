// SPDX-License-Identifier: BSD-3-Clause
//
// Random histories of an object against plain bytes: rows in any order and overlapping, boxes,
// which several threads may store to, unannounced stores, early flushes, pins, versions that fail,
// crashes. PERDURE_IPV_HISTORIES and PERDURE_TEST_SEED say how many and which.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "model_job.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t histories_default = 4000;

ModelShape random_shape(Random& random) {
  ModelShape shape;
  constexpr Tier tiers[] = {PERDURE_IPV_AUTO, PERDURE_IPV_COPY, PERDURE_IPV_STREAM};
  shape.tier = tiers[below(random, std::size(tiers))];
  constexpr std::uint64_t sizes[] = {4096, 4097, 8192, 9000, 100};
  shape.bytes = sizes[below(random, std::size(sizes))];
  if (below(random, 8) == 0) shape.misaligned = 8 * below(random, 512);
  shape.shared_end = below(random, 6) == 0;
  shape.lag = static_cast<unsigned>(below(random, 3) != 0);
  shape.helper = below(random, 3) == 0;
  shape.guard = below(random, 6) != 0;
  shape.move_views = below(random, 6) != 0;
  shape.keep = 1 + static_cast<std::uint32_t>(below(random, 3) / 2);
  return shape;
}

ModelVersion random_contents(const ModelShape& shape, Random& random) {
  ModelVersion fresh;
  fresh.bytes.assign(shape.bytes, 0);  // resize() alarms GCC 12 with AddressSanitizer
  for (auto& byte : fresh.bytes) byte = static_cast<std::uint8_t>(random());
  return fresh;
}

class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed), shape_(random_shape(random_)), base_(random_contents(shape_, random_)) {
    shape_.verify = seed % 4 == 0;
  }

  // The first thing that was wrong; "" if nothing was.
  std::string run() {
    auto device = model_device(shape_);
    for (std::uint64_t run = 1 + below(random_, 2); run > 0 && wrong_.empty(); --run) {
      std::vector<std::byte> image = run_once(std::move(device));
      if (run > 1 && wrong_.empty()) device = model_device(shape_, image);
    }
    return wrong_;
  }

  std::string describe() const {
    return std::string(tier_name(shape_.tier)) + ", " + std::to_string(shape_.bytes) +
           " bytes, misaligned " + std::to_string(shape_.misaligned) + ", lag " +
           std::to_string(shape_.lag) + (shape_.helper ? ", helper" : "") +
           (shape_.guard ? "" : ", no guard") + (shape_.move_views ? "" : ", mapped anew") +
           (shape_.verify ? ", verify" : "") + ", keep " + std::to_string(shape_.keep);
  }

 private:
  void complain(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  // Ends with a crash that keeps what is durable.
  std::vector<std::byte> run_once(std::unique_ptr<CrashDevice> device) {
    pinned_ = false;
    has_thread_ = shape_.helper;
    ModelJob job(shape_, std::move(device));
    const auto version = job.start(base_);
    if (!version.ok()) {
      complain("it can't start: " + version.status().message());
      return {};
    }
    if (version.value() != version_ || !(job.now == base_)) {
      complain("it restarted with other contents than version " + std::to_string(version_));
    }
    const std::uint64_t iterations = 1 + below(random_, shape_.tier == PERDURE_IPV_AUTO ? 12 : 6);
    for (std::uint64_t iteration = 0; iteration < iterations && wrong_.empty(); ++iteration)
      run_iteration(job);
    if (below(random_, 2) == 0) store_something(job);  // part of no version
    complain_of_loads(job);
    if (below(random_, 2) == 0) {
      if (!job.set().wait().ok()) complain("a version failed");
      unfinished_ = false;
    } else if (!job.set().drain().ok()) {
      complain("a flush failed");
    }
    const auto kept = job.device().durable();
    const std::vector<std::byte> image(kept.begin(), kept.end());
    if (below(random_, 4) == 0) check_close(job);
    if (unfinished_) {  // the crash comes before it is
      base_ = before_;
      --version_;
      unfinished_ = false;
    }
    return image;
  }

  void run_iteration(ModelJob& job) {
    const std::uint64_t actions = below(random_, 4) + (below(random_, 5) == 0 ? 5 : 0);
    for (std::uint64_t i = 0; i < actions; ++i) act(job);
    if (below(random_, 5) == 0) flush_early(job);
    job.compare({0, shape_.bytes});
    if (below(random_, 12) == 0) {
      fail_then_persist(job);
    } else {
      persist(job);
    }
    complain_of_loads(job);
  }

  void complain_of_loads(const ModelJob& job) {
    if (!job.wrong.empty()) complain(job.wrong);
  }

  void act(ModelJob& job) {
    switch (below(random_, 8)) {
      case 0:
      case 1:
      case 2:
      case 3:
        box(job);
        break;
      case 4:
        store_something(job);
        break;
      case 5:
        job.compare(random_range());
        break;
      case 6:
        if (below(random_, 3) == 0) pin_or_unpin(job);
        break;
      default:
        row(job);
    }
  }

  // Without guard each store must be announced.
  void store_something(ModelJob& job) {
    job.store(random_range(), !shape_.guard || below(random_, 3) == 0, random_);
  }

  ByteRange random_range() {
    const std::uint64_t begin = below(random_, shape_.bytes);
    const std::uint64_t most = below(random_, 4) == 0 ? shape_.bytes : 200;
    return {begin, std::min(shape_.bytes, begin + 1 + below(random_, most))};
  }

  // Of one dimension, any length; now and then of a nest that also touches another part.
  void row(ModelJob& job) {
    const ByteRange range = random_range();
    const ByteRange other = below(random_, 6) == 0 ? random_range() : ByteRange{};
    job.nest({range.begin, {range.end - range.begin}, {1}, other}, random_);
  }

  void box(ModelJob& job) {
    std::vector<std::size_t> counts{1 + below(random_, below(random_, 2) == 0 ? 40 : 1200)};
    std::vector<std::size_t> strides{1};
    std::uint64_t extent = counts[0];
    for (std::uint64_t d = below(random_, 4); d > 0; --d) {
      strides.push_back(extent + below(random_, 2) * below(random_, 30));
      counts.push_back(1 + below(random_, 4));
      extent += (counts.back() - 1) * strides.back();
    }
    if (extent > shape_.bytes) return;
    job.nest({below(random_, shape_.bytes - extent + 1), counts, strides, {}}, random_);
  }

  void flush_early(ModelJob& job) {
    has_thread_ = true;
    const ByteRange range = below(random_, 2) == 0 ? ByteRange{0, shape_.bytes} : random_range();
    const Status status =
        job.set().flush_early(job.object().address() + range.begin, range.end - range.begin);
    if (!status.ok()) complain("flush_early: " + status.message());
  }

  void pin_or_unpin(ModelJob& job) {
    if (job.object().tier() == PERDURE_IPV_STREAM) {
      if (job.object().pin().ok()) complain("pin: an object whose pages move was pinned");
      return;
    }
    const Status status = pinned_ ? job.object().unpin() : job.object().pin();
    if (!status.ok()) complain("pin: " + status.message());
    pinned_ = !pinned_;
  }

  void persist(ModelJob& job) {
    const auto persisted = job.persist();
    if (!persisted.ok()) return complain("persist: " + persisted.status().message());
    begun(job.now);
    if (persisted.value() != version_ - shape_.lag) complain("another version's number");
    if (shape_.lag == 0 || below(random_, 2) == 0) check_durable(job);
  }

  void begun(const ModelVersion& version) {
    before_ = std::exchange(base_, version);
    ++version_;
    unfinished_ = shape_.lag != 0;
  }

  void check_durable(ModelJob& job) {
    if (const Status waited = job.set().wait(); !waited.ok()) complain(waited.message());
    unfinished_ = false;
    const ModelRecovery found = recover_model(shape_, job.device().durable());
    if (!found.status.ok()) return complain("recovery: " + found.status.message());
    if (found.version != version_) {
      complain("version " + std::to_string(found.version) + " is durable, not " +
               std::to_string(version_));
    } else if (!(found.contents == base_)) {
      complain("version " + std::to_string(version_) + " has other contents");
    }
  }

  // A fence of the version fails; the contents stay, and the next try succeeds.
  void fail_then_persist(ModelJob& job) {
    (void)job.set().wait();
    unfinished_ = false;
    job.device().failing_fence = job.device().counters().fence_calls + 1 + below(random_, 2);
    auto tried = job.persist();
    const ModelVersion version = job.now;
    // The next iteration begins before the failure is known; no thread whose fence it might be.
    if (tried.ok() && shape_.lag != 0 && !has_thread_) {
      for (std::uint64_t i = below(random_, 3); i > 0; --i) act(job);
    }
    const Status waited = job.set().wait();
    const bool failed = !tried.ok() || !waited.ok();
    job.device().failing_fence = 0;
    if (!failed) {  // the fence was an early flush's, or came after the version
      begun(version);
      return check_durable(job);
    }
    if (tried.ok() && job.persist().ok()) {
      return complain("persist() did not tell that the version failed");
    }
    job.compare({0, shape_.bytes});
    if (below(random_, 2) == 0) act(job);
    persist(job);
  }

  void check_close(ModelJob& job) {
    const Status closed = job.set().close();
    if (!closed.ok()) complain("close: " + closed.message());
    job.compare({0, shape_.bytes});
    job.address()[0] = static_cast<std::uint8_t>(job.address()[0] + 1);  // ordinary memory
    complain_of_loads(job);
  }

  Random random_;
  ModelShape shape_;
  ModelVersion base_;  // of version_
  std::uint64_t version_ = 0;
  ModelVersion before_;      // of version_ - 1
  bool unfinished_ = false;  // version_ is begun, and no call has finished it
  std::string wrong_;
  bool pinned_ = false;
  bool has_thread_ = false;
};

// Rows of 1000 bytes begin and end within lines: these are flushed once, by the version, and no
// other.
void store_past_the_cache(ModelJob& job, std::size_t stride) {
  perdure_ipv_box box{};
  box.first = job.object().address();
  box.dimensions = 2;
  box.counts[0] = 1000;
  box.counts[1] = 8;
  box.strides[0] = 1;
  box.strides[1] = stride;
  ASSERT_EQ(job.object().box_begin(box).how, PERDURE_IPV_BOX_PAST_CACHE);
  for (std::uint64_t row = 0; row < 8; ++row) {
    for (std::uint64_t i = 0; i < 1000; ++i) job.address()[row * stride + i] = 7;
  }
  job.set().box_end(job.object(), box, true);
  ASSERT_TRUE(job.persist().ok());
}

TEST(IpvModel, what_rows_past_the_cache_do_not_fill_is_flushed_with_the_version) {
  ModelShape shape;
  shape.tier = PERDURE_IPV_STREAM;
  shape.lag = 0;
  ModelJob job(shape, model_device(shape));
  Random random(1);
  ASSERT_TRUE(job.start(random_contents(shape, random)).ok());
  for (const std::size_t gap : {std::size_t{0}, std::size_t{16}}) {
    const std::uint64_t stride = 1000 + gap;
    const std::uint64_t end = 7 * stride + 1000;
    std::set<std::uint64_t> ends;
    for (std::uint64_t row = 0; row < 8; ++row) {
      const std::uint64_t begin = row * stride;
      if (begin % 64 != 0) ends.insert(begin / 64);
      if ((begin + 1000) % 64 != 0) ends.insert((begin + 1000) / 64);
    }
    for (int i = 0; i < 3; ++i) store_past_the_cache(job, stride);
    const perdure_ipv_object_status before = job.object().status();
    store_past_the_cache(job, stride);
    const perdure_ipv_object_status now = job.object().status();
    EXPECT_EQ(now.flushed_bytes - before.flushed_bytes, 64 * ends.size()) << gap;
    EXPECT_EQ(now.copied_bytes - before.copied_bytes, 7 * gap + (64 - end % 64) % 64) << gap;
  }
}

TEST(IpvModel, random_histories_load_and_recover_what_plain_bytes_would) {
  const std::uint64_t seed = number_from("PERDURE_TEST_SEED", 1);
  const std::uint64_t histories = number_from("PERDURE_IPV_HISTORIES", histories_default);
  RecordProperty("seed", std::to_string(seed));
  for (std::uint64_t i = 0; i < histories; ++i) {
    History history(seed + i);
    const std::string wrong = history.run();
    ASSERT_EQ(wrong, "") << "PERDURE_TEST_SEED=" << seed + i
                         << " PERDURE_IPV_HISTORIES=1: " << history.describe();
  }
  std::printf("%llu histories from seed %llu\n", static_cast<unsigned long long>(histories),
              static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace perdure
