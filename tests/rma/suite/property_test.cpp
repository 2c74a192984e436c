// SPDX-License-Identifier: BSD-3-Clause
//
// What a window knows besides its memory: users' attributes, info, name, group, handles.
#include <cstring>

#include "suite.hpp"

namespace suite {
namespace {

class Properties : public WindowTest {};

struct Callbacks {
  int copies = 0;
  int deletions = 0;
  void* deleted = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  int answer = MPI_SUCCESS;
};

int copy_attribute(MPI_Win, int, void* extra, void* in, void* out, int* flag) {
  static_cast<Callbacks*>(extra)->copies += 1;
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}

int delete_attribute(MPI_Win window, int, void* value, void* extra) {
  auto* seen = static_cast<Callbacks*>(extra);
  seen->deletions += 1;
  seen->deleted = value;
  seen->window = window;
  return seen->answer;
}

void* attribute_of(MPI_Win window, int keyval) {
  void* value = nullptr;
  int found = 0;
  MPI_Win_get_attr(window, keyval, &value, &found);
  return found != 0 ? value : nullptr;
}

TEST_F(Properties, attributes_of_the_user_are_kept_and_deleted) {
  Cells cells(2);
  Callbacks seen;
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Win_create_keyval(copy_attribute, delete_attribute, &keyval, &seen);
  int first = 1, second = 2;
  EXPECT_EQ(attribute_of(cells, keyval), nullptr);
  MPI_Win_set_attr(cells, keyval, &first);
  EXPECT_EQ(attribute_of(cells, keyval), &first);
  MPI_Win_set_attr(cells, keyval, &second);  // deletes the first
  EXPECT_EQ(seen.deletions, 1);
  EXPECT_EQ(seen.deleted, &first);
  EXPECT_EQ(seen.window, static_cast<MPI_Win>(cells));
  EXPECT_EQ(attribute_of(cells, keyval), &second);
  MPI_Win_delete_attr(cells, keyval);
  EXPECT_EQ(seen.deletions, 2);
  EXPECT_EQ(seen.deleted, &second);
  EXPECT_EQ(attribute_of(cells, keyval), nullptr);
  MPI_Win_free_keyval(&keyval);
  EXPECT_EQ(keyval, MPI_KEYVAL_INVALID);
  EXPECT_EQ(seen.copies, 0) << "windows cannot be duplicated";
}

TEST_F(Properties, freeing_a_window_deletes_its_attributes) {
  Callbacks one, other;
  std::array<int, 2> keyvals{};
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_attribute, &keyvals[0], &one);
  MPI_Win_create_keyval(MPI_WIN_DUP_FN, delete_attribute, &keyvals[1], &other);
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  const MPI_Win handle = window;
  MPI_Win_set_attr(window, keyvals[0], &one);
  MPI_Win_set_attr(window, keyvals[1], &other);
  MPI_Win_free_keyval(&keyvals[0]);  // stays alive as long as the attribute
  EXPECT_EQ(one.deletions, 0);
  MPI_Win_free(&window);
  EXPECT_EQ(one.deletions, 1);
  EXPECT_EQ(other.deletions, 1);
  EXPECT_EQ(one.window, handle);
  MPI_Win_free_keyval(&keyvals[1]);
}

TEST_F(Properties, a_deletion_that_refuses_is_an_error_of_the_call) {
  Cells cells(2);
  Callbacks seen;
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_attribute, &keyval, &seen);
  MPI_Win_set_attr(cells, keyval, &seen);
  MPI_Win_set_errhandler(cells, MPI_ERRORS_RETURN);
  seen.answer = MPI_ERR_OTHER;
  EXPECT_NE(MPI_Win_delete_attr(cells, keyval), MPI_SUCCESS);
  seen.answer = MPI_SUCCESS;
  if (attribute_of(cells, keyval) != nullptr) MPI_Win_delete_attr(cells, keyval);
  MPI_Win_free_keyval(&keyval);
}

TEST_F(Properties, attributes_of_two_windows_are_different) {
  Cells first(2), second(2);
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, nullptr);
  int mark = 0;
  MPI_Win_set_attr(first, keyval, &mark);
  EXPECT_EQ(attribute_of(first, keyval), &mark);
  EXPECT_EQ(attribute_of(second, keyval), nullptr);
  MPI_Win_delete_attr(first, keyval);
  MPI_Win_free_keyval(&keyval);
}

