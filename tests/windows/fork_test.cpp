// SPDX-License-Identifier: BSD-3-Clause
//
// A forked child can't use the windows and cached files of its parent, which goes on unharmed; and
// a cached file whose part was removed under it says so.
// ctest: RANKS 1 2 LABELS hostile
#include <sys/wait.h>
#include <unistd.h>

#include "window_pool_fixture.hpp"

namespace perdure_test {
namespace {

class Forks : public Windows {
 protected:
  // How many of the calls that a child made were not refused; -1 if it died.
  template <typename Calls>
  static int in_child(const Calls& calls) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(calls());
    int status = 0;
    if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
  }

  MPI_File open_cached(const std::string& path) {
    MPI_Info info = make_info({{"perdure_cache", "on"},
                               {"perdure_cache_from", "0"},
                               {"perdure_cache_directory", pool("parts")}});
    MPI_File file = MPI_FILE_NULL;
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, path.c_str(), mode, info, &file), MPI_SUCCESS);
    MPI_Info_free(&info);
    return file;
  }
};

TEST_F(Forks, a_childs_calls_on_a_window_are_refused) {
  for (const char* mode : {"copy", "twin", "log", "flush"}) {
    std::int64_t* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info info =
        make_info({{"perdure_name", "w"}, {"perdure_pool", pool(mode)}, {"perdure_mode", mode}});
    ASSERT_EQ(MPI_Win_allocate(64, 8, info, MPI_COMM_WORLD, &base, &win), MPI_SUCCESS);
    MPI_Info_free(&info);
    const std::int64_t value = 7;
    EXPECT_EQ(in_child([&] {
                int wrong = 0;
                std::uint64_t version = 0;
                wrong += MPI_Win_fence(0, win) != MPI_ERR_OTHER;
                wrong += MPI_Win_fence(PERDURE_MODE_COMMIT, win) != MPI_ERR_OTHER;
                wrong +=
                    MPI_Put(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, win) != MPI_ERR_OTHER;
                wrong += MPI_Win_free(&win) != MPI_ERR_OTHER;
                wrong += perdure_win_commit(win, &version) != PERDURE_E_STATE;
                return wrong;
              }),
              0)
        << mode;
    ASSERT_EQ(MPI_Win_fence(0, win), MPI_SUCCESS);
    MPI_Put(&value, 1, MPI_INT64_T, right(), 1, 1, MPI_INT64_T, win);
    EXPECT_EQ(MPI_Win_fence(PERDURE_MODE_COMMIT, win), MPI_SUCCESS) << perdure_last_error();
    EXPECT_EQ(MPI_Win_free(&win), MPI_SUCCESS);
  }
}

TEST_F(Forks, a_childs_calls_on_a_cached_file_are_refused) {
  const std::string path = pool("file");
  MPI_File file = open_cached(path);
  const auto at = static_cast<MPI_Offset>(8) * rank();
  std::int64_t value = 42 + rank();
  ASSERT_EQ(MPI_File_write_at(file, at, &value, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(in_child([&] {
              std::int64_t other = -1;
              int wrong = 0;
              wrong += MPI_File_write_at(file, at, &other, 8, MPI_BYTE, MPI_STATUS_IGNORE) !=
                       MPI_ERR_OTHER;
              wrong += MPI_File_sync(file) != MPI_ERR_OTHER;
              wrong += MPI_File_close(&file) != MPI_ERR_OTHER;
              return wrong;
            }),
            0);
  std::int64_t read = 0;
  EXPECT_EQ(MPI_File_read_at(file, at, &read, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(read, value);
  EXPECT_EQ(MPI_File_close(&file), MPI_SUCCESS);
  EXPECT_EQ(std::filesystem::file_size(path), 8U * static_cast<unsigned>(ranks()));
}

TEST_F(Forks, a_cached_file_whose_part_vanished_says_so_when_it_is_synchronised) {
  const std::string path = pool("file");
  MPI_File file = open_cached(path);
  const auto at = static_cast<MPI_Offset>(8) * rank();
  const std::int64_t value = 42 + rank();
  ASSERT_EQ(MPI_File_write_at(file, at, &value, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
  ASSERT_EQ(MPI_File_sync(file), MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    for (const auto& entry : std::filesystem::directory_iterator(pool("parts"))) {
      std::filesystem::remove(entry.path());
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ASSERT_EQ(MPI_File_write_at(file, at, &value, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_NE(MPI_File_sync(file), MPI_SUCCESS);
  (void)MPI_File_close(&file);
  EXPECT_EQ(std::filesystem::file_size(path), 8U * static_cast<unsigned>(ranks()))
      << "what was written is in the file all the same";
}

}  // namespace
}  // namespace perdure_test

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
