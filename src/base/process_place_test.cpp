// SPDX-License-Identifier: BSD-3-Clause
//
// The file of a process in a job.
// ctest: NAME base_test
#include "base/process_place.hpp"

#include <gtest/gtest.h>

namespace perdure {
namespace {

TEST(ProcessPlace, the_path_names_the_process_and_the_rank) {
  EXPECT_EQ(expand_path("t.%r.%p.%%x%", 77, {.rank = 3, .ranks = 4}), "t.3.77.%x%");
  EXPECT_EQ(expand_path("t", 77, {.rank = 0, .ranks = 1}), "t");
  EXPECT_EQ(expand_path("t", 77, {.rank = 2, .ranks = 4}), "t.2") << "ranks never share a file";
}

}  // namespace
}  // namespace perdure
