// SPDX-License-Identifier: BSD-3-Clause
//
// The suite's program. Under CTest it runs by itself, with the layer loaded, and with the layer
// asked to make every window persistent (../variant.sh).
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "suite.hpp"

namespace {

void print_known_failures() {
  for (const suite::KnownFailure& failure : suite::known_failures()) {
    const std::string only = failure.ranks == 0 ? "any" : std::to_string(failure.ranks);
    std::printf("%-18s ranks %-4s %-60s %s\n", failure.version_text, only.c_str(), failure.test,
                failure.reason);
  }
}

// Rank 0 reports the progress of the run; the others only what went wrong.
class FailuresOnly : public testing::EmptyTestEventListener {
  // GoogleTest holds a lock while it reports a failure, so the name is asked for here.
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    std::printf("rank %d: %s: %s:%d: %s\n", suite::rank(), test_.c_str(), part.file_name(),
                part.line_number(), part.message());
    std::fflush(stdout);
  }
  std::string test_;
};

// Without it a variant whose preload went wrong would pass as a second `plain`.
TEST(Variant, the_layer_is_loaded_exactly_if_the_variant_says_so) {
  const char* variant = std::getenv("PERDURE_SUITE_VARIANT");
  if (variant == nullptr) GTEST_SKIP() << "not run by variant.sh";
  const bool loaded = dlsym(RTLD_DEFAULT, "perdure_open_mpi") != nullptr;
  EXPECT_EQ(loaded, std::strcmp(variant, "plain") != 0) << "variant " << variant;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--known-failures") == 0) {
    print_known_failures();
    return 0;
  }
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (suite::rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly);
  }
  const int failed = RUN_ALL_TESTS();
  int any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
