// SPDX-License-Identifier: BSD-3-Clause
//
// Log mode and MPI on a node: what is received straight into an array is in the next version, at
// every size of message; and a buffer that one rank freed fails the commit on both.
// ctest: RANKS 2 TIMEOUT 300 LABELS truth
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mpi_test.hpp"
#include "perdure/perdure_mpi.h"

namespace {

using perdure_test::left;
using perdure_test::rank;
using perdure_test::right;

constexpr std::uint64_t most = std::uint64_t{32} << 20;

class ReceivedInPlace : public perdure_test::DirectoryOfRanks {
 protected:
  void SetUp() override {
    DirectoryOfRanks::SetUp();
    ASSERT_EQ(perdure_open_mpi(MPI_COMM_WORLD, (directory_ + "/pool").c_str(), nullptr, &pool_), 0)
        << perdure_last_error();
  }
  void TearDown() override {
    (void)perdure_close(pool_);
    DirectoryOfRanks::TearDown();
  }
  perdure_pool* pool_ = nullptr;
};

TEST_F(ReceivedInPlace, messages_of_any_size_are_in_the_next_version) {
  const char* const tracker = std::getenv("PERDURE_TRACKER");
  const std::uint64_t bytes = most;
  const perdure_array_options options{};
  perdure_array* array = nullptr;
  const int opened =
      perdure_array_open(pool_, "u", PERDURE_BYTE, 1, &bytes, PERDURE_LOG, &options, &array);
  if (tracker == nullptr && opened == PERDURE_E_UNSUPPORTED) GTEST_SKIP() << perdure_last_error();
  ASSERT_EQ(opened, 0) << perdure_last_error();
  ASSERT_EQ(perdure_restart(pool_, nullptr), 0) << perdure_last_error();
  auto* const u = static_cast<unsigned char*>(perdure_working(array));
  std::vector<unsigned char> out(most);
  std::vector<unsigned char> expected(most);
  int step = 1;
  for (std::uint64_t count = 1024; count <= most; count *= 2, ++step) {
    ASSERT_EQ(perdure_commit(pool_, nullptr), 0) << perdure_last_error();
    const std::uint64_t at = count == most ? 0 : (most - count) / 3;
    std::memset(out.data(), 10 * step + rank(), count);
    ASSERT_EQ(MPI_Sendrecv(out.data(), static_cast<int>(count), MPI_BYTE, right(), step, u + at,
                           static_cast<int>(count), MPI_BYTE, left(), step, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE),
              MPI_SUCCESS);
    std::memset(expected.data() + at, 10 * step + left(), count);
    std::uint64_t version = 0;
    ASSERT_EQ(perdure_commit(pool_, &version), 0) << perdure_last_error();
    std::memset(u, 0xee, most);
    ASSERT_EQ(perdure_restore(pool_, version), 0) << perdure_last_error();
    ASSERT_EQ(std::memcmp(u, expected.data(), most), 0) << count << " bytes";
  }
}

TEST_F(ReceivedInPlace, a_buffer_that_one_rank_freed_fails_the_commit_of_all) {
  const std::uint64_t bytes = 40960;
  void* const memory = std::calloc(1, bytes);
  const perdure_array_options options{0, memory, 0, nullptr};
  perdure_array* array = nullptr;
  ASSERT_EQ(perdure_array_open(pool_, "w", PERDURE_BYTE, 1, &bytes, PERDURE_COPY, &options, &array),
            0);
  ASSERT_EQ(perdure_restart(pool_, nullptr), 0);
  ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
  if (rank() == 1) std::free(memory);
  const int code = perdure_commit(pool_, nullptr);
  EXPECT_EQ(code, rank() == 1 ? PERDURE_E_STATE : PERDURE_E_PEER_FAILED) << perdure_last_error();
  if (rank() == 1) {
    EXPECT_NE(std::string(perdure_last_error()).find("freed"), std::string::npos);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ASSERT_EQ(perdure_close(pool_), 0) << perdure_last_error();
  pool_ = nullptr;
  if (rank() == 0) std::free(memory);
}

}  // namespace

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
