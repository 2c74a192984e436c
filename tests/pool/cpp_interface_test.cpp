// SPDX-License-Identifier: BSD-3-Clause
//
// perdure.hpp as a C++ program uses it. Links nothing but the library, as users do.
// ctest: NAME pool_cpp_test
#include "perdure/perdure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "temporary_directory.hpp"

namespace {

using perdure::Mode;
using perdure::Pool;
using perdure_test::TemporaryDirectory;

static_assert(!std::is_copy_constructible_v<Pool> && !std::is_copy_assignable_v<Pool>);
static_assert(std::is_nothrow_move_constructible_v<Pool>);
static_assert(std::is_nothrow_move_assignable_v<Pool> && std::is_nothrow_destructible_v<Pool>);
static_assert(perdure::type_of<std::byte>() == PERDURE_BYTE);
static_assert(perdure::type_of<unsigned char>() == PERDURE_BYTE);
static_assert(perdure::type_of<std::int32_t>() == PERDURE_INT32);
static_assert(perdure::type_of<std::int64_t>() == PERDURE_INT64);
static_assert(perdure::type_of<float>() == PERDURE_FLOAT);
static_assert(perdure::type_of<double>() == PERDURE_DOUBLE);
static_assert(perdure::type_of<std::complex<double>>() == PERDURE_COMPLEX_DOUBLE);
static_assert(perdure::type_of<std::complex<float>>() == PERDURE_COMPLEX_FLOAT);
static_assert(perdure::type_of<std::int8_t>() == PERDURE_INT8);
static_assert(perdure::type_of<std::int16_t>() == PERDURE_INT16);
static_assert(perdure::type_of<std::uint16_t>() == PERDURE_UINT16);
static_assert(perdure::type_of<std::uint32_t>() == PERDURE_UINT32);
static_assert(perdure::type_of<std::uint64_t>() == PERDURE_UINT64);
static_assert(perdure::type_of<bool>() == PERDURE_BOOL);
static_assert(perdure::type_or_none<char>() == 0 && perdure::type_or_none<long double>() == 0);
static_assert(perdure::scalar_type<std::int8_t>() == PERDURE_INT8);
static_assert(perdure::scalar_type<unsigned short>() == PERDURE_UINT16);
static_assert(perdure::scalar_type<unsigned char>() == 0 && perdure::scalar_type<std::byte>() == 0);
static_assert(perdure::scalar_type<std::complex<float>[3]>() == PERDURE_COMPLEX_FLOAT);

// The code that `body` throws an Error with; PERDURE_OK if it throws none.
template <typename Body>
int code_of(const Body& body) {
  try {
    body();
  } catch (const perdure::Error& error) {
    EXPECT_NE(std::string(error.what()), "");
    EXPECT_EQ(std::string(error.meaning()), perdure_strerror(error.code()));
    return error.code();
  }
  return PERDURE_OK;
}

struct Position {
  double x = 0;
  double y = 0;
  bool operator==(const Position&) const = default;
};

class CppInterface : public testing::TestWithParam<Mode> {
 protected:
  TemporaryDirectory directory_;
  std::string path_ = directory_ / "pool";
};
INSTANTIATE_TEST_SUITE_P(Modes, CppInterface, testing::Values(Mode::copy, Mode::twin, Mode::log),
                         [](const testing::TestParamInfo<Mode>& tested) -> std::string {
                           return tested.param == Mode::copy   ? "copy"
                                  : tested.param == Mode::twin ? "twin"
                                                               : "log";
                         });

TEST_P(CppInterface, what_was_committed_comes_back_in_the_next_run) {
  for (std::uint64_t run = 0; run < 3; ++run) {
    std::uint64_t step = 0;
    Position position;
    Pool pool(path_);
    auto u = pool.array<double>("u", {30, 40}, GetParam());
    auto z = pool.array<std::complex<double>>("z", {7}, GetParam());
    pool.scalar("iteration", step);
    pool.scalar("position", position);
    EXPECT_EQ(pool.restart(), 2 * run);
    EXPECT_EQ(step, 2 * run);
    EXPECT_EQ(position, (Position{static_cast<double>(step), -static_cast<double>(step)}));
    EXPECT_EQ(u.consistent().size(), 1200U);
    EXPECT_EQ(u.consistent().back(), static_cast<double>(step));
    EXPECT_EQ(z.consistent().front(), std::complex<double>(0, static_cast<double>(step)));
    for (int i = 0; i < 2; ++i) {
      const auto value = static_cast<double>(++step);
      std::ranges::fill(u.working(), value);
      std::ranges::fill(z.working(), std::complex<double>(0, value));
      position = {value, -value};
      EXPECT_EQ(pool.commit(), step);
    }
    std::ranges::fill(u.working(), -1.0);  // never committed: lost
    EXPECT_EQ(pool.status().commits, 2U);
    EXPECT_EQ(pool.status().version, step);
  }
}

TEST_P(CppInterface, asynchronous_commits_come_back) {
  {
    Pool pool(path_);
    auto u = pool.array<std::int64_t>("u", {50}, GetParam());
    pool.restart();
    u.box({100}, {50});
    EXPECT_THROW(u.box({100}, {51}), perdure::Error);
    EXPECT_THROW(u.box({100, 1}, {50, 0}), perdure::Error);
    for (std::int64_t v = 1; v <= 3; ++v) {
      std::ranges::fill(u.working(), v);
      pool.commit_begin();
      EXPECT_EQ(code_of([&] { u.before_write(); }),
                GetParam() == Mode::twin ? PERDURE_E_STATE : PERDURE_OK);
      EXPECT_EQ(pool.commit_wait(), static_cast<std::uint64_t>(v));
    }
    std::ranges::fill(u.working(), 4);
    pool.commit_begin();
    pool.close();  // waits for it
  }
  Pool pool(path_, {.must_exist = true});
  auto u = pool.array<std::int64_t>("u", {50}, GetParam());
  EXPECT_EQ(pool.restart(), 4U);
  EXPECT_EQ(u.consistent()[49], 4);
}

using CppInterfaceOnce = CppInterface;
INSTANTIATE_TEST_SUITE_P(Once, CppInterfaceOnce, testing::Values(Mode::copy));

TEST_P(CppInterfaceOnce, marks_and_writes_past_the_cache_are_part_of_the_version) {
  const std::vector<float> row{1, 2, 3};
  std::vector<std::int32_t> mine(2000);
  {
    Pool pool(path_);
    auto twin = pool.array<float>("twin", {2, 3}, Mode::twin, {.checksums = true});
    auto log = pool.array<std::int32_t>("log", {2000}, Mode::log, {.marks = true, .buffer = mine});
    pool.restart();
    EXPECT_EQ(log.working().data(), mine.data());
    twin.write(0, row);
    twin.write(3, row);
    mine[1234] = 5;
    log.mark(1234, 1);
    pool.commit();
    EXPECT_EQ(code_of([&] { twin.write(4, row); }), PERDURE_E_INVALID);
    EXPECT_EQ(code_of([&] { log.mark(2000, 1); }), PERDURE_E_INVALID);
  }
  Pool pool(path_);
  auto twin = pool.array<float>("twin", {2, 3}, Mode::twin, {.checksums = true});
  auto log = pool.array<std::int32_t>("log", {2000}, Mode::log, {.marks = true});
  EXPECT_EQ(pool.restart(), 1U);
  EXPECT_EQ(twin.shape(), (perdure::Shape{2, 3}));
  EXPECT_EQ(twin.consistent()[5], 3.0F);
  EXPECT_EQ(log.consistent()[1234], 5);
}

TEST_P(CppInterface, arrays_change_their_size_and_come_back_with_it) {
  {
    Pool pool(path_, {.keep = 2});
    auto u = pool.array<double>("u", {10}, GetParam());
    EXPECT_EQ(code_of([&] { u.resize({20}); }), PERDURE_E_STATE);  // before the restart
    pool.restart();
    std::ranges::fill(u.working(), 1.0);
    pool.commit();
    u.resize({3000});
    const auto other = u;  // means the same array
    EXPECT_EQ(other.shape(), (perdure::Shape{3000}));
    EXPECT_EQ(u.consistent()[9], 1.0);
    EXPECT_EQ(u.consistent()[10], 0.0);
    EXPECT_EQ(code_of([&] { u.resize({10, 10}); }), PERDURE_E_SHAPE);
    std::ranges::fill(u.working(), 2.0);
    pool.commit();
  }
  Pool pool(path_);
  const auto arrays = pool.arrays();
  ASSERT_EQ(arrays.size(), 1U);
  EXPECT_EQ(std::string(arrays[0].name), "u");
  EXPECT_EQ(arrays[0].type, PERDURE_DOUBLE);
  EXPECT_EQ(arrays[0].mode, static_cast<int>(GetParam()));
  EXPECT_EQ(arrays[0].bytes, 24000U);
  EXPECT_EQ(arrays[0].open, 0);
  EXPECT_EQ(pool.arrays(1).at(0).shape[0], 10U);
  EXPECT_EQ(code_of([&] { pool.arrays(7); }), PERDURE_E_NOT_FOUND);
  EXPECT_EQ(code_of([&] { pool.array<double>("v", GetParam()); }), PERDURE_E_NOT_FOUND);
  auto u = pool.array<double>("u", GetParam());
  pool.restart();
  EXPECT_EQ(u.size(), 3000U);
  EXPECT_EQ(u.consistent().back(), 2.0);
  pool.restore(1);
  EXPECT_EQ(u.size(), 10U);
  EXPECT_EQ(u.consistent().back(), 1.0);
  pool.remove(u);
  EXPECT_TRUE(pool.arrays().empty());
  pool.commit();
  EXPECT_TRUE(pool.arrays(3).empty());
  EXPECT_EQ(pool.arrays(2).size(), 1U);
}

TEST_P(CppInterfaceOnce, vectors_are_as_large_as_they_are_at_each_commit) {
  {
    Pool pool(path_, {.keep = 3});
    std::vector<Position> particles;
    pool.array("particles", particles);
    perdure::vector<double> masses(pool, "masses");
    pool.restart();
    for (int step = 1; step <= 3; ++step) {
      for (int i = 0; i < 1000 * step; ++i) particles.push_back({1.0 * step, 2.0});
      masses.assign(static_cast<std::size_t>(4 - step), 1.0 * step);
      pool.commit();
    }
    pool.restore(2);
    EXPECT_EQ(particles.size(), 3000U);
    EXPECT_EQ(particles.back(), (Position{2.0, 2.0}));
    EXPECT_EQ(masses, (std::vector<double>{2.0, 2.0}));
    EXPECT_EQ(code_of([&] { pool.restore(9); }), PERDURE_E_NOT_FOUND);
    EXPECT_EQ(particles.size(), 3000U);
    particles.clear();
    particles.shrink_to_fit();
    pool.commit();
    particles.resize(5);
    pool.commit_begin();
    pool.commit_wait();
    {
      perdure::vector<std::int32_t> gone(pool, "gone");
      gone.assign(3, 7);
    }
    pool.commit();  // of "gone" it has what the vector had
  }
  Pool pool(path_);
  std::vector<Position> particles;
  pool.array("particles", particles);
  perdure::vector<double> masses(pool, "masses");
  auto gone = pool.array<std::int32_t>("gone", Mode::copy);
  EXPECT_EQ(particles.size(), 5U);
  EXPECT_EQ(masses.size(), 2U);
  pool.restart();
  EXPECT_EQ(particles, std::vector<Position>(5));
  EXPECT_EQ(masses[1], 2.0);
  EXPECT_EQ(gone.size(), 3U);
  EXPECT_EQ(gone.consistent()[2], 7);
}

template <typename T>
class OfEachType : public testing::Test {};
using EachType =
    testing::Types<bool, std::int8_t, std::int16_t, std::uint16_t, std::uint32_t, std::uint64_t,
                   std::complex<float>, std::complex<double>, float, unsigned char>;
TYPED_TEST_SUITE(OfEachType, EachType);

TYPED_TEST(OfEachType, arrays_and_scalars_come_back_and_are_no_others) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pool";
  const auto value_of = [](int i) { return static_cast<TypeParam>(static_cast<float>(i % 2 + 1)); };
  {
    Pool pool(path);
    auto u = pool.array<TypeParam>("u", {300, 2}, Mode::log);
    TypeParam one = value_of(0);
    pool.scalar("one", one);
    pool.restart();
    for (int i = 0; i < 600; ++i) u.working()[static_cast<std::size_t>(i)] = value_of(i);
    pool.commit();
    u.resize({400, 2});
    one = value_of(1);
    pool.commit();
  }
  Pool pool(path);
  using Other = std::conditional_t<std::is_same_v<TypeParam, float>, std::int32_t, float>;
  EXPECT_EQ(code_of([&] { pool.array<Other>("u", Mode::log); }), PERDURE_E_SHAPE);
  auto u = pool.array<TypeParam>("u", Mode::log);
  TypeParam one{};
  pool.scalar("one", one);
  pool.restart();
  ASSERT_EQ(u.shape(), (perdure::Shape{400, 2}));
  for (int i = 0; i < 800; ++i) {
    EXPECT_EQ(u.consistent()[static_cast<std::size_t>(i)], i < 600 ? value_of(i) : TypeParam{});
  }
  EXPECT_EQ(one, value_of(1));
}

