// SPDX-License-Identifier: BSD-3-Clause
//
// Copy contents: which of a stream object's copies holds its contents, as they were handed over
// last or restored, and where each copy may differ from them.
//
// Nothing is allocated after begin(), so that a fault handler may use it. Threads: one at a time.
#pragma once

#include "ipv/line_set.hpp"

namespace perdure {

class CopyContents {
 public:
  // None is known to hold anything yet.
  void begin(std::uint32_t copies, std::uint64_t object_bytes);
  // `copy` holds the contents, whatever the others do.
  void restored(std::uint32_t copy);
  // `copy` holds new ones, which differ from those before where `changed` says so at most.
  void handed_over(std::uint32_t copy, const LineSet& changed);
  // Every copy may have lost lines of its own.
  void distrust();

  std::uint32_t holder() const { return holder_; }
  // Where the copy may differ from the holder's contents; the same set until begin().
  const LineSet& lacking(std::uint32_t copy) const { return lacking_[copy]; }

 private:
  std::uint32_t holder_ = 0;
  std::vector<LineSet> lacking_;  // by copy
};

}  // namespace perdure
