// SPDX-License-Identifier: BSD-3-Clause
//
// bench_ipv_grow: particles in one array that grows at every iteration, with a version of each: in
// tier copy, and asked for in tier stream, which it leaves when it grows for the first time.
// Compiled by the ordinary compiler: the runtime alone.
//
// The ways take turns, so that what disturbs the machine meets all; a sample is the time of a run
// relative to that without versions in the same round. All must end with the same particles.
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/fact.hpp"
#include "base/status.hpp"
#include "perdure/perdure.h"
#include "perdure/perdure_ipv.h"
#include "words.hpp"

namespace perdure {
namespace {

struct Options {
  std::size_t kib = 2048;  // at first
  std::uint64_t iterations = 200;
  int rounds = 5;
  std::string directory = "/dev/shm";
  std::string emulate;
};

Status checked(int code) {
  return code == PERDURE_OK ? Status::success()
                            : Status(static_cast<Code>(code), perdure_last_error());
}

enum class Way { none, copy, stream };
constexpr std::array<Way, 3> ways{Way::none, Way::copy, Way::stream};
const char* name_of(Way way) {
  return way == Way::none ? "none" : way == Way::copy ? "copy" : "stream";
}

// Memory is twice as much where it does not suffice, as that of a std::vector.
class Particles {
 public:
  Particles(std::size_t count, bool is_object)
      : is_object_(is_object), capacity_(count), at_(allocated(count)), born_(count / 64) {
    add(count);
  }
  ~Particles() { perdure_ipv_free(at_); }
  Particles(const Particles&) = delete;
  Particles& operator=(const Particles&) = delete;

  double* at() const { return at_; }
  std::size_t bytes() const { return count_ * sizeof(double); }

  // All move, and a 64th of the first ones is born.
  Status iterate() {
    for (std::size_t i = 0; i < count_; ++i) at_[i] = 0.999 * at_[i] + 0.25;
    if (count_ + born_ > capacity_) return move();
    add(born_);
    return is_object_ ? checked(perdure_ipv_resize("p", at_, bytes())) : Status::success();
  }
  double sum() const {
    double all = 0;
    for (std::size_t i = 0; i < count_; ++i) all += at_[i] * static_cast<double>(i % 7 + 1);
    return all;
  }

 private:
  static double* allocated(std::size_t count) {
    auto* const memory = static_cast<double*>(perdure_ipv_alloc(count * sizeof(double)));
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void add(std::size_t more) {
    for (std::size_t i = 0; i < more; ++i, ++count_) at_[count_] = static_cast<double>(count_ % 31);
  }
  Status move() {
    double* const before = at_;
    capacity_ *= 2;
    at_ = allocated(capacity_);
    std::memcpy(at_, before, bytes());
    add(born_);
    Status status;
    if (is_object_) status = checked(perdure_ipv_resize("p", at_, bytes()));
    perdure_ipv_free(before);
    return status;
  }

  bool is_object_;
  std::size_t count_ = 0;
  std::size_t capacity_;
  double* at_;
  std::size_t born_;
};

struct Ran {
  double loop_ms = 0;
  double sum = 0;
};

class Versions {
 public:
  Versions(const Options& options, Way way) : way_(way), path_(options.directory) {
    path_ += "/bench_ipv_grow";
    std::filesystem::remove_all(path_);
  }
  ~Versions() { std::filesystem::remove_all(path_); }
  Versions(const Versions&) = delete;
  Versions& operator=(const Versions&) = delete;

