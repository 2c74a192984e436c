// SPDX-License-Identifier: BSD-3-Clause
//
// Errors are raised where the user asked for them: at the window's handler, or, before there
// is a window, at the communicator's.
#include "suite.hpp"

namespace suite {
namespace {

struct Raised {
  int times = 0;
  int code = MPI_SUCCESS;
  MPI_Win window = MPI_WIN_NULL;
} raised;

void note_error(MPI_Win* window, int* code, ...) {
  raised.times += 1;
  raised.code = *code;
  raised.window = *window;
}

std::vector<int> raised_of_comm;  // error classes
void note_error_of_comm(MPI_Comm*, int* code, ...) {
  raised_of_comm.push_back(class_of(*code));
}

class Errors : public WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    raised = Raised{};
    MPI_Win_create_errhandler(note_error, &handler_);
  }
  void TearDown() override { MPI_Errhandler_free(&handler_); }
  // What the call returns once a user's handler has returned is not said by the standard.
  void expect_raised(int, MPI_Win window, int error_class) {
    EXPECT_EQ(raised.times, 1);
    EXPECT_EQ(raised.window, window);
    EXPECT_EQ(class_of(raised.code), error_class);
    raised = Raised{};
  }
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

TEST_F(Errors, errors_are_fatal_until_somebody_says_otherwise) {
  Cells cells(2);
  MPI_Errhandler found = MPI_ERRHANDLER_NULL;
  MPI_Win_get_errhandler(cells, &found);
  EXPECT_EQ(found, MPI_ERRORS_ARE_FATAL);
}

TEST_F(Errors, the_handler_that_was_set_is_the_one_that_is_found) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  MPI_Errhandler found = MPI_ERRHANDLER_NULL;
  MPI_Win_get_errhandler(cells, &found);
  EXPECT_EQ(found, handler_);
  MPI_Errhandler_free(&found);
  MPI_Win_set_errhandler(cells, MPI_ERRORS_RETURN);
  MPI_Win_get_errhandler(cells, &found);
  EXPECT_EQ(found, MPI_ERRORS_RETURN);
}

TEST_F(Errors, the_user_can_call_the_handler) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  EXPECT_EQ(MPI_Win_call_errhandler(cells, MPI_ERR_RMA_CONFLICT), MPI_SUCCESS);
  EXPECT_EQ(raised.times, 1);
  EXPECT_EQ(raised.code, MPI_ERR_RMA_CONFLICT);
  EXPECT_EQ(raised.window, static_cast<MPI_Win>(cells));
}

TEST_F(Errors, a_rank_that_does_not_exist_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  std::int64_t value = 0;
  MPI_Win_fence(0, cells);
  const int code = MPI_Put(&value, 1, MPI_INT64_T, ranks() + 3, 0, 1, MPI_INT64_T, cells);
  expect_raised(code, cells, MPI_ERR_RANK);
  MPI_Win_fence(0, cells);
}

TEST_F(Errors, every_transfer_raises_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  std::int64_t value = 0, result = 0;
  const int wrong = ranks() + 1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Win_lock_all(0, cells);
  expect_raised(MPI_Get(&value, 1, MPI_INT64_T, wrong, 0, 1, MPI_INT64_T, cells), cells,
                MPI_ERR_RANK);
  expect_raised(MPI_Accumulate(&value, 1, MPI_INT64_T, wrong, 0, 1, MPI_INT64_T, MPI_SUM, cells),
                cells, MPI_ERR_RANK);
  expect_raised(MPI_Fetch_and_op(&value, &result, MPI_INT64_T, wrong, 0, MPI_SUM, cells), cells,
                MPI_ERR_RANK);
  expect_raised(MPI_Compare_and_swap(&value, &value, &result, MPI_INT64_T, wrong, 0, cells), cells,
                MPI_ERR_RANK);
  expect_raised(MPI_Rput(&value, 1, MPI_INT64_T, wrong, 0, 1, MPI_INT64_T, cells, &request), cells,
                MPI_ERR_RANK);
  expect_raised(MPI_Rget(&value, 1, MPI_INT64_T, wrong, 0, 1, MPI_INT64_T, cells, &request), cells,
                MPI_ERR_RANK);
  MPI_Win_unlock_all(cells);
}

TEST_F(Errors, a_negative_count_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  std::int64_t value = 0;
  MPI_Win_fence(0, cells);
  const int code = MPI_Put(&value, -1, MPI_INT64_T, next(), 0, 1, MPI_INT64_T, cells);
  expect_raised(code, cells, MPI_ERR_COUNT);
  MPI_Win_fence(0, cells);
}

TEST_F(Errors, a_type_that_was_not_committed_is_raised_at_the_window) {
  Cells cells(4);
  MPI_Win_set_errhandler(cells, handler_);
  std::array<std::int64_t, 2> values{};
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT64_T, &pair);
  MPI_Win_fence(0, cells);
  expect_raised(MPI_Put(values.data(), 2, MPI_INT64_T, next(), 0, 1, pair, cells), cells,
                MPI_ERR_TYPE);
  expect_raised(MPI_Get(values.data(), 1, pair, next(), 0, 2, MPI_INT64_T, cells), cells,
                MPI_ERR_TYPE);
  expect_raised(MPI_Accumulate(values.data(), 1, pair, next(), 0, 2, MPI_INT64_T, MPI_SUM, cells),
                cells, MPI_ERR_TYPE);
  MPI_Win_fence(0, cells);
  MPI_Type_free(&pair);
}

