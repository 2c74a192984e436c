// SPDX-License-Identifier: BSD-3-Clause
#include "npb/mg/classes.hpp"

#include <map>

namespace npb::mg {
namespace {

constexpr Stencil small_smoother{-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0};
constexpr Stencil large_smoother{-3.0 / 17.0, 1.0 / 33.0, -1.0 / 61.0, 0.0};

}  // namespace

const ProblemClass& class_of(char name) {
  static const std::map<char, ProblemClass> classes{
      {'S', {5, 4, small_smoother, 0.5307707005734e-04}},
      {'W', {7, 4, small_smoother, 0.6467329375339e-05}},
      {'A', {8, 4, small_smoother, 0.2433365309069e-05}},
      {'B', {8, 20, large_smoother, 0.1800564401355e-05}},
      {'C', {9, 20, large_smoother, 0.5706732285740e-06}}};
  return classes.at(name);
}

}  // namespace npb::mg
