// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/page_ranges.hpp"

#include <algorithm>

namespace perdure {

PageRanges::PageRanges(std::size_t most) : most_(most) {
  ranges_.reserve(2 * most + 1);
}

void PageRanges::add(ByteRange range) {
  if (range.begin == range.end) return;
  if (!ranges_.empty() && range.begin <= ranges_.back().end &&
      ranges_.back().begin <= range.end) {  // the usual case: ascending, neighbouring calls
    ranges_.back().begin = std::min(ranges_.back().begin, range.begin);
    ranges_.back().end = std::max(ranges_.back().end, range.end);
    return;
  }
  ranges_.push_back(range);
  if (ranges_.size() > 2 * most_) merge();
}

void PageRanges::merge() {
  std::ranges::sort(ranges_,
                    [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].begin <= ranges_[last].end) {
      ranges_[last].end = std::max(ranges_[last].end, ranges_[i].end);
    } else {
      ranges_[++last] = ranges_[i];
    }
  }
  ranges_.resize(std::min(ranges_.size(), last + 1));
  if (ranges_.size() > most_) {
    ranges_.front().end = ranges_.back().end;
    ranges_.resize(1);
  }
}

std::vector<ByteRange> PageRanges::take() {
  merge();
  std::vector<ByteRange> taken = ranges_;
  ranges_.clear();
  return taken;
}

}  // namespace perdure
