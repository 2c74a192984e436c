// SPDX-License-Identifier: BSD-3-Clause
//
// ipv.hpp as a C++ program uses it. Links nothing but the library, as users do.
#include "perdure/ipv.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "temporary_directory.hpp"

namespace {

namespace ipv = perdure::ipv;
using perdure::Pool;
using Doubles = std::vector<double, ipv::allocator<double>>;

static_assert(!std::is_copy_constructible_v<ipv::Objects>);
static_assert(std::is_nothrow_move_constructible_v<ipv::Objects>);
static_assert(std::is_nothrow_move_assignable_v<ipv::Pin> && !std::is_copy_assignable_v<ipv::Pin>);
static_assert(std::is_nothrow_destructible_v<ipv::Objects>);

template <typename Body>
int code_of(const Body& body) {
  try {
    body();
  } catch (const perdure::Error& error) {
    EXPECT_NE(std::string(error.what()), "");
    return error.code();
  }
  return PERDURE_OK;
}

class IpvInterface : public testing::Test {
 protected:
  perdure_test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "pool";
};

// Bytes of the process's own mappings, in pages.
std::size_t mapped_pages() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages;
  return pages;
}

TEST_F(IpvInterface, vectors_are_objects_whose_versions_come_back) {
  for (std::uint64_t run = 0; run < 3; ++run) {
    std::uint64_t step = 0;
    Pool pool(path_);
    pool.scalar("iteration", step);
    Doubles u(10'000, 1.0);
    std::array<float, 7> few{};
    ipv::Objects objects(pool);
    objects.add("u", u);
    objects.add("few", few);
    EXPECT_EQ(objects.restart(), 2 * run);
    EXPECT_EQ(u[9'999], 1.0 + static_cast<double>(step));
    EXPECT_EQ(few[6], static_cast<float>(step));
    for (int i = 0; i < 2; ++i) {
      for (double& cell : u) cell += 1;
      few.fill(static_cast<float>(++step));
      objects.persist();
    }
    ipv::flush_barrier();
    EXPECT_EQ(objects.status("u").versions, 2U);
    objects.close();
    objects.close();  // again: nothing to do
    EXPECT_EQ(u[0], 1.0 + static_cast<double>(step));
    u[0] = 0;  // ordinary memory again, and never part of a version
  }
}

TEST_F(IpvInterface, failures_are_errors_with_a_code_and_a_sentence) {
  Pool pool(path_);
  Doubles u(100);
  ipv::Objects objects(pool);
  EXPECT_EQ(code_of([&] { ipv::Objects second(pool); }), PERDURE_E_BUSY);
  EXPECT_EQ(code_of([&] { objects.ranks("u", perdure::Ranks::rows); }), PERDURE_E_NOT_FOUND);
  objects.add("u", u);
  EXPECT_EQ(code_of([&] { objects.add("v", std::span(u).subspan(3)); }), PERDURE_E_INVALID);
  EXPECT_EQ(code_of([&] { (void)objects.status("w"); }), PERDURE_E_NOT_FOUND);
  EXPECT_EQ(code_of([&] { objects.persist(); }), PERDURE_E_STATE);
  EXPECT_EQ(code_of([&] { ipv::Pin pin(&pool); }), PERDURE_E_NOT_FOUND);
}

TEST_F(IpvInterface, a_moved_set_of_objects_ends_once) {
  Pool pool(path_);
  Doubles u(100);
  {
    ipv::Objects first(pool, {.helper = false});  // versions are durable where they are made
    first.add("u", u);
    ipv::Objects second(std::move(first));
    first.close();  // NOLINT(bugprone-use-after-move): it has none
    EXPECT_EQ(second.restart(), 0U);
    ipv::Pin pin(u.data());
    ipv::Pin moved(std::move(pin));
    u[1] = 1;
    ipv::touch(std::span(u));
    EXPECT_EQ(second.persist(), 0U);  // durable one persistence point later
    EXPECT_EQ(second.wait(), 1U);
    EXPECT_EQ(second.status("u").tier, PERDURE_IPV_COPY);  // pinned
  }
  EXPECT_EQ(u[1], 1);
  Pool other(directory_ / "other");
  ipv::Objects again(other);  // BUSY if the first had not ended
}

TEST_F(IpvInterface, an_object_whose_vector_grew_is_refused_at_the_next_persist) {
  const std::size_t before = mapped_pages();
  {
    Pool pool(path_);
    ipv::Objects objects(pool);
    Doubles u(1000, 4.0);
    objects.add("u", u);
    objects.restart();
    objects.persist();
    u.push_back(5);  // elsewhere now; the object's memory must stay
    EXPECT_EQ(u.front(), 4.0);
    try {
      objects.persist();
      FAIL() << "the object is the program's no more";
    } catch (const perdure::Error& error) {
      EXPECT_EQ(error.code(), PERDURE_E_STATE);
      EXPECT_NE(std::string(error.what()).find("'u'"), std::string::npos) << error.what();
    }
  }  // u goes before the objects
  Pool pool(path_);
  Doubles u(1000);
  ipv::Objects objects(pool);
  objects.add("u", u);
  EXPECT_EQ(objects.restart(), 1U);
  EXPECT_EQ(u.back(), 4.0);
  RecordProperty("pages", static_cast<int>(mapped_pages() - before));
}

// By either allocator, in each run longer, shorter, elsewhere, and empty now and then.
template <typename Vector>
void follow_a_vector(const std::string& path) {
  std::vector<float> expected;
  for (std::uint64_t run = 0; run < 5; ++run) {
    Pool pool(path);
    Vector u(run == 0 ? 0 : 17);
    ipv::Objects objects(pool);
    objects.follow("u", u);
    EXPECT_EQ(u.size(), expected.size()) << "run " << run;
    objects.restart();
    EXPECT_TRUE(std::equal(u.begin(), u.end(), expected.begin(), expected.end())) << "run " << run;
    for (int step = 0; step < 9; ++step) {
      for (int i = 0; i < 700 * step; ++i) u.push_back(static_cast<float>(i + step));
      if (step == 3) u.erase(u.begin(), u.begin() + 500);
      if (step == 5) Vector(u).swap(u);
      if (step == 6 && run % 2 == 0) u.clear();
      objects.persist();
    }
    EXPECT_GE(objects.wait(), 9 * (run + 1));
    expected.assign(u.begin(), u.end());
    u.push_back(1);  // is in no version
    objects.close();
  }
}

TEST_F(IpvInterface, a_followed_vector_is_in_each_version_as_long_as_it_is) {
  follow_a_vector<std::vector<float>>(path_);
  follow_a_vector<std::vector<float, ipv::allocator<float>>>(directory_ / "other");
}

TEST_F(IpvInterface, a_vector_that_changes_between_its_name_and_the_restart_is_refused) {
  Pool pool(path_);
  std::vector<float> u(3);
  ipv::Objects objects(pool);
  objects.follow("u", u);
  u.push_back(1);
  EXPECT_EQ(code_of([&] { objects.restart(); }), PERDURE_E_STATE);
}

TEST_F(IpvInterface, an_object_goes_on_where_resize_says) {
  {
    Pool pool(path_);
    ipv::Objects objects(pool);
    Doubles u(1000, 4.0);
    objects.add("u", u);
    objects.restart();
    objects.persist();
    for (int i = 0; i < 3000; ++i) u.push_back(5);
    EXPECT_EQ(code_of([&] { objects.resize("v", u); }), PERDURE_E_NOT_FOUND);
    objects.resize("u", u);
    objects.persist();
    u.front() = 6;
    objects.persist();
    EXPECT_EQ(objects.wait(), 3U);
  }
  Pool pool(path_);
  Doubles u(4000);
  ipv::Objects objects(pool);
  objects.add("u", u);
  EXPECT_EQ(objects.restart(), 3U);
  EXPECT_EQ(u.front(), 6.0);
  EXPECT_EQ(u.back(), 5.0);
}

TEST_F(IpvInterface, a_pair_goes_on_in_larger_arrays) {
  Doubles f(512, 1.0), g(512, 1.0), larger_f(1024, 2.0), larger_g(1024);
  {
    Pool pool(path_);
    ipv::Objects objects(pool);
    objects.add_pair("f", std::span<double>(f), std::span<double>(g));
    objects.restart();
    std::fill(g.begin(), g.end(), 3.0);
    objects.persist();
    EXPECT_EQ(code_of([&] {
                objects.resize_pair("f", std::span<double>(larger_f), std::span<double>(g));
              }),
              PERDURE_E_INVALID);
    objects.resize_pair("f", std::span<double>(larger_f), std::span<double>(larger_g));
    std::fill(f.begin(), f.end(), 9.0);  // no object's any more
    std::fill(larger_g.begin(), larger_g.end(), 5.0);
    objects.persist();
    EXPECT_EQ(objects.alive("f"), larger_g.data());
    EXPECT_EQ(objects.wait(), 2U);
  }
  Pool pool(path_);
  ipv::Objects objects(pool);
  Doubles a(1024), b(1024);
  objects.add_pair("f", std::span<double>(a), std::span<double>(b));
  objects.restart();
  const auto* const alive = static_cast<const double*>(objects.alive("f"));
  EXPECT_EQ(std::count(alive, alive + 1024, 5.0), 1024);
}

TEST_F(IpvInterface, memory_of_objects_is_given_back) {
  constexpr std::size_t cells = std::size_t{1} << 20U;  // 8 MiB
  std::size_t first = 0;
  for (int run = 0; run < 20; ++run) {
    {
      Pool pool(path_);
      ipv::Objects objects(pool);
      Doubles u(cells);
      objects.add("u", u, PERDURE_IPV_COPY);
      if (run % 2 != 0) u.resize(u.size() + 1);  // freed as an object, given back by close()
    }
    if (run == 1) first = mapped_pages();
  }
  EXPECT_LT(mapped_pages(), first + (2 * cells * sizeof(double) / 4096));
}

TEST_F(IpvInterface, the_allocator_serves_any_container_thread_and_move) {
  static_assert(std::is_same_v<std::allocator_traits<ipv::allocator<int>>::rebind_alloc<char>,
                               ipv::allocator<char>>);
  std::vector<Doubles> made(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < made.size(); ++t) {
    threads.emplace_back([&made, t] {
      for (std::size_t size = 1; size < 5000; size *= 3) {
        Doubles some(size);
        EXPECT_EQ(std::accumulate(some.begin(), some.end(), 0.0), 0.0);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(some.data()) % 4096, 0U);
        some.assign(size, static_cast<double>(t));
        made[t] = std::move(some);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < made.size(); ++t) EXPECT_EQ(made[t].back(), static_cast<double>(t));
  EXPECT_THROW(ipv::allocator<double>().allocate(SIZE_MAX / 4), std::bad_alloc);
  EXPECT_THROW(ipv::allocator<double>().allocate(SIZE_MAX / 8 - 1), std::bad_alloc);
}

TEST_F(IpvInterface, every_option_of_c_can_be_asked_for) {
  const std::string report = directory_ / "report.json";
  const ipv::Options options{
      .helper = true, .threads = 3, .every = 2, .guard = false, .report = report};
  const perdure_ipv_options c = options.to_c();
  EXPECT_EQ(c.helper, 1);
  EXPECT_EQ(c.threads, 3U);
  EXPECT_EQ(c.every, 2U);
  EXPECT_EQ(c.no_guard, 1);
  EXPECT_EQ(ipv::Options{}.to_c().helper, 0);
  Pool pool(path_);
  Doubles u(1000);
  ipv::Objects objects(pool, options);
  objects.add("u", u);
  objects.restart();
  objects.persist();
  objects.close();
  EXPECT_NE(perdure_test::read_file(report).find("\"u\""), std::string::npos);
}

// A thread that stores to a streamed object during a persistence point waits for its end.
TEST_F(IpvInterface, the_report_tells_what_first_stores_waited_for) {
  const std::string report = directory_ / "report.json";
  Pool pool(path_);
  Doubles u(std::size_t{4} << 20U);
  ipv::Objects objects(pool, {.helper = false, .lag = false, .report = report});
  objects.add("u", u, PERDURE_IPV_STREAM);
  objects.restart();
  std::atomic<bool> ends{false};
  std::thread storing([&u, &ends] {
    while (!ends) u[1] += 1;
  });
  for (int i = 0; i < 50; ++i) {
    u[0] += 1;
    objects.persist();
  }
  ends = true;
  storing.join();
  objects.close();
  const std::string text = perdure_test::read_file(report);
  const auto number = [&text](const std::string& name) {
    const std::string key = "\"" + name + "\": ";
    const auto at = text.find(key);
    return at == std::string::npos ? 0ULL : std::stoull(text.substr(at + key.size()));
  };
  EXPECT_GT(number("first_stores_ns"), 0U) << text;
  EXPECT_GE(number("persist_ns"), number("first_stores_ns")) << text;
}

TEST_F(IpvInterface, an_array_that_every_second_iteration_overwrites_is_copied_in_these_alone) {
  Pool pool(path_);
  Doubles u(std::size_t{512} << 10U);
  ipv::Objects objects(pool, {.helper = false});
  objects.add("u", u, PERDURE_IPV_COPY);
  objects.restart();
  for (int i = 0; i < 40; ++i) {
    if (i % 2 == 0) std::fill(u.begin(), u.end(), i);
    objects.persist();
  }
  objects.wait();
  const auto status = objects.status("u");
  EXPECT_EQ(status.versions, 20U);
  EXPECT_EQ(status.copied_bytes, 20 * u.size() * sizeof(double));
  objects.close();
}

TEST_F(IpvInterface, flushes_by_hand_need_no_objects) {
  std::vector<double> u(1000, 1.0);
  ipv::flush_init(2);
  ipv::flush_async(std::span<const double>(u));
  ipv::flush_barrier();
  EXPECT_EQ(code_of([] { ipv::flush_init(257); }), PERDURE_E_INVALID);
}

}  // namespace