TEST_F(Properties, hints_can_be_given_and_asked_for) {
  MPI_Info hints = MPI_INFO_NULL;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "no_locks", "true");
  MPI_Info_set(hints, "same_size", "true");
  MPI_Info_set(hints, "same_disp_unit", "true");
  MPI_Info_set(hints, "accumulate_ordering", "rar,raw,war,waw");
  MPI_Info_set(hints, "accumulate_ops", "same_op_no_op");
  MPI_Info_set(hints, "a_hint_that_no_mpi_knows", "whatever");
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(64, 8, hints, MPI_COMM_WORLD, &base, &window);
  base[0] = base[1] = 0;
  MPI_Win_set_info(window, hints);
  MPI_Info_free(&hints);
  MPI_Info used = MPI_INFO_NULL;
  MPI_Win_get_info(window, &used);
  ASSERT_NE(used, MPI_INFO_NULL);
  int keys = -1;
  MPI_Info_get_nkeys(used, &keys);
  EXPECT_GE(keys, 0);
  std::array<char, 64> value{};
  int found = 0;
  MPI_Info_get(used, "same_size", static_cast<int>(value.size()) - 1, value.data(), &found);
  if (found != 0) {
    EXPECT_STREQ(value.data(), "true");
  }
  MPI_Info_free(&used);
  const std::int64_t mine = rank();
  MPI_Win_fence(0, window);
  MPI_Put(&mine, 1, MPI_INT64_T, next(), 1, 1, MPI_INT64_T, window);
  MPI_Win_fence(0, window);
  EXPECT_EQ(base[1], previous());
  MPI_Win_free(&window);
}

TEST_F(Properties, a_window_has_the_name_that_it_was_given) {
  Cells cells(2);
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = -1;
  MPI_Win_get_name(cells, name.data(), &length);
  EXPECT_EQ(length, 0) << name.data();
  MPI_Win_set_name(cells, "halo of u");
  MPI_Win_get_name(cells, name.data(), &length);
  EXPECT_STREQ(name.data(), "halo of u");
  EXPECT_EQ(length, 9);
  const std::string longest(MPI_MAX_OBJECT_NAME - 1, 'n');
  MPI_Win_set_name(cells, longest.c_str());
  MPI_Win_get_name(cells, name.data(), &length);
  EXPECT_EQ(name.data(), longest);
}

TEST_F(Properties, the_group_is_that_of_the_communicator) {
  Cells cells(2);
  MPI_Group of_window = MPI_GROUP_NULL, of_world = MPI_GROUP_NULL;
  MPI_Win_get_group(cells, &of_window);
  MPI_Comm_group(MPI_COMM_WORLD, &of_world);
  int same = MPI_UNEQUAL, members = 0, place = -1;
  MPI_Group_compare(of_window, of_world, &same);
  MPI_Group_size(of_window, &members);
  MPI_Group_rank(of_window, &place);
  EXPECT_EQ(same, MPI_IDENT);
  EXPECT_EQ(members, ranks());
  EXPECT_EQ(place, rank());
  MPI_Group_free(&of_window);
  MPI_Group_free(&of_world);
}

// The standard ABI of MPI 5 calls Fortran's handles integers.
#ifdef MPI_ABI_VERSION
#define MPI_Win_c2f MPI_Win_toint
#define MPI_Win_f2c MPI_Win_fromint
#endif

TEST_F(Properties, handles_go_to_fortran_and_back) {
  Cells first(2), second(2);
  const auto one = MPI_Win_c2f(first);
  const auto other = MPI_Win_c2f(second);
  EXPECT_NE(one, other);
  EXPECT_EQ(MPI_Win_f2c(one), static_cast<MPI_Win>(first));
  EXPECT_EQ(MPI_Win_f2c(other), static_cast<MPI_Win>(second));
  EXPECT_EQ(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)), MPI_WIN_NULL);
  MPI_Win back = MPI_Win_f2c(one);
  std::int64_t mine = 5 + rank();
  MPI_Win_fence(0, back);
  put(mine, next(), 1, first);
  MPI_Win_fence(0, back);
  EXPECT_EQ(first[1], 5 + previous());
}

#if MPI_VERSION >= 5
TEST_F(Properties, handles_go_to_integers_and_back) {
  Cells first(2), second(2);
  EXPECT_NE(MPI_Win_toint(first), MPI_Win_toint(second));
  EXPECT_EQ(MPI_Win_fromint(MPI_Win_toint(first)), static_cast<MPI_Win>(first));
  EXPECT_EQ(MPI_Win_fromint(MPI_Win_toint(second)), static_cast<MPI_Win>(second));
}
#endif

}  // namespace
}  // namespace suite
