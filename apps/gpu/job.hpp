// SPDX-License-Identifier: BSD-3-Clause
//
// A job of one process whose state is in memory of a GPU: PROGRAM POOL N STEPS EVERY. It says where
// it begins, and "committed STEP" of each version that is durable.
#pragma once

#include <perdure/perdure.h>

#include "device.hpp"

namespace gpu {

class Job {
 public:
  Job(int count, char** words) {
    if (count != 5) {
      std::fprintf(stderr, "usage: %s POOL N STEPS EVERY\n", words[0]);
      std::exit(2);
    }
    n = std::atol(words[2]);
    steps_ = std::atol(words[3]);
    every_ = std::atol(words[4]);
    check(perdure_open(words[1], nullptr, &pool_));
    check(perdure_stream(pool_, PERDURE_STREAM_CUDA, stream));
    scalar("iteration", &step, sizeof step);
  }

  void array(const char* name, const Vector& of, std::uint64_t elements, int mode) {
    perdure_array* array = nullptr;
    perdure_array_options options{};
    options.buffer = of.buffer();
    check(perdure_array_open(pool_, name, PERDURE_DOUBLE, 1, &elements, mode, &options, &array));
  }
  void scalar(const char* name, void* at, std::size_t bytes) {
    check(perdure_scalar(pool_, name, at, bytes));
  }
  // Whether there is a version, which all that was named is filled with.
  bool restarts() {
    std::uint64_t version = 0;
    check(perdure_restart(pool_, &version));
    std::printf("begins at %ld\n", step);
    return version != 0;
  }
  bool goes_on() const { return step < steps_; }
  // A commit takes what the stream was asked for, and the next step need not wait for it.
  void end_step() {
    ++step;
    if (step % every_ != 0) return;
    wait();
    check(perdure_commit_begin(pool_));
    begun_ = step;
  }
  void end(const std::vector<double>& result) {
    wait();
    check(perdure_close(pool_));
    std::printf("hash %016llx\n", static_cast<unsigned long long>(hash_of(result)));
  }

  const Stream stream = make_stream();
  long n = 0;
  long step = 0;

 private:
  static void check(int code) {
    if (code == PERDURE_OK) return;
    std::fprintf(stderr, "%s\n", perdure_last_error());
    std::exit(1);
  }
  void wait() {
    if (begun_ == 0) return;
    check(perdure_commit_wait(pool_, nullptr));
    std::printf("committed %ld\n", begun_);
    std::fflush(stdout);
    begun_ = 0;
  }

  perdure_pool* pool_ = nullptr;
  long steps_ = 0;
  long every_ = 1;
  long begun_ = 0;
};

}  // namespace gpu
