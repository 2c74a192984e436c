// SPDX-License-Identifier: BSD-3-Clause
//
// How windows come and go: kinds, sizes, units, communicators, several at a time, names and groups.
#include <algorithm>
#include <memory>

#include "suite.hpp"

namespace suite {
namespace {

template <class T>
T attribute(MPI_Win window, int keyval) {
  void* value = nullptr;
  int found = 0;
  MPI_Win_get_attr(window, keyval, &value, &found);
  EXPECT_NE(found, 0) << "keyval " << keyval;
  return found != 0 ? *static_cast<T*>(value) : T{};
}

void* base_of(MPI_Win window) {
  void* value = nullptr;
  int found = 0;
  MPI_Win_get_attr(window, MPI_WIN_BASE, &value, &found);
  EXPECT_NE(found, 0);
  return value;
}

class Making : public WindowTest {};

TEST_F(Making, a_created_window_answers_what_it_was_made_of) {
  std::vector<double> memory(static_cast<std::size_t>(10 + rank()));
  const auto bytes = static_cast<MPI_Aint>(memory.size() * sizeof(double));
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(memory.data(), bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  EXPECT_EQ(base_of(window), memory.data());
  EXPECT_EQ(attribute<MPI_Aint>(window, MPI_WIN_SIZE), bytes);
  EXPECT_EQ(attribute<int>(window, MPI_WIN_DISP_UNIT), static_cast<int>(sizeof(double)));
  EXPECT_EQ(attribute<int>(window, MPI_WIN_CREATE_FLAVOR), MPI_WIN_FLAVOR_CREATE);
  const int model = attribute<int>(window, MPI_WIN_MODEL);
  EXPECT_TRUE(model == MPI_WIN_UNIFIED || model == MPI_WIN_SEPARATE) << model;
  MPI_Win_free(&window);
  EXPECT_EQ(window, MPI_WIN_NULL);
}

TEST_F(Making, an_allocated_window_answers_what_it_was_made_of) {
  char* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(128 + 64 * rank(), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base_of(window), base);
  EXPECT_EQ(attribute<MPI_Aint>(window, MPI_WIN_SIZE), 128 + 64 * rank());
  EXPECT_EQ(attribute<int>(window, MPI_WIN_DISP_UNIT), 1);
  EXPECT_EQ(attribute<int>(window, MPI_WIN_CREATE_FLAVOR), MPI_WIN_FLAVOR_ALLOCATE);
  MPI_Win_free(&window);
}

TEST_F(Making, a_shared_window_shows_everyone_everyones_memory) {
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate_shared(8 * (rank() + 1), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  EXPECT_EQ(attribute<int>(window, MPI_WIN_CREATE_FLAVOR), MPI_WIN_FLAVOR_SHARED);
  EXPECT_EQ(attribute<MPI_Aint>(window, MPI_WIN_SIZE), 8 * (rank() + 1));
  EXPECT_EQ(base_of(window), base);
  MPI_Win_fence(0, window);
  for (int i = 0; i <= rank(); ++i) base[i] = 100 * rank() + i;
  MPI_Win_fence(0, window);
  for (int peer = 0; peer < ranks(); ++peer) {
    MPI_Aint bytes = 0;
    int unit = 0;
    std::int64_t* theirs = nullptr;
    MPI_Win_shared_query(window, peer, &bytes, &unit, &theirs);
    EXPECT_EQ(bytes, 8 * (peer + 1));
    EXPECT_EQ(unit, 8);
    for (int i = 0; i <= peer; ++i) EXPECT_EQ(theirs[i], 100 * peer + i);
    if (peer == rank()) {
      EXPECT_EQ(theirs, base);
    }
  }
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

TEST_F(Making, shared_memory_is_contiguous_unless_told_otherwise) {
  for (const bool apart : {false, true}) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    if (apart) MPI_Info_set(info, "alloc_shared_noncontig", "true");
    std::int64_t* base = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_allocate_shared(24, 8, info, MPI_COMM_WORLD, &base, &window);
    MPI_Info_free(&info);
    MPI_Win_fence(0, window);
    base[2] = rank();
    MPI_Win_fence(0, window);
    std::int64_t* first = nullptr;
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_shared_query(window, MPI_PROC_NULL, &bytes, &unit, &first);
    if (!apart) {
      EXPECT_EQ(base, first + 3 * rank());
    }
    std::int64_t* theirs = nullptr;
    MPI_Win_shared_query(window, next(), &bytes, &unit, &theirs);
    EXPECT_EQ(theirs[2], next());
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
  }
}

TEST_F(Making, shared_query_finds_the_first_rank_that_has_memory) {
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  const bool has = rank() == ranks() - 1;
  MPI_Win_allocate_shared(has ? 16 : 0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Win_fence(0, window);
  if (has) base[1] = 4711;
  MPI_Win_fence(0, window);
  MPI_Aint bytes = 0;
  int unit = 0;
  std::int64_t* first = nullptr;
  MPI_Win_shared_query(window, MPI_PROC_NULL, &bytes, &unit, &first);
  EXPECT_EQ(bytes, 16);
  EXPECT_EQ(first[1], 4711);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

TEST_F(Making, memory_comes_and_goes_in_a_dynamic_window) {
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  EXPECT_EQ(attribute<int>(window, MPI_WIN_CREATE_FLAVOR), MPI_WIN_FLAVOR_DYNAMIC);
  EXPECT_EQ(base_of(window), MPI_BOTTOM);
  EXPECT_EQ(attribute<MPI_Aint>(window, MPI_WIN_SIZE), 0);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::int64_t> first(4, -1), second(8, -1);
    MPI_Win_attach(window, first.data(), 32);
    MPI_Win_attach(window, second.data(), 64);
    std::array<MPI_Aint, 2> here{}, there{};
    MPI_Get_address(&first[1], &here[0]);
    MPI_Get_address(&second[7], &here[1]);
    MPI_Sendrecv(here.data(), 2, MPI_AINT, previous(), 0, there.data(), 2, MPI_AINT, next(), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const std::array<std::int64_t, 2> mine{10 * round + rank(), 100 * round + rank()};
    MPI_Win_fence(0, window);
    MPI_Put(&mine[0], 1, MPI_INT64_T, next(), there[0], 1, MPI_INT64_T, window);
    MPI_Put(&mine[1], 1, MPI_INT64_T, next(), there[1], 1, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    EXPECT_EQ(first, (std::vector<std::int64_t>{-1, 10 * round + previous(), -1, -1}));
    EXPECT_EQ(second[7], 100 * round + previous());
    EXPECT_EQ(second[6], -1);
    MPI_Win_detach(window, first.data());
    MPI_Win_detach(window, second.data());
    barrier();
  }
  MPI_Win_free(&window);
}

TEST_F(Making, ranks_may_have_nothing_to_offer) {
  for (const int giver : {0, ranks() - 1}) {
    std::int64_t* base = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_allocate(rank() == giver ? 128 : 0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    EXPECT_EQ(attribute<MPI_Aint>(window, MPI_WIN_SIZE), rank() == giver ? 128 : 0);
    if (rank() == giver) std::fill(base, base + 16, 0);
    const std::int64_t mine = 60 + rank();
    MPI_Win_fence(0, window);
    MPI_Put(&mine, 1, MPI_INT64_T, giver, rank(), 1, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    for (int i = 0; rank() == giver && i < 16; ++i) EXPECT_EQ(base[i], i < ranks() ? 60 + i : 0);
    MPI_Win_free(&window);
  }
}

TEST_F(Making, a_window_of_no_bytes_anywhere_can_be_synchronised) {
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Win_fence(0, window);
  MPI_Win_lock_all(0, window);
  MPI_Win_flush_all(window);
  MPI_Win_unlock_all(window);
  EXPECT_EQ(attribute<MPI_Aint>(window, MPI_WIN_SIZE), 0);
  MPI_Win_free(&window);
}

// The displacement is counted in the unit of the target.
TEST_F(Making, each_rank_has_its_own_unit_and_size) {
  const int unit = 1 << (rank() % 4);
  const MPI_Aint bytes = 64 + 16 * rank();
  std::vector<char> memory(static_cast<std::size_t>(bytes), 'x');
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(memory.data(), bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  EXPECT_EQ(attribute<int>(window, MPI_WIN_DISP_UNIT), unit);
  const char mine = static_cast<char>('a' + rank());
  MPI_Win_fence(0, window);
  MPI_Put(&mine, 1, MPI_CHAR, next(), 5, 1, MPI_CHAR, window);
  MPI_Win_fence(0, window);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const int expected = i == static_cast<std::size_t>(5 * unit) ? 'a' + previous() : 'x';
    EXPECT_EQ(memory[i], expected) << "byte " << i << " of unit " << unit;
  }
  MPI_Win_free(&window);
}

TEST_F(Making, units_need_not_divide_the_size) {
  std::string memory(29, '.');
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(memory.data(), 29, 7, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const char mine = static_cast<char>('A' + rank());
  MPI_Win_fence(0, window);
  MPI_Put(&mine, 1, MPI_CHAR, next(), 4, 1, MPI_CHAR, window);  // byte 28, the last one
  MPI_Win_fence(0, window);
  EXPECT_EQ(memory, std::string(28, '.') + static_cast<char>('A' + previous()));
  MPI_Win_free(&window);
}

TEST_F(Making, allocated_sizes_need_not_be_round) {
  for (const MPI_Aint bytes : {8, 24, 100 + rank()}) {
    char* base = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    EXPECT_EQ(base_of(window), base);
    std::fill(base, base + bytes, '.');
    const char mine = static_cast<char>('A' + rank());
    MPI_Win_fence(0, window);
    MPI_Put(&mine, 1, MPI_CHAR, next(), 7, 1, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    EXPECT_EQ(base[7], 'A' + previous()) << bytes << " bytes";
    MPI_Win_free(&window);
  }
}

TEST_F(Making, several_windows_keep_apart) {
  constexpr std::size_t count = 5;
  std::vector<std::unique_ptr<Cells>> windows;
  for (std::size_t i = 0; i < count; ++i) windows.push_back(std::make_unique<Cells>(4 + i));
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t mine = static_cast<std::int64_t>(i) * 1000 + rank();
    MPI_Win_fence(0, *windows[i]);
    put(mine, next(), i % 4, *windows[i]);
    MPI_Win_fence(0, *windows[i]);
  }
  windows.erase(windows.begin() + 1);  // not in the order in which they were made
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 1) continue;
    Cells& cells = *windows[i > 1 ? i - 1 : i];
    const std::int64_t expected = static_cast<std::int64_t>(i) * 1000 + previous();
    for (std::size_t cell = 0; cell < 4; ++cell) {
      EXPECT_EQ(cells[cell], cell == i % 4 ? expected : 0) << "window " << i;
    }
  }
}

TEST_F(Making, epochs_of_two_windows_may_overlap) {
  PERDURE_RULES_OF_COMMITS_FORBID("windows that commit together have no operations under way");
  Cells first(4), second(4);
  std::int64_t mine = rank(), also = 10 + rank();
  MPI_Win_fence(0, first);
  MPI_Win_lock_all(0, second);
  put(mine, next(), 1, first);
  put(also, next(), 2, second);
  MPI_Win_fence(0, first);
  EXPECT_EQ(first[1], previous());
  MPI_Win_unlock_all(second);
  barrier();
  MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, second);
  EXPECT_EQ(second[2], 10 + previous());
  MPI_Win_unlock(rank(), second);
}

TEST_F(Making, two_windows_may_show_the_same_memory) {
  std::array<std::int64_t, 4> memory{};
  std::array<MPI_Win, 2> windows{};
  for (MPI_Win& window : windows) {
    MPI_Win_create(memory.data(), 32, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  for (int i = 0; i < 2; ++i) {
    const std::int64_t mine = 10 * i + rank();
    MPI_Win_fence(0, windows[static_cast<std::size_t>(i)]);
    MPI_Put(&mine, 1, MPI_INT64_T, next(), 1 + i, 1, MPI_INT64_T,
            windows[static_cast<std::size_t>(i)]);
    MPI_Win_fence(0, windows[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(memory, (std::array<std::int64_t, 4>{0, previous(), 10 + previous(), 0}));
  for (MPI_Win& window : windows) MPI_Win_free(&window);
}

TEST_F(Making, a_window_of_some_ranks_reaches_only_them) {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, -rank(), &half);  // in the opposite order
  {
    Cells cells(4, Made::by_allocate, half);
    const int neighbour = (rank_in(half) + 1) % ranks_in(half);
    std::int64_t mine = rank();
    MPI_Win_fence(0, cells);
    put(mine, neighbour, 1, cells);
    MPI_Win_fence(0, cells);
    const int ring = ranks_in(half);
    const int before = (rank_in(half) + ring - 1) % ring;
    const int expected = rank() % 2 + 2 * (ring - 1 - before);  // its rank in the world
    EXPECT_EQ(cells[1], expected);
    MPI_Group of_window = MPI_GROUP_NULL, of_comm = MPI_GROUP_NULL;
    MPI_Win_get_group(cells, &of_window);
    MPI_Comm_group(half, &of_comm);
    int same = MPI_UNEQUAL;
    MPI_Group_compare(of_window, of_comm, &same);
    EXPECT_EQ(same, MPI_IDENT);
    MPI_Group_free(&of_window);
    MPI_Group_free(&of_comm);
  }
  MPI_Comm_free(&half);
}

TEST_F(Making, a_window_of_one_rank_is_its_own) {
  Cells cells(4, Made::by_create, MPI_COMM_SELF);
  for (const Sync sync : {Sync::by_fence, Sync::by_post, Sync::by_lock_all}) {
    Epoch epoch(cells, MPI_COMM_SELF, sync);
    std::int64_t mine = 10 * rank() + static_cast<int>(sync);
    epoch.begin();
    put(mine, 0, 2, cells);
    epoch.end();
    EXPECT_EQ(cells[2], mine);
  }
}

TEST_F(Making, the_communicator_may_be_freed_before_the_window) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, copy, &base, &window);
  MPI_Comm_free(&copy);
  std::fill(base, base + 4, 0);
  const std::int64_t mine = rank();
  MPI_Win_fence(0, window);
  MPI_Put(&mine, 1, MPI_INT64_T, next(), 3, 1, MPI_INT64_T, window);
  MPI_Win_fence(0, window);
  EXPECT_EQ(base[3], previous());
  MPI_Win_free(&window);
}

TEST_F(Making, memory_of_alloc_mem_makes_a_window) {
  std::int64_t* memory = nullptr;
  MPI_Alloc_mem(64, MPI_INFO_NULL, &memory);
  std::fill(memory, memory + 8, 0);
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(memory, 64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const std::int64_t mine = 3 * rank();
  MPI_Win_fence(0, window);
  MPI_Put(&mine, 1, MPI_INT64_T, next(), 7, 1, MPI_INT64_T, window);
  MPI_Win_fence(0, window);
  EXPECT_EQ(memory[7], 3 * previous());
  MPI_Win_free(&window);
  MPI_Free_mem(memory);
}

}  // namespace
}  // namespace suite
