// SPDX-License-Identifier: BSD-3-Clause
#include "rma/copy_runs.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace perdure {
namespace {

template <typename To, typename From>
void copy_along(std::byte* to, To to_walk, std::byte* from, From from_walk, std::int64_t bytes) {
  while (bytes > 0) {
    const std::int64_t piece = std::min({bytes, to_walk.left(), from_walk.left()});
    std::memcpy(place_at(to, to_walk.offset()), place_at(from, from_walk.offset()),
                static_cast<std::size_t>(piece));
    to_walk.advance(piece);
    from_walk.advance(piece);
    bytes -= piece;
  }
}

// --- runs that all have the same length ----------------------------------------------------------

// Where one run after another begins.
class EqualRuns {
 public:
  explicit EqualRuns(const Runs& of)
      : begin_(of.map->runs.data()),
        end_(begin_ + of.map->runs.size()),
        run_(begin_),
        item_(of.memory),
        extent_bytes_(of.map->extent_bytes) {}

  std::byte* next() {
    std::byte* at = place_at(item_, run_->offset);
    if (++run_ == end_) {
      run_ = begin_;
      item_ = place_at(item_, extent_bytes_);
    }
    return at;
  }

 private:
  const ByteRun* begin_;
  const ByteRun* end_;
  const ByteRun* run_;
  std::byte* item_;
  std::int64_t extent_bytes_;
};

// The same where all of an item are equally far from each other, or each item is one: without a
// look at the list, which may be as long as what is copied.
class StridedRuns {
 public:
  static bool fit(const DatatypeMap& map) { return map.runs.size() == 1 || map.stride_bytes != 0; }

  explicit StridedRuns(const Runs& of)
      : first_(place_at(of.memory, of.map->runs.front().offset)),
        at_(first_),
        extent_bytes_(of.map->extent_bytes),
        stride_bytes_(of.map->runs.size() == 1 ? extent_bytes_ : of.map->stride_bytes),
        runs_(static_cast<std::int64_t>(of.map->runs.size())) {
    if (extent_bytes_ == runs_ * stride_bytes_) runs_ = std::numeric_limits<std::int64_t>::max();
    left_ = runs_;
  }

  std::byte* next() {
    std::byte* at = at_;
    if (--left_ > 0) {
      at_ = place_at(at_, stride_bytes_);
    } else {
      at_ = first_ = place_at(first_, extent_bytes_);
      left_ = runs_;
    }
    return at;
  }

 private:
  std::byte* first_;  // run of the item
  std::byte* at_;
  std::int64_t extent_bytes_;
  std::int64_t stride_bytes_;
  std::int64_t runs_;
  std::int64_t left_;
};

// The same where they follow each other.
class Straight {
 public:
  Straight(const Runs& of, std::int64_t run_bytes) : at_(of.memory), run_bytes_(run_bytes) {}
  std::byte* next() {
    std::byte* at = at_;
    at_ += run_bytes_;
    return at;
  }

 private:
  std::byte* at_;
  std::int64_t run_bytes_;
};

// `size`: the bytes of a run, if the compiler is to know them; memcpy would be called for each.
template <std::size_t size, typename To, typename From>
void copy_equal(To to, From from, std::int64_t runs, std::size_t run_bytes) {
  for (std::int64_t i = 0; i < runs; ++i) {
    std::byte* const at = to.next();
    std::memcpy(at, from.next(), size == 0 ? run_bytes : size);
  }
}

template <typename To, typename From>
void copy_equal_runs(To to, From from, std::int64_t runs, std::int64_t run_bytes) {
  const auto size = static_cast<std::size_t>(run_bytes);
  switch (run_bytes) {
    case 4:
      return copy_equal<4>(to, from, runs, size);
    case 8:
      return copy_equal<8>(to, from, runs, size);
    case 16:
      return copy_equal<16>(to, from, runs, size);
    case 32:
      return copy_equal<32>(to, from, runs, size);
    case 64:
      return copy_equal<64>(to, from, runs, size);
    default:
      return copy_equal<0>(to, from, runs, size);
  }
}

// With a straight side, or two of a kind.
template <typename Side>
void copy_equal_sides(const Runs& to, const Runs& from, std::int64_t runs, std::int64_t run_bytes) {
  if (to.map->contiguous) {
    copy_equal_runs(Straight(to, run_bytes), Side(from), runs, run_bytes);
  } else if (from.map->contiguous) {
    copy_equal_runs(Side(to), Straight(from, run_bytes), runs, run_bytes);
  } else {
    copy_equal_runs(Side(to), Side(from), runs, run_bytes);
  }
}

// False: the runs are not all alike, or the last one is not whole.
bool copied_as_equal_runs(const Runs& to, const Runs& from, std::int64_t bytes) {
  const std::int64_t run = to.map->contiguous ? from.map->run_bytes : to.map->run_bytes;
  if (run == 0 || bytes % run != 0) return false;
  const bool straight = to.map->contiguous || from.map->contiguous;
  if (!straight && from.map->run_bytes != run) return false;
  if (StridedRuns::fit(*to.map) && StridedRuns::fit(*from.map)) {
    copy_equal_sides<StridedRuns>(to, from, bytes / run, run);
  } else {
    copy_equal_sides<EqualRuns>(to, from, bytes / run, run);
  }
  return true;
}

RunWalk walk(const DatatypeMap& map) {
  return {map.runs, map.starts, map.size_bytes, map.extent_bytes, 0};
}

}  // namespace

ByteSpan span_of(const DatatypeMap& map, std::int64_t count) {
  ByteSpan span{map.first, map.end};
  if (count < 1 || map.runs.empty()) return {};
  std::int64_t last = 0;
  if (__builtin_mul_overflow(count - 1, map.extent_bytes, &last) ||
      __builtin_add_overflow(span.first, std::min<std::int64_t>(last, 0), &span.first) ||
      __builtin_add_overflow(span.end, std::max<std::int64_t>(last, 0), &span.end)) {
    span.valid = false;
  }
  return span;
}

void copy_runs(const Runs& to, const Runs& from, std::int64_t bytes) {
  if (to.map->contiguous && from.map->contiguous) {
    std::memcpy(to.memory, from.memory, static_cast<std::size_t>(bytes));
  } else if (copied_as_equal_runs(to, from, bytes)) {
    return;
  } else if (to.map->contiguous) {
    copy_along(to.memory, StraightWalk(0), from.memory, walk(*from.map), bytes);
  } else if (from.map->contiguous) {
    copy_along(to.memory, walk(*to.map), from.memory, StraightWalk(0), bytes);
  } else {
    copy_along(to.memory, walk(*to.map), from.memory, walk(*from.map), bytes);
  }
}

}  // namespace perdure