// Its memory is never whole pages, which a tracker of changes would need.
TEST_P(CppInterfaceOnce, a_vector_in_log_mode_grows_from_nothing_to_any_size) {
  std::vector<double> list;
  {
    Pool pool(path_);
    pool.array("list", list, Mode::log);
    pool.restart();
    for (int step = 1; step <= 4; ++step) {
      for (int i = 0; i < 5000; ++i) list.push_back(step);
      list[7] = -step;
      pool.commit();
    }
  }
  std::vector<double> found;
  Pool pool(path_);
  pool.array("list", found, Mode::log);
  pool.restart();
  EXPECT_EQ(found, list);
}

TEST_P(CppInterfaceOnce, members_of_a_struct_are_scalars_of_their_own) {
  using perdure::Member;
  struct State {
    std::int64_t iteration = 0;
    Position position;
    bool settled = false;
    double added = 4;  // by the program's next release
  };
  const auto name_three = [](Pool& pool, State& state) {
    pool.members(state, Member{"iteration", &State::iteration},
                 Member{"state.position", &State::position},
                 Member{"state.settled", &State::settled});
  };
  {
    Pool pool(path_);
    State state;
    name_three(pool, state);
    pool.restart();
    state = {7, {1, 2}, true, 5};
    pool.commit();
    EXPECT_EQ(code_of([&] { pool.members(state, Member{"iteration", &State::added}); }),
              PERDURE_E_INVALID);  // bound already
  }
  Pool pool(path_);
  State state;
  name_three(pool, state);
  pool.members(state, Member{"state.added", &State::added});
  EXPECT_EQ(pool.restart(), 1U);
  EXPECT_EQ(state.iteration, 7);
  EXPECT_EQ(state.position, (Position{1, 2}));
  EXPECT_TRUE(state.settled);
  EXPECT_EQ(state.added, 4);  // which no version has
}

