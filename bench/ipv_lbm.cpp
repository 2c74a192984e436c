// SPDX-License-Identifier: BSD-3-Clause
//
// bench_ipv_lbm: a lattice Boltzmann flow (D2Q9, periodic square) that keeps two arrays itself,
// with a version of every iteration: by copying both arrays (tier copy), and as a pair, whose roles
// alternate with no copy. Compiled by the ordinary compiler: the runtime alone.
//
// The ways take turns, so that what disturbs the machine meets all; a sample is the time of an
// iteration relative to that without versions in the same round. All must end with the same flow.
#include <algorithm>
#include <array>
#include <cmath>
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

constexpr std::size_t directions = 9;
constexpr std::array<int, directions> cx{0, 1, 0, -1, 0, 1, -1, -1, 1};
constexpr std::array<int, directions> cy{0, 0, 1, 0, -1, 1, 1, -1, -1};
constexpr std::array<double, directions> weight{4.0 / 9,  1.0 / 9,  1.0 / 9,  1.0 / 9, 1.0 / 9,
                                                1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};
constexpr double omega = 1.7;

struct Options {
  std::size_t n = 256;
  std::uint64_t iterations = 300;
  int rounds = 5;
  std::string directory = "/dev/shm";
  std::string emulate;
};

using Rows = std::array<const double*, directions>;

// Collides what streams into cells [first, end) of a row; `from` are the rows it comes from, each
// shifted by what its direction is away.
__attribute__((optimize("O3"))) void collide(const double* const* from, double* const* to,
                                             std::size_t first, std::size_t end) {
  const double *f0 = from[0], *f1 = from[1], *f2 = from[2], *f3 = from[3], *f4 = from[4],
               *f5 = from[5], *f6 = from[6], *f7 = from[7], *f8 = from[8];
  double *t0 = to[0], *t1 = to[1], *t2 = to[2], *t3 = to[3], *t4 = to[4], *t5 = to[5], *t6 = to[6],
         *t7 = to[7], *t8 = to[8];
#pragma GCC ivdep
  for (std::size_t x = first; x < end; ++x) {
    const double rho = f0[x] + f1[x] + f2[x] + f3[x] + f4[x] + f5[x] + f6[x] + f7[x] + f8[x];
    const double u = (f1[x] - f3[x] + f5[x] - f6[x] - f7[x] + f8[x]) / rho;
    const double v = (f2[x] - f4[x] + f5[x] + f6[x] - f7[x] - f8[x]) / rho;
    const double rest = 1.0 - 1.5 * (u * u + v * v);
    const auto relaxed = [&](double f, double w, double along) {
      return f + omega * (w * rho * (rest + 3.0 * along + 4.5 * along * along) - f);
    };
    t0[x] = relaxed(f0[x], weight[0], 0.0);
    t1[x] = relaxed(f1[x], weight[1], u);
    t2[x] = relaxed(f2[x], weight[2], v);
    t3[x] = relaxed(f3[x], weight[3], -u);
    t4[x] = relaxed(f4[x], weight[4], -v);
    t5[x] = relaxed(f5[x], weight[5], u + v);
    t6[x] = relaxed(f6[x], weight[6], v - u);
    t7[x] = relaxed(f7[x], weight[7], -u - v);
    t8[x] = relaxed(f8[x], weight[8], u - v);
  }
}

class Flow {
 public:
  // `memory`: two arrays.
  Flow(std::size_t n, std::array<double*, 2> memory) : n_(n), f_(memory) {
    for (std::size_t i = 0; i < directions * n * n; ++i) {
      const auto x = static_cast<double>(i % n), y = static_cast<double>(i / n % n);
      const double wave = 6.283185307179586 / static_cast<double>(n);
      const std::size_t d = i / (n * n);
      const double u = 0.05 * std::sin(wave * y), v = 0.05 * std::sin(wave * x);
      f_[0][i] = weight[d] * (1.0 + 3.0 * (cx[d] * u + cy[d] * v));
      f_[1][i] = f_[0][i];
    }
  }
  void iterate() {
    const double* const from = f_[now_];
    double* const to = f_[1 - now_];
    for (std::size_t y = 0; y < n_; ++y) row(from, to, y);
    now_ = 1 - now_;
  }
  double sum() const {
    double all = 0;
    for (std::size_t i = 0; i < directions * n_ * n_; ++i) {
      all += f_[now_][i] * static_cast<double>(i % 7 + 1);
    }
    return all;
  }
  double* array(std::size_t which) const { return f_[which]; }
  std::size_t bytes() const { return directions * n_ * n_ * sizeof(double); }

 private:
  const double* cell(const double* from, std::size_t d, std::size_t x, std::size_t y) const {
    const auto back = [this](std::size_t at, int c) {
      return (at + n_ - static_cast<std::size_t>(c + 1) + 1) % n_;
    };
    return from + (d * n_ + back(y, cy[d])) * n_ + back(x, cx[d]);
  }
  void row(const double* from, double* to, std::size_t y) const {
    std::array<const double*, directions> in{};
    std::array<double*, directions> out{};
    for (std::size_t d = 0; d < directions; ++d) {
      in[d] = cell(from, d, 1, y) - 1;
      out[d] = to + (d * n_ + y) * n_;
    }
    collide(in.data(), out.data(), 1, n_ - 1);
    for (const std::size_t x : {std::size_t{0}, n_ - 1}) {
      for (std::size_t d = 0; d < directions; ++d) in[d] = cell(from, d, x, y) - x;
      collide(in.data(), out.data(), x, x + 1);
    }
  }

