// SPDX-License-Identifier: BSD-3-Clause
#include "progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace matpower {
namespace {

constexpr double quiet_s = 2;
constexpr std::size_t bar_columns = 40;

}  // namespace

Progress::Progress(std::uint64_t steps, bool speaks)
    : steps_(steps), on_(speaks && ::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::step() {
  ++done_;
  if (!on_ || watch_.seconds() < quiet_s) return;
  const std::size_t full = bar_columns * done_ / steps_;
  const std::string bar = std::string(full, '#') + std::string(bar_columns - full, '.');
  std::fprintf(stderr, "\rmatpower [%s] step %llu of %llu, %.0f s\x1b[K", bar.c_str(),
               static_cast<unsigned long long>(done_), static_cast<unsigned long long>(steps_),
               watch_.seconds());
  shown_ = true;
}

}  // namespace matpower