TEST_P(CppInterfaceOnce, every_option_of_c_can_be_asked_for) {
  using perdure::Delay;
  perdure::Options options{.must_exist = true,
                           .allow_older = true,
                           .any_job = true,
                           .any_owner = true,
                           .job = "j",
                           .emulate = "paper-nvm",
                           .delay = Delay::drain,
                           .copy_threads = 3,
                           .keep = 5,
                           .levels = "x"};
  const perdure_options c = options.to_c();
  EXPECT_EQ(c.flags, static_cast<unsigned>(PERDURE_MUST_EXIST | PERDURE_ALLOW_OLDER |
                                           PERDURE_ANY_JOB | PERDURE_ANY_OWNER));
  EXPECT_EQ(std::string(c.job) + c.emulate + c.levels, "jpaper-nvmx");
  EXPECT_EQ(c.delay, PERDURE_DELAY_DRAIN);
  EXPECT_EQ(c.copy_threads, 3U);
  EXPECT_EQ(c.keep, 5U);
  EXPECT_EQ((perdure::Options{.discard = true}.to_c().flags), unsigned{PERDURE_DISCARD});
  EXPECT_EQ(std::string(perdure::library_version()), perdure_library_version());
  Pool emulated(path_, {.emulate = "paper-nvm", .delay = Delay::drain});
  auto u = emulated.array<double>("u", {1000}, Mode::twin);
  emulated.restart();
  u.working()[0] = 1;
  EXPECT_EQ(emulated.commit(), 1U);
  EXPECT_EQ(emulated.commit_due(), PERDURE_DUE);
  EXPECT_EQ(emulated.levels_wait(), 0U);
}

