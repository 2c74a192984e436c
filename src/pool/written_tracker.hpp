// SPDX-License-Identifier: BSD-3-Clause
//
// Written tracker: asks the kernel which pages of a buffer were written, which Linux 6.7 and later
// tell: userfaultfd's asynchronous write protection lets every store through, the kernel's own too,
// and PAGEMAP_SCAN of /proc/self/pagemap reads what was written and protects it again, in one step.
// No signal, no handler, no limit of ranges. Huge pages are split where they are stored into.
//
// A forked child's memory is not watched: it has neither the descriptors nor the protection. It
// leaves the parent's alone.
#pragma once

#include "base/fork_guard.hpp"
#include "pool/page_tracker.hpp"

namespace perdure {

class WrittenTracker final : public PageTracker {
 public:
  // Code::unsupported says what is missing. Tried once a process, on a page.
  static Status available();

  static Result<std::unique_ptr<PageTracker>> create(std::byte* base, std::size_t size_bytes);
  ~WrittenTracker() override;

 private:
  using PageTracker::PageTracker;
  void unwatch(bool mapped) override;
  Status protect(ByteRange range) override;
  Status release(ByteRange range) override;
  Status take(ByteRange range, PageSet& changed) override;
  std::uint64_t address(std::uint64_t offset) const {
    return reinterpret_cast<std::uintptr_t>(base()) + offset;
  }

  ForkGuard fork_;
};

}  // namespace perdure
