// SPDX-License-Identifier: BSD-3-Clause
//
// What it costs to have many arrays: a commit of a pool with so many marked arrays of 64 bytes, of
// which 0, 1 or 10 were stored to; and to make them, and to open them again, each.
#include <unistd.h>

#include <cstring>
#include <random>

#include "base/group.hpp"
#include "persist.hpp"
#include "pmem/file_device.hpp"
#include "pool/pool.hpp"

namespace perdure::bench {
namespace {

constexpr std::uint64_t array_bytes = 64;

class ManyArrays {
 public:
  ManyArrays(const PersistOptions& options, std::size_t count)
      : path_(options.directory + "/perdure-bench-arrays-" + std::to_string(::getpid())),
        quick_(options.quick),
        count_(count) {}
  ~ManyArrays() { ::unlink(path_.c_str()); }
  ManyArrays(const ManyArrays&) = delete;
  ManyArrays& operator=(const ManyArrays&) = delete;

  Status measure() {
    PERDURE_TRY_ASSIGN(const double made, nanoseconds_of([&] { return make(); }));
    say_each("make", "time_of_each", "ns", made);
    for (const std::size_t changed : {0U, 1U, 10U}) PERDURE_TRY(measure_commits(changed));
    const auto file_bytes = static_cast<double>(pool_->device().size_bytes());
    say_each("file", "room", "B", file_bytes);
    pool_.reset();
    PERDURE_TRY_ASSIGN(const double opened, nanoseconds_of([&] { return open_again(); }));
    say_each("open", "time_of_each", "ns", opened);
    return Status::success();
  }

 private:
  Fact fact(const std::string& name, const std::string& metric, const std::string& unit) const {
    Fact made{.bench = "persist", .name = "arrays-" + name, .metric = metric, .unit = unit};
    made.more = {{"arrays", static_cast<std::int64_t>(count_)},
                 {"size", static_cast<std::int64_t>(array_bytes)}};
    return made;
  }
  void say_each(const char* name, const char* metric, const char* unit, double total) const {
    print_fact(of_samples(fact(name, metric, unit), {total / static_cast<double>(count_)}));
  }

  Status open_arrays() {
    arrays_.clear();
    ArrayOptions options;
    options.marks = true;
    for (std::size_t i = 0; i < count_; ++i) {
      PERDURE_TRY_ASSIGN(
          auto* array,
          pool_->open_array(
              "array " + std::to_string(i),
              {ArrayType::float64, ArrayMode::log, true, {array_bytes / sizeof(double)}}, options));
      arrays_.push_back(array);
    }
    return Status::success();
  }
  Status make() {
    PERDURE_TRY_ASSIGN(auto device, open_file_device(path_, {.create = true}));
    PERDURE_TRY_ASSIGN(const auto region, format_region(*device, {{{1, 2}}, "bench", 0, 1}, {}));
    PERDURE_TRY(format_slots(*device, region));
    PERDURE_TRY_ASSIGN(pool_, Pool::attach(std::move(device), region, group_, {}));
    PERDURE_TRY(pool_->restart().status());
    PERDURE_TRY(open_arrays());
    return pool_->commit().status();
  }
  Status open_again() {
    PERDURE_TRY_ASSIGN(auto device, open_file_device(path_, {}));
    PERDURE_TRY_ASSIGN(const auto region, check_region(*device));
    PERDURE_TRY_ASSIGN(pool_, Pool::attach(std::move(device), region, group_, {}));
    PERDURE_TRY(open_arrays());
    return pool_->restart().status();
  }

  Status measure_commits(std::size_t changed) {
    std::vector<double> samples;
    for (int i = 0; i < (quick_ ? 200 : 2000); ++i) {
      for (std::size_t j = 0; j < changed; ++j) {
        VersionedArray* array = arrays_[random_() % count_];
        std::memset(array->working(), i, array_bytes);
        PERDURE_TRY(array->mark(0, array_bytes));
      }
      const auto commit = [&] { return pool_->commit().status(); };
      PERDURE_TRY_ASSIGN(samples.emplace_back(), nanoseconds_of(commit));
    }
    Fact commit = fact("commit", "time", "ns");
    commit.more.emplace_back("changed", static_cast<std::int64_t>(changed));
    print_fact(of_samples(commit, std::move(samples)));
    return Status::success();
  }

  std::string path_;
  bool quick_;
  std::size_t count_;
  SoloGroup group_;
  std::mt19937_64 random_{1};
  std::unique_ptr<Pool> pool_;
  std::vector<VersionedArray*> arrays_;
};

}  // namespace

Status measure_arrays(const PersistOptions& options) {
  for (const std::size_t count : {10U, 1000U, 100000U, 1000000U}) {
    if (options.quick && count > 100000) continue;
    PERDURE_TRY(ManyArrays(options, count).measure());
  }
  return Status::success();
}

}  // namespace perdure::bench