TEST_P(CppInterfaceOnce, texts_and_engines_are_found_again_with_their_own_size) {
  const std::string nul("a\0b\xff", 4);
  const std::string long_text(100'000, 'x');
  for (int start = 0; start < 3; ++start) {
    std::string motto = "first";
    std::mt19937_64 random(5);
    std::minstd_rand other(6);
    Pool pool(path_, {.keep = 3});
    pool.state("motto", motto);
    pool.state("random", random);
    pool.state("other", other);
    const std::uint64_t version = pool.restart();
    if (start > 0) {
      std::mt19937_64 straight(5);
      straight.discard(static_cast<unsigned>(start) * 700);
      EXPECT_EQ(random, straight);
      std::minstd_rand again(6);
      again.discard(static_cast<unsigned>(start) * 2);
      EXPECT_EQ(other, again);
      EXPECT_EQ(motto, start == 1 ? long_text : nul);
      pool.restore(version);
    }
    other = std::minstd_rand(6);
    other.discard(static_cast<unsigned>(start + 1) * 2);
    random.discard(700);
    motto = start == 0 ? long_text : nul;
    pool.commit_begin();
    const std::string kept = std::exchange(motto, "changed while the commit saves");
    pool.commit_wait();
    motto = kept;
    pool.commit();
    const std::uint64_t before = pool.status().committed_bytes;
    pool.delete_version(pool.versions().at(1).version);
    pool.commit();
    EXPECT_EQ(pool.status().committed_bytes, before);  // nothing changed
    if (start == 2) {
      motto = "another";
      const std::uint64_t other_version = pool.commit();
      pool.restore(other_version - 1);
      EXPECT_EQ(motto, nul);
      pool.restore(other_version);
      EXPECT_EQ(motto, "another");
    }
  }
}

TEST_P(CppInterfaceOnce, a_crafted_engine_is_an_error_and_leaves_the_engine_as_it_is) {
  std::ostringstream whole;
  whole << std::mt19937(1);
  const std::string numbers = whole.str().substr(0, whole.str().rfind(' '));
  for (const std::string& crafted : {numbers + " 625", numbers + " 99999999", numbers + " -1",
                                     numbers, numbers + " 99999999 5", std::string("x")}) {
    {
      Pool pool(path_, {.discard = true});
      std::string text = crafted;
      pool.state("random", text);
      pool.restart();
      pool.commit();
    }
    Pool pool(path_);
    std::mt19937 random(7);
    pool.state("random", random);
    EXPECT_EQ(code_of([&] { pool.restart(); }), PERDURE_E_DAMAGED);
    EXPECT_EQ(random, std::mt19937(7));
  }
}

TEST_P(CppInterfaceOnce, a_state_that_was_crafted_is_an_error) {
  for (const std::size_t size : {8U, 40U, 48U, 56U}) {
    {
      Pool pool(path_, {.discard = true});
      std::vector<unsigned char> raw(size, 0xff);
      auto stored = pool.array("perdure.state.motto", raw, Mode::log, {.marks = true});
      pool.restart();
      stored.mark(0, size);
      pool.commit();
    }
    Pool pool(path_);
    std::string motto = "mine";
    pool.state("motto", motto);
    EXPECT_EQ(code_of([&] { pool.restart(); }), PERDURE_E_SHAPE);
    EXPECT_EQ(motto, "mine");
  }
}

TEST_P(CppInterfaceOnce, failures_are_errors_with_a_code_and_a_sentence) {
  EXPECT_EQ(code_of([&] { Pool missing(path_, {.must_exist = true}); }), PERDURE_E_NOT_FOUND);
  EXPECT_EQ(code_of([&] { Pool unknown(path_, {.emulate = "no-such-part"}); }),
            PERDURE_E_NOT_FOUND);
  Pool pool(path_);
  auto u = pool.array<double>("u", {10}, Mode::copy);
  EXPECT_EQ(code_of([&] { pool.commit(); }), PERDURE_E_STATE);  // before restart
  EXPECT_EQ(code_of([&] { u.working(); }), PERDURE_E_STATE);
  EXPECT_EQ(code_of([&] { u.consistent(); }), PERDURE_E_STATE);
  EXPECT_EQ(code_of([&] { pool.commit_wait(); }), PERDURE_E_STATE);
  EXPECT_EQ(code_of([&] { pool.array<double>("v", {}, Mode::copy); }), PERDURE_E_INVALID);
  std::array<double, 3> small{};
  EXPECT_EQ(code_of([&] { pool.array<double>("v", {4}, Mode::copy, {.buffer = small}); }),
            PERDURE_E_INVALID);
  pool.restart();
  pool.commit();
  pool.close();
  EXPECT_EQ(code_of([&] { pool.commit(); }), PERDURE_E_INVALID);  // closed
  pool.close();                                                   // again: nothing to do
  Pool reopened(path_);
  EXPECT_EQ(code_of([&] { reopened.array<float>("u", {10}, Mode::copy); }), PERDURE_E_SHAPE);
}

TEST_P(CppInterfaceOnce, lines_in_the_buffer_of_a_stream_go_back_with_the_state) {
  const std::string path = directory_ / "log.txt";
  const auto run = [&](std::uint64_t steps, bool crashes) {
    Pool pool(path_);
    std::uint64_t step = 0;
    std::ofstream log(path, std::ios::app);
    pool.scalar("iteration", step);
    pool.file(path, log);
    log << "goes at the restart\n";
    pool.restart();
    while (step < steps) {
      log << "step " << step << '\n';
      ++step;
      pool.commit();
    }
    if (crashes) log << "lost\n";
  };
  run(2, true);
  EXPECT_EQ(perdure_test::read_file(path), "step 0\nstep 1\nlost\n");
  run(3, false);
  EXPECT_EQ(perdure_test::read_file(path), "step 0\nstep 1\nstep 2\n");
  Pool pool(path_);
  std::ofstream failed(directory_ / "none/log.txt");
  EXPECT_EQ(code_of([&] { pool.file(path, failed); }), PERDURE_E_IO);
}

TEST_P(CppInterfaceOnce, a_moved_pool_is_closed_once_and_by_its_last_owner) {
  Pool first(path_);
  auto u = first.array<double>("u", {10}, Mode::copy);
  Pool second(std::move(first));
  EXPECT_EQ(first.handle(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.restart(), 0U);
  u.working()[3] = 7;
  EXPECT_EQ(second.commit(), 1U);
  Pool other(directory_ / "other");
  other = std::move(second);  // closes the other one
  EXPECT_EQ(other.commit(), 2U);
  Pool(directory_ / "other").close();
  other = Pool(directory_ / "other");
  EXPECT_EQ(Pool(path_).status().version, 2U);
}

}  // namespace
