// SPDX-License-Identifier: BSD-3-Clause
#include "rma/reduce.hpp"

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace perdure {
namespace {

// Integers that overflow wrap around, as in every MPI; signed ones may not in C++, and short ones
// would be multiplied as signed.
template <typename T, typename Do>
T wrapped(T a, T b, Do apply) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(apply(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  } else {
    return apply(a, b);
  }
}

struct Sum {
  template <typename T>
  static T of(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Prod {
  template <typename T>
  static T of(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct Min {
  template <typename T>
  static T of(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  static T of(T a, T b) {
    return a < b ? b : a;
  }
};
struct Band {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Bor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Bxor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Land {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a != 0 && b != 0);
  }
};
struct Lor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a != 0 || b != 0);
  }
};
struct Lxor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

// Elements need not be aligned.
template <typename T, typename Do>
void reduce_elements(std::byte* __restrict target, const std::byte* __restrict origin,
                     std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T there;
    T here;
    std::memcpy(&there, target + at, sizeof(T));
    std::memcpy(&here, origin + at, sizeof(T));
    there = Do::of(there, here);
    std::memcpy(target + at, &there, sizeof(T));
  }
}

void replace_all(std::byte* target, const std::byte* origin, std::size_t bytes) {
  std::memcpy(target, origin, bytes);
}

void leave_all(std::byte*, const std::byte*, std::size_t) {}

// --- which operation is there for which element --------------------------------------------------

template <typename T>
Reduce arithmetic(Reduction op) {
  switch (op) {
    case Reduction::sum:
      return reduce_elements<T, Sum>;
    case Reduction::prod:
      return reduce_elements<T, Prod>;
    default:
      return nullptr;
  }
}

template <typename T>
Reduce ordered(Reduction op) {
  switch (op) {
    case Reduction::min:
      return reduce_elements<T, Min>;
    case Reduction::max:
      return reduce_elements<T, Max>;
    default:
      return arithmetic<T>(op);
  }
}

template <typename T>
Reduce bitwise(Reduction op) {
  switch (op) {
    case Reduction::band:
      return reduce_elements<T, Band>;
    case Reduction::bor:
      return reduce_elements<T, Bor>;
    case Reduction::bxor:
      return reduce_elements<T, Bxor>;
    default:
      return nullptr;
  }
}

template <typename T>
Reduce logical(Reduction op) {
  switch (op) {
    case Reduction::land:
      return reduce_elements<T, Land>;
    case Reduction::lor:
      return reduce_elements<T, Lor>;
    case Reduction::lxor:
      return reduce_elements<T, Lxor>;
    default:
      return nullptr;
  }
}

template <typename T>
Reduce integral(Reduction op) {
  if (Reduce found = ordered<T>(op)) return found;
  if (Reduce found = bitwise<T>(op)) return found;
  return logical<T>(op);
}

// Bytes that follow each other are one run, however many the items.
RunWalk walk_along(const DatatypeMap& map) {
  static const std::vector<ByteRun> endless{{0, std::numeric_limits<std::int64_t>::max()}};
  static const std::vector<std::int64_t> starts{0};
  if (map.contiguous) return {endless, starts, endless[0].bytes, 0, 0};
  return {map.runs, map.starts, map.size_bytes, map.extent_bytes, 0};
}

}  // namespace

Reduce reduction(Reduction op, Element element) {
  if (element == Element::none || element == Element::other) return nullptr;
  if (op == Reduction::replace) return replace_all;
  if (op == Reduction::no_op) return leave_all;
  switch (element) {
    case Element::int8:
      return integral<std::int8_t>(op);
    case Element::int16:
      return integral<std::int16_t>(op);
    case Element::int32:
      return integral<std::int32_t>(op);
    case Element::int64:
      return integral<std::int64_t>(op);
    case Element::uint8:
      return integral<std::uint8_t>(op);
    case Element::uint16:
      return integral<std::uint16_t>(op);
    case Element::uint32:
      return integral<std::uint32_t>(op);
    case Element::uint64:
      return integral<std::uint64_t>(op);
    case Element::float32:
      return ordered<float>(op);
    case Element::float64:
      return ordered<double>(op);
    case Element::long_double:
      return ordered<long double>(op);
    case Element::complex32:
      return arithmetic<std::complex<float>>(op);
    case Element::complex64:
      return arithmetic<std::complex<double>>(op);
    case Element::byte:
      return bitwise<std::uint8_t>(op);
    case Element::boolean:
      return logical<std::uint8_t>(op);
    default:
      return nullptr;
  }
}

bool is_swappable(Element element) {
  return reduction(Reduction::bxor, element) != nullptr || element == Element::boolean;
}

ReducingWalk::Side::Side(const Runs& runs) : memory(runs.memory), walk(walk_along(*runs.map)) {}

std::byte* ReducingWalk::Side::at() const {
  return place_at(memory, walk.offset());
}

ReducingWalk::ReducingWalk(Reduce reduce, const Runs& target, const Runs& origin,
                           const Runs* result)
    : reduce_(reduce),
      fetches_(result != nullptr),
      target_(target),
      origin_(origin),
      result_(fetches_ ? *result : target) {}

void ReducingWalk::advance(std::int64_t bytes) {
  while (bytes > 0) {
    std::int64_t piece = std::min({bytes, target_.walk.left(), origin_.walk.left()});
    if (fetches_) piece = std::min(piece, result_.walk.left());
    const auto length = static_cast<std::size_t>(piece);
    if (fetches_) {
      std::memcpy(result_.at(), target_.at(), length);
      result_.walk.advance(piece);
    }
    reduce_(target_.at(), origin_.at(), length);
    target_.walk.advance(piece);
    origin_.walk.advance(piece);
    bytes -= piece;
  }
}

}  // namespace perdure
