// SPDX-License-Identifier: BSD-3-Clause
//
// How many collective calls a commit adds to a synchronisation call: counted, as this program's own
// PMPI_* come before the MPI library's.
// ctest: RANKS 2 LIBS dl
#include <dlfcn.h>

#include "window_pool_fixture.hpp"

namespace {

int collectives = 0;

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

PERDURE_API int PMPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm) {
  ++collectives;
  static auto* real = next<decltype(PMPI_Allreduce)>("PMPI_Allreduce");
  return real(from, to, count, type, op, comm);
}

PERDURE_API int PMPI_Barrier(MPI_Comm comm) {
  ++collectives;
  static auto* real = next<decltype(PMPI_Barrier)>("PMPI_Barrier");
  return real(comm);
}

PERDURE_API int PMPI_Allgather(const void* from, int count, MPI_Datatype type, void* to, int counts,
                               MPI_Datatype types, MPI_Comm comm) {
  ++collectives;
  static auto* real = next<decltype(PMPI_Allgather)>("PMPI_Allgather");
  return real(from, count, type, to, counts, types, comm);
}

PERDURE_API int PMPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++collectives;
  static auto* real = next<decltype(PMPI_Bcast)>("PMPI_Bcast");
  return real(buffer, count, type, root, comm);
}
}

namespace perdure_test {
namespace {

class Collectives : public Windows, public testing::WithParamInterface<const char*> {
 protected:
  // Collective calls that `action` made.
  template <typename Action>
  int counted(const Action& action) {
    const int before = collectives;
    action();
    return collectives - before;
  }
  MPI_Win open(const std::string& commit, const std::string& async = "false") {
    MPI_Win win = MPI_WIN_NULL;
    Keys keys = {{"perdure_name", "u"}, {"perdure_mode", GetParam()}, {"perdure_commit", commit}};
    if (async == "true") keys["perdure_async"] = async;
    EXPECT_EQ(allocate(keys, 100, &win), MPI_SUCCESS) << perdure_last_error();
    return win;
  }
};

TEST_P(Collectives, a_fence_that_commits_adds_one) {
  MPI_Win win = open("fence/2");
  const int plain = counted([&] { MPI_Win_fence(0, win); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(counted([&] { MPI_Win_fence(0, win); }), plain + 1);
    EXPECT_EQ(counted([&] { MPI_Win_fence(0, win); }), plain);
  }
  MPI_Win_free(&win);
}

TEST_P(Collectives, a_passive_commit_adds_two) {
  MPI_Win win = open("unlock_all");
  MPI_Win_lock_all(0, win);
  EXPECT_EQ(counted([&] { perdure_win_commit(win, nullptr); }), 2);
  EXPECT_EQ(counted([&] { MPI_Win_unlock_all(win); }), 2);
  MPI_Win_free(&win);
}

TEST_P(Collectives, an_asynchronous_fence_adds_one_too) {
  if (std::string(GetParam()) == "twin") GTEST_SKIP() << "twin copies nothing";
  MPI_Win win = open("fence", "true");
  const int plain = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(counted([&] { MPI_Win_fence(0, win); }), plain + 1);
  }
  MPI_Win_free(&win);
}

INSTANTIATE_TEST_SUITE_P(Modes, Collectives, testing::Values("copy", "log", "twin"),
                         [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace perdure_test

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
