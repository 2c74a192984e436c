// SPDX-License-Identifier: BSD-3-Clause
#include "npb/cg/classes.hpp"

#include <map>

namespace npb::cg {

const ProblemClass& class_of(char name) {
  static const std::map<char, ProblemClass> classes{{'S', {1400, 7, 15, 10, 8.5971775078648}},
                                                    {'W', {7000, 8, 15, 12, 10.362595087124}},
                                                    {'A', {14000, 11, 15, 20, 17.130235054029}},
                                                    {'B', {75000, 13, 75, 60, 22.712745482631}},
                                                    {'C', {150000, 15, 75, 110, 28.973605592845}}};
  return classes.at(name);
}

}  // namespace npb::cg
