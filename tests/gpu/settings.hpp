// SPDX-License-Identifier: BSD-3-Clause
//
// What the environment and the test ask of the fake driver (fake_cuda.h), and the count of calls.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>

namespace fake {

struct Called {
  std::uint64_t number;
  bool must_fail;
  bool is_sticky;
  int code;
};

class Settings {
 public:
  Settings();

  Called begin_call(const char* name);
  int end_call(const Called& called, const char* name, int code);  // the code
  std::uint64_t calls(const char* name);
  void fail(const char* name, std::uint64_t at, int code, bool sticky);

  // A kernel of that name is taken and does nothing; empty: none.
  void skip(const char* name);
  bool skips(const std::string& name);

  // A number from the seed; the threads that ask decide who gets which.
  std::uint64_t draw();
  // Waits as long as is drawn, mostly not at all.
  void delay();
  void print_seed() const;
  bool is_other_process() const;  // a child, in which no thread of the driver runs

  std::atomic<std::uint64_t> bytes;
  std::atomic<unsigned> delay_us_max;
  std::atomic<bool> no_registering;
  std::atomic<bool> null_context;
  std::atomic<bool> other_addresses;
  bool host_tables;
  int devices;
  std::uint64_t kill_copy;

 private:
  struct Failure {
    std::string name;  // empty: of any
    std::uint64_t at = 0;
    int code = 0;  // 0: by the call's name
    bool and_after = false;
    bool sticky = false;
  };
  bool must_fail(const char* name);

  std::mutex lock_;
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  Failure failure_;
  std::string skipped_;
  std::uint64_t kill_at_;
  std::uint64_t seed_;
  bool quiet_;
  std::mt19937_64 random_;
  int log_ = -1;
  int process_;
};

Settings& settings();

}  // namespace fake
