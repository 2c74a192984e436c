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

template <Reduction op, typename T>
T reduced(T a, T b) {
  if constexpr (op == Reduction::sum) return wrapped(a, b, [](auto x, auto y) { return x + y; });
  if constexpr (op == Reduction::prod) return wrapped(a, b, [](auto x, auto y) { return x * y; });
  if constexpr (op == Reduction::min) return b < a ? b : a;
  if constexpr (op == Reduction::max) return a < b ? b : a;
  if constexpr (op == Reduction::band) return static_cast<T>(a & b);
  if constexpr (op == Reduction::bor) return static_cast<T>(a | b);
  if constexpr (op == Reduction::bxor) return static_cast<T>(a ^ b);
  if constexpr (op == Reduction::land) return static_cast<T>(a != 0 && b != 0);
  if constexpr (op == Reduction::lor) return static_cast<T>(a != 0 || b != 0);
  if constexpr (op == Reduction::lxor) return static_cast<T>((a != 0) != (b != 0));
}

// Elements need not be aligned.
template <typename T, Reduction op>
void reduce_elements(std::byte* __restrict target, const std::byte* __restrict origin,
                     std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T there;
    T here;
    std::memcpy(&there, target + at, sizeof(T));
    std::memcpy(&here, origin + at, sizeof(T));
    there = reduced<op>(there, here);
    std::memcpy(target + at, &there, sizeof(T));
  }
}

void replace_all(std::byte* target, const std::byte* origin, std::size_t bytes) {
  std::memcpy(target, origin, bytes);
}

void leave_all(std::byte*, const std::byte*, std::size_t) {}

// --- which operation is there for which element --------------------------------------------------

template <typename T, Reduction... known>
Reduce one_of(Reduction op) {
  Reduce found = nullptr;
  ((found = op == known ? reduce_elements<T, known> : found), ...);
  return found;
}

template <typename T>
Reduce arithmetic(Reduction op) {
  return one_of<T, Reduction::sum, Reduction::prod>(op);
}

template <typename T>
Reduce ordered(Reduction op) {
  const Reduce found = one_of<T, Reduction::min, Reduction::max>(op);
  return found != nullptr ? found : arithmetic<T>(op);
}

template <typename T>
Reduce bitwise(Reduction op) {
  return one_of<T, Reduction::band, Reduction::bor, Reduction::bxor>(op);
}

template <typename T>
Reduce logical(Reduction op) {
  return one_of<T, Reduction::land, Reduction::lor, Reduction::lxor>(op);
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
