// SPDX-License-Identifier: BSD-3-Clause
#include "settings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cuda_driver.h"
#include "fake_cuda.h"

namespace fake {
namespace {

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == 0 ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace

Settings& settings() {
  static Settings* const the_settings = new Settings;  // outlives every thread
  return *the_settings;
}

Settings::Settings()
    : bytes(number_of("FAKE_CUDA_BYTES", std::uint64_t{1} << 30U)),
      delay_us_max(static_cast<unsigned>(number_of("FAKE_CUDA_DELAY_US", 200))),
      no_registering(number_of("FAKE_CUDA_NO_REGISTERING", 0) != 0),
      null_context(number_of("FAKE_CUDA_NULL_CONTEXT", 0) != 0),
      other_addresses(number_of("FAKE_CUDA_OTHER_ADDRESSES", 0) != 0),
      host_tables(number_of("FAKE_CUDA_HOST_TABLES", 0) != 0),
      devices(static_cast<int>(number_of("FAKE_CUDA_DEVICES", 1))),
      kill_copy(number_of("FAKE_CUDA_KILL_COPY", 0)),
      kill_at_(number_of("FAKE_CUDA_KILL_AT", 0)),
      seed_(number_of("FAKE_CUDA_SEED", std::random_device{}())),
      quiet_(number_of("FAKE_CUDA_QUIET", 0) != 0),
      random_(seed_),
      process_(::getpid()) {
  const char* const name = std::getenv("FAKE_CUDA_FAIL_CALL");
  failure_ = {name == nullptr ? "" : name, number_of("FAKE_CUDA_FAIL_AT", 0),
              static_cast<int>(number_of("FAKE_CUDA_FAIL_CODE", 0)),
              number_of("FAKE_CUDA_FAIL_ON", 0) != 0, number_of("FAKE_CUDA_FAIL_STICKY", 0) != 0};
  const char* const log = std::getenv("FAKE_CUDA_LOG");
  if (log != nullptr) log_ = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

void Settings::print_seed() const {
  if (quiet_) return;
  std::fprintf(stderr, "FAKE_CUDA_SEED=%llu\n", static_cast<unsigned long long>(seed_));
}

bool Settings::is_other_process() const {
  return ::getpid() != process_;
}

std::uint64_t Settings::draw() {
  const std::lock_guard locked(lock_);
  return random_();
}

void Settings::delay() {
  const unsigned longest = delay_us_max;
  const std::uint64_t drawn = draw();
  if (longest == 0 || drawn % 8 < 4) return;
  const std::uint64_t most = drawn % 8 < 7 ? longest / 4 + 1 : longest + 1;
  std::this_thread::sleep_for(std::chrono::microseconds(drawn / 8 % most));
}

// Under the lock.
bool Settings::must_fail(const char* name) {
  if (failure_.at == 0) return false;
  if (!failure_.name.empty() && failure_.name != name) return false;
  if (failure_.at > 1) {
    failure_.at--;
    return false;
  }
  if (!failure_.and_after) failure_.at = 0;
  return true;
}

Called Settings::begin_call(const char* name) {
  const std::lock_guard locked(lock_);
  Called called = {++count_, false, failure_.sticky, failure_.code};
  counts_[name]++;
  if (called.number == kill_at_) ::kill(::getpid(), SIGKILL);
  called.must_fail = must_fail(name);
  if (called.code == 0) {
    const bool wants_memory = std::strstr(name, "Alloc") != nullptr;
    called.code = called.is_sticky ? CUDA_ILLEGAL_ADDRESS
                                   : (wants_memory ? CUDA_OUT_OF_MEMORY : CUDA_UNKNOWN);
  }
  return called;
}

int Settings::end_call(const Called& called, const char* name, int code) {
  if (log_ >= 0) {
    char line[128];
    const int length = std::snprintf(line, sizeof line, "%d %llu %s %d\n", ::getpid(),
                                     static_cast<unsigned long long>(called.number), name, code);
    // The reader of a log sees that it is short.
    [[maybe_unused]] const auto written = ::write(log_, line, static_cast<std::size_t>(length));
  }
  return code;
}

std::uint64_t Settings::calls(const char* name) {
  const std::lock_guard locked(lock_);
  if (name == nullptr) return count_;
  const auto found = counts_.find(name);
  return found == counts_.end() ? 0 : found->second;
}

void Settings::fail(const char* name, std::uint64_t at, int code, bool sticky) {
  const std::lock_guard locked(lock_);
  failure_ = {name == nullptr ? "" : name, at, code, false, sticky};
}

void Settings::skip(const char* name) {
  const std::lock_guard locked(lock_);
  skipped_ = name == nullptr ? "" : name;
}

bool Settings::skips(const std::string& name) {
  const std::lock_guard locked(lock_);
  return !skipped_.empty() && skipped_ == name;
}

}  // namespace fake
