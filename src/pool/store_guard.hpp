// SPDX-License-Identifier: BSD-3-Clause
//
// Store guard (PERDURE_CHECK=1): memory of an array that the program sees, and that can be stored
// to only while it is the program's turn. A store at another time, through a pointer or a slice
// that is older than a commit, is named on standard error and ends the program there.
//
// Invariants
//   - The guarded memory is whole pages, to which nobody stores but the program.
//   - What the fault handler reads is atomic, or set before its range is.
//
// Threads: stores may come from any thread; all else from one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/status.hpp"

namespace perdure {

// Whether PERDURE_CHECK asks for guards: "1"; "0" or nothing does not. Code::invalid_argument.
Result<bool> checks_stores();

struct GuardedBytes;

class StoreGuard {
 public:
  // Whole pages at `begin`, of which the array's bytes begin at `first`. Closed at first.
  static Result<std::unique_ptr<StoreGuard>> create(std::byte* begin, std::size_t size_bytes,
                                                    const std::byte* first,
                                                    const std::string& array);
  ~StoreGuard();  // leaves the pages as they are
  StoreGuard(const StoreGuard&) = delete;
  StoreGuard& operator=(const StoreGuard&) = delete;

  // Lets the program store, or not. A no-op if it is so already.
  Status allow(bool stores);

 private:
  explicit StoreGuard(GuardedBytes& range) : range_(range) {}
  Status protect(int protection);

  GuardedBytes& range_;
  bool open_ = true;
};

}  // namespace perdure