  std::size_t n_;
  std::array<double*, 2> f_;
  std::size_t now_ = 0;
};

Status checked(int code) {
  return code == PERDURE_OK ? Status::success()
                            : Status(static_cast<Code>(code), perdure_last_error());
}

enum class Way { none, copy, pair };
constexpr std::array<Way, 3> ways{Way::none, Way::copy, Way::pair};
const char* name_of(Way way) {
  return way == Way::none ? "none" : way == Way::copy ? "copy" : "pair";
}

class Versions {
 public:
  Versions(const Options& options, Way way, const Flow& flow) : way_(way) {
    if (way == Way::none) return;
    path_ = options.directory + "/bench_ipv_lbm";
    std::filesystem::remove_all(path_);
    status_ = open(options, flow);
  }
  ~Versions() {
    if (!path_.empty()) std::filesystem::remove_all(path_);
  }
  Versions(const Versions&) = delete;
  Versions& operator=(const Versions&) = delete;

  const Status& status() const { return status_; }
  Status persist() { return way_ == Way::none ? status_ : checked(perdure_ipv_persist(nullptr)); }
  Status wait() { return way_ == Way::none ? status_ : checked(perdure_ipv_wait(nullptr)); }
  Status close() {
    if (way_ == Way::none) return status_;
    PERDURE_TRY(checked(perdure_ipv_close()));
    return checked(perdure_close(pool_));
  }

 private:
  Status open(const Options& options, const Flow& flow) {
    perdure_options given{};
    given.emulate = options.emulate.empty() ? nullptr : options.emulate.c_str();
    given.delay = PERDURE_DELAY_DRAIN;
    PERDURE_TRY(checked(perdure_open(path_.c_str(), &given, &pool_)));
    PERDURE_TRY(checked(perdure_ipv_open(pool_, nullptr)));
    if (way_ == Way::pair) {
      PERDURE_TRY(checked(perdure_ipv_pair("f", flow.array(0), flow.array(1), flow.bytes())));
    } else {
      PERDURE_TRY(checked(perdure_ipv_object("f", flow.array(0), flow.bytes(), nullptr)));
      PERDURE_TRY(checked(perdure_ipv_object("g", flow.array(1), flow.bytes(), nullptr)));
    }
    return checked(perdure_ipv_restart(nullptr));
  }

  Way way_;
  std::string path_;
  perdure_pool* pool_ = nullptr;
  Status status_;
};

struct Ran {
  double iteration_ms = 0;
  double sum = 0;
};

// The loop ends when its last version is durable.
Result<Ran> run(const Options& options, Way way) {
  const std::size_t bytes = directions * options.n * options.n * sizeof(double);
  std::array<double*, 2> memory{};
  for (double*& array : memory) array = static_cast<double*>(perdure_ipv_alloc(bytes));
  if (memory[0] == nullptr || memory[1] == nullptr) return Status(Code::no_space, "no memory");
  Flow flow(options.n, memory);
  Ran ran;
  {
    Versions versions(options, way, flow);
    PERDURE_TRY(versions.status());
    const std::uint64_t start_ns = monotonic_ns();
    for (std::uint64_t i = 0; i < options.iterations; ++i) {
      flow.iterate();
      PERDURE_TRY(versions.persist());
    }
    PERDURE_TRY(versions.wait());
    ran.iteration_ms = 1e-6 * static_cast<double>(monotonic_ns() - start_ns) /
                       static_cast<double>(options.iterations);
    PERDURE_TRY(versions.close());
  }
  ran.sum = flow.sum();
  for (double* array : memory) perdure_ipv_free(array);
  return ran;
}

void report(const Options& options, const std::string& what, const char* metric, const char* unit,
            const std::vector<double>& samples, double target) {
  Fact fact;
  fact.bench = "ipv";
  fact.name = "lbm-" + what + (options.emulate.empty() ? "" : "-" + options.emulate);
  fact.metric = metric;
  fact.unit = unit;
  fact = of_samples(fact, samples);
  print_fact(target > 0 ? at_most(target, fact) : fact);
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
    for (const Way way : {Way::copy, Way::pair}) {
      if (ran[way].sum != ran[Way::none].sum) {
        return Status(Code::damaged, "with ", name_of(way), " the flow is another one");
      }
      if (round >= 0) {
        ratios[way].push_back(ran[way].iteration_ms / ran[Way::none].iteration_ms);
      }
    }
    if (round >= 0) native_ms.push_back(ran[Way::none].iteration_ms);
  }
  report(options, "native", "iteration_ms", "ms", native_ms, 0);
  report(options, "copy", "overhead_ratio", "", ratios[Way::copy], 0);
  report(options, "pair", "overhead_ratio", "", ratios[Way::pair],
         options.emulate.empty() ? 1.02 : 1.01);
  return Status::success();
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) try {
  perdure::Options options;
  perdure::bench::Words words(
      "A double-buffered flow with a version of every iteration; one JSON line per fact");
  words.number("--n", options.n, "cells along an edge", 8, 8192);
  words.number("--iterations", options.iterations, "of a run", 1, 1'000'000);
  words.number("--rounds", options.rounds, "in which each way has a run", 1, 1000);
  words.directory("--dir", options.directory, "directory of the pool");
  words.text("--emulate", options.emulate, "memory model of `perdure devices`");
  if (const auto code = words.parse(argc, argv)) return *code;
  const perdure::Status status = perdure::measure(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_ipv_lbm: %s\n", status.message().c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_ipv_lbm: %s\n", error.what());
  return 1;
}