  Status open(const Options& options, const Particles& particles) {
    if (way_ == Way::none) return Status::success();
    perdure_options given{};
    given.emulate = options.emulate.empty() ? nullptr : options.emulate.c_str();
    given.delay = PERDURE_DELAY_DRAIN;
    const perdure_ipv_object_options tier{way_ == Way::copy ? PERDURE_IPV_COPY : PERDURE_IPV_STREAM,
                                          0};
    PERDURE_TRY(checked(perdure_open(path_.c_str(), &given, &pool_)));
    PERDURE_TRY(checked(perdure_ipv_open(pool_, nullptr)));
    PERDURE_TRY(checked(perdure_ipv_object("p", particles.at(), particles.bytes(), &tier)));
    return checked(perdure_ipv_restart(nullptr));
  }
  Status persist() {
    return way_ == Way::none ? Status::success() : checked(perdure_ipv_persist(nullptr));
  }
  Status wait() {
    return way_ == Way::none ? Status::success() : checked(perdure_ipv_wait(nullptr));
  }
  Status close() {
    if (way_ == Way::none) return Status::success();
    PERDURE_TRY(checked(perdure_ipv_close()));
    return checked(perdure_close(pool_));
  }

 private:
  Way way_;
  std::string path_;
  perdure_pool* pool_ = nullptr;
};

// The loop ends when its last version is durable.
Result<Ran> run(const Options& options, Way way) {
  Particles particles(options.kib * 1024 / sizeof(double), way != Way::none);
  Versions versions(options, way);
  PERDURE_TRY(versions.open(options, particles));
  const std::uint64_t start_ns = monotonic_ns();
  for (std::uint64_t i = 0; i < options.iterations; ++i) {
    PERDURE_TRY(particles.iterate());
    PERDURE_TRY(versions.persist());
  }
  PERDURE_TRY(versions.wait());
  const double loop_ms = 1e-6 * static_cast<double>(monotonic_ns() - start_ns);
  PERDURE_TRY(versions.close());
  return Ran{loop_ms, particles.sum()};
}

void report(const Options& options, const std::string& what, const char* metric, const char* unit,
            const std::vector<double>& samples) {
  Fact fact;
  fact.bench = "ipv";
  fact.name = "grow-" + what + (options.emulate.empty() ? "" : "-" + options.emulate);
  fact.metric = metric;
  fact.unit = unit;
  print_fact(of_samples(fact, samples));
}

Status measure(const Options& options) {
  std::map<Way, std::vector<double>> ratios;
  std::vector<double> native_ms;
  for (int round = -1; round < options.rounds; ++round) {
    std::map<Way, Ran> ran;
    for (std::size_t turn = 0; turn < ways.size(); ++turn) {
      const Way way = ways[(turn + static_cast<std::size_t>(round + 1)) % ways.size()];
      PERDURE_TRY_ASSIGN(ran[way], run(options, way));
    }
    for (const Way way : {Way::copy, Way::stream}) {
      if (ran[way].sum != ran[Way::none].sum) {
        return Status(Code::damaged, "with ", name_of(way), " the particles are others");
      }
      if (round >= 0) ratios[way].push_back(ran[way].loop_ms / ran[Way::none].loop_ms);
    }
    if (round >= 0) native_ms.push_back(ran[Way::none].loop_ms);
  }
  report(options, "native", "run_time_ms", "ms", native_ms);
  for (const auto& [way, samples] : ratios) {
    report(options, name_of(way), "run_time_ratio", "", samples);
  }
  return Status::success();
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) try {
  perdure::Options options;
  perdure::bench::Words words(
      "An array that grows, with a version of every iteration; one JSON line per fact");
  words.number("--kib", options.kib, "of the array at first", 1, std::size_t{1} << 20U);
  words.number("--iterations", options.iterations, "of a run", 1, 1'000'000);
  words.number("--rounds", options.rounds, "in which each way has a run", 1, 1000);
  words.directory("--dir", options.directory, "directory of the pool");
  words.text("--emulate", options.emulate, "memory model of `perdure devices`");
  if (const auto code = words.parse(argc, argv)) return *code;
  const perdure::Status status = perdure::measure(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_ipv_grow: %s\n", status.message().c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_ipv_grow: %s\n", error.what());
  return 1;
}
