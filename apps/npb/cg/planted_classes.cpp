// SPDX-License-Identifier: BSD-3-Clause
//
// For a test: a published number that is wrong in the tenth digit, so that verification must fail.
#include "npb/cg/classes.hpp"

namespace npb::cg {

const ProblemClass& class_of(char /*name*/) {
  static const ProblemClass planted{1400, 7, 15, 10, 8.5971775078648 * (1 + 2e-10)};
  return planted;
}

}  // namespace npb::cg