// The handle of a type that was used some times, and is gone, may be that of the next one.
TEST_F(Errors, a_type_that_was_not_committed_is_raised_where_one_was_before) {
  Cells cells(4);
  MPI_Win_set_errhandler(cells, handler_);
  std::array<std::int64_t, 2> values{};
  for (int uses = 1; uses <= 6; ++uses) {
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT64_T, &pair);
    MPI_Type_commit(&pair);
    MPI_Win_fence(0, cells);
    for (int use = 0; use < uses; ++use) {
      MPI_Put(values.data(), 2, MPI_INT64_T, next(), 0, 1, pair, cells);
    }
    MPI_Win_fence(0, cells);
    MPI_Type_free(&pair);
    MPI_Type_contiguous(2, MPI_INT64_T, &pair);
    MPI_Win_fence(0, cells);
    expect_raised(MPI_Put(values.data(), 2, MPI_INT64_T, next(), 0, 1, pair, cells), cells,
                  MPI_ERR_TYPE);
    MPI_Win_fence(0, cells);
    MPI_Type_free(&pair);
  }
}

TEST_F(Errors, a_transfer_outside_of_an_epoch_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  std::int64_t value = 0;
  const int code = MPI_Put(&value, 1, MPI_INT64_T, next(), 0, 1, MPI_INT64_T, cells);
  expect_raised(code, cells, MPI_ERR_RMA_SYNC);
}

TEST_F(Errors, a_transfer_after_the_last_epoch_is_raised_at_the_window) {
  Cells cells(2);
  std::int64_t value = 0;
  MPI_Win_fence(MPI_MODE_NOPRECEDE, cells);
  MPI_Put(&value, 1, MPI_INT64_T, next(), 0, 1, MPI_INT64_T, cells);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, cells);
  MPI_Win_set_errhandler(cells, handler_);
  const int code = MPI_Put(&value, 1, MPI_INT64_T, next(), 0, 1, MPI_INT64_T, cells);
  expect_raised(code, cells, MPI_ERR_RMA_SYNC);
}

TEST_F(Errors, an_unlock_without_a_lock_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  expect_raised(MPI_Win_unlock(next(), cells), cells, MPI_ERR_RMA_SYNC);
  expect_raised(MPI_Win_flush(next(), cells), cells, MPI_ERR_RMA_SYNC);
}

TEST_F(Errors, an_unlock_all_without_a_lock_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  expect_raised(MPI_Win_unlock_all(cells), cells, MPI_ERR_RMA_SYNC);
}

TEST_F(Errors, a_complete_without_a_start_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  expect_raised(MPI_Win_complete(cells), cells, MPI_ERR_RMA_SYNC);
}

TEST_F(Errors, a_wait_without_a_post_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  expect_raised(MPI_Win_wait(cells), cells, MPI_ERR_RMA_SYNC);
}

TEST_F(Errors, an_unknown_assertion_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  expect_raised(MPI_Win_fence(1 << 27, cells), cells, MPI_ERR_ASSERT);
}

TEST_F(Errors, an_unknown_kind_of_lock_is_raised_at_the_window) {
  Cells cells(2);
  MPI_Win_set_errhandler(cells, handler_);
  expect_raised(MPI_Win_lock(12345, next(), 0, cells), cells, MPI_ERR_LOCKTYPE);
}

TEST_F(Errors, errors_of_one_window_are_not_raised_at_another) {
  Cells quiet(2), loud(2);
  MPI_Win_set_errhandler(quiet, MPI_ERRORS_RETURN);
  MPI_Win_set_errhandler(loud, handler_);
  std::int64_t value = 0;
  MPI_Win_fence(0, quiet);
  const int code = MPI_Put(&value, 1, MPI_INT64_T, ranks(), 0, 1, MPI_INT64_T, quiet);
  EXPECT_EQ(class_of(code), MPI_ERR_RANK);
  EXPECT_EQ(raised.times, 0);
  MPI_Win_fence(0, quiet);
}

TEST_F(Errors, a_window_that_can_not_be_made_is_raised_at_the_communicator) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler of_comm = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(note_error_of_comm, &of_comm);
  MPI_Comm_set_errhandler(comm, of_comm);
  raised_of_comm.clear();
  MPI_Win window = MPI_WIN_NULL;
  std::int64_t cell = 0;
  void* base = nullptr;
  MPI_Win_create(&cell, -8, 8, MPI_INFO_NULL, comm, &window);
  MPI_Win_create(&cell, 8, 0, MPI_INFO_NULL, comm, &window);
  MPI_Win_allocate(-1, 1, MPI_INFO_NULL, comm, static_cast<void*>(&base), &window);
  EXPECT_EQ(raised_of_comm, (std::vector<int>{MPI_ERR_SIZE, MPI_ERR_DISP, MPI_ERR_SIZE}));
  MPI_Errhandler_free(&of_comm);
  MPI_Comm_free(&comm);
}

TEST_F(Errors, there_is_nothing_to_free_in_no_window) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Win none = MPI_WIN_NULL;
  EXPECT_EQ(class_of(MPI_Win_free(&none)), MPI_ERR_WIN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

}  // namespace
}  // namespace suite
