// SPDX-License-Identifier: BSD-3-Clause
//
// Page table filler: makes the page table entries of a mapping in the background, so that neither
// opening a file waits for them nor the first commit pays for page faults. A thread that comes to a
// page earlier faults it in, with its neighbours.
//
// Threads: one of its own, which takes no signals, until the last page or the destructor. The
// mapping outlives it. Failure: pages that could not be mapped are left to whoever touches them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace perdure {

class PageTableFiller {
 public:
  // For loads; entries of tmpfs that are made for a load allow stores as well.
  PageTableFiller(std::byte* begin, std::uint64_t count);
  ~PageTableFiller();
  PageTableFiller(const PageTableFiller&) = delete;
  PageTableFiller& operator=(const PageTableFiller&) = delete;

 private:
  void work(std::byte* begin, std::uint64_t count);

  std::atomic<bool> ending_{false};
  std::thread thread_;
};

// Makes them now; `for_load`, or for a store. 0, or an errno.
int fill_page_table(std::byte* begin, std::uint64_t count, bool for_load);

}  // namespace perdure
