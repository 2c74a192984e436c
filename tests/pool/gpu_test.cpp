// SPDX-License-Identifier: BSD-3-Clause
//
// perdure.h with arrays in memory of a GPU, as a C program uses it, on a driver that needs none.
// ctest: LABELS truth
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "device/testing/fake_gpu.hpp"
#include "perdure/perdure.h"
#include "perdure/perdure.hpp"
#include "temporary_directory.hpp"

namespace {

using perdure::FakeGpu;
using perdure_test::TemporaryDirectory;

constexpr std::uint64_t cells = 30000;
using Cells = std::vector<double>;

Cells cells_of(int version) {
  Cells all(cells);
  std::iota(all.begin(), all.end(), 1e6 * version);
  return all;
}

struct Job {
  perdure_pool* pool = nullptr;
  perdure_array* u = nullptr;
  std::uint64_t version = 0;

  int open(const std::string& path, perdure_mode mode, void* buffer) {
    perdure_options options{};
    options.keep = 3;
    perdure_array_options of_array{};
    of_array.buffer = buffer;
    int code = perdure_open(path.c_str(), &options, &pool);
    if (code == 0) {
      code = perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, mode, &of_array, &u);
    }
    return code == 0 ? perdure_restart(pool, &version) : code;
  }
  perdure_pool_status status() const {
    perdure_pool_status found{};
    EXPECT_EQ(perdure_status(pool, &found), PERDURE_OK);
    return found;
  }
  void close() { EXPECT_EQ(perdure_close(std::exchange(pool, nullptr)), PERDURE_OK); }
};

// What a run without a GPU finds.
Cells newest(const std::string& path, perdure_mode mode) {
  Job job;
  EXPECT_EQ(job.open(path, mode, nullptr), PERDURE_OK) << perdure_last_error();
  const auto* const found = static_cast<const double*>(perdure_consistent(job.u));
  Cells all(found, found + cells);
  job.close();
  return all;
}

// The first test: those after it load a driver.
TEST(Gpu, streams_are_refused_where_no_driver_is_in_use) {
  TemporaryDirectory directory;
  Job job;
  ASSERT_EQ(job.open(directory.path() + "/pool", PERDURE_COPY, nullptr), PERDURE_OK);
  EXPECT_EQ(perdure_stream(job.pool, PERDURE_STREAM_CUDA, nullptr), PERDURE_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(perdure_last_error(), "libcuda.so.1"), nullptr) << perdure_last_error();
  EXPECT_EQ(perdure_stream(job.pool, PERDURE_STREAM_NONE, nullptr), PERDURE_OK);
  EXPECT_EQ(perdure_stream(job.pool, PERDURE_STREAM_NONE, &job), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_stream(job.pool, 7, nullptr), PERDURE_E_INVALID);
  job.close();
}

class GpuPool : public testing::TestWithParam<perdure_mode> {
 protected:
  GpuPool() : buffer_(gpu_.allocate(cells * sizeof(double))), stream_(gpu_.make_stream()) {}
  ~GpuPool() override {
    if (job_.pool != nullptr) job_.close();
  }
  void start() {
    ASSERT_EQ(job_.open(path_, GetParam(), buffer_), PERDURE_OK) << perdure_last_error();
  }
  // The stream is asked for it; `contents` stays.
  void ask_for(const Cells& contents) {
    gpu_.store(buffer_, contents.data(), cells * sizeof(double), stream_);
  }

  // Versions 1 to `last`, while the stream already stores what is in none of them.
  void commit_beside_later_stores(int last) {
    const Cells later = cells_of(-1);
    for (int version = 1; version <= last; ++version) {
      const Cells contents = cells_of(version);
      ask_for(contents);
      ASSERT_EQ(perdure_commit_begin(job_.pool), PERDURE_OK) << perdure_last_error();
      ask_for(later);
      ASSERT_EQ(perdure_commit_wait(job_.pool, nullptr), PERDURE_OK) << perdure_last_error();
      gpu_.synchronise(stream_);
      EXPECT_EQ(gpu_.read<double>(buffer_, cells), later);
    }
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/pool";
  FakeGpu gpu_;
  std::byte* buffer_;
  void* stream_;
  Job job_;
};

INSTANTIATE_TEST_SUITE_P(Modes, GpuPool, testing::Values(PERDURE_COPY, PERDURE_LOG),
                         [](const auto& tested) {
                           return tested.param == PERDURE_COPY ? "copy" : "log";
                         });

TEST_P(GpuPool, what_was_committed_comes_back) {
  start();
  for (int version = 1; version <= 5; ++version) {
    gpu_.write(buffer_, cells_of(version));
    ASSERT_EQ(perdure_commit(job_.pool, &job_.version), PERDURE_OK) << perdure_last_error();
  }
  EXPECT_EQ(perdure_working(job_.u), buffer_);
  EXPECT_EQ(perdure_consistent(job_.u), buffer_);
  EXPECT_EQ(job_.status().lacking_snapshots, 0U);
  ASSERT_EQ(perdure_restore(job_.pool, 3), PERDURE_OK) << perdure_last_error();
  EXPECT_EQ(gpu_.read<double>(buffer_, cells), cells_of(3));
  job_.close();
  EXPECT_EQ(newest(path_, GetParam()), cells_of(3));
}

TEST_P(GpuPool, a_commit_takes_what_the_stream_had_been_asked_for) {
  start();
  ASSERT_EQ(perdure_stream(job_.pool, PERDURE_STREAM_CUDA, stream_), PERDURE_OK);
  commit_beside_later_stores(5);
  job_.close();
  EXPECT_EQ(newest(path_, GetParam()), cells_of(5));
}

TEST_P(GpuPool, without_a_stream_all_that_was_asked_of_the_gpu_is_waited_for) {
  start();
  for (int version = 1; version <= 5; ++version) {
    const Cells contents = cells_of(version);
    ask_for(contents);
    ASSERT_EQ(perdure_commit(job_.pool, nullptr), PERDURE_OK) << perdure_last_error();
  }
  job_.close();
  EXPECT_EQ(newest(path_, GetParam()), cells_of(5));
}

TEST_P(GpuPool, commits_while_the_stream_is_captured_fail_and_leave_the_version) {
  start();
  ASSERT_EQ(perdure_stream(job_.pool, PERDURE_STREAM_CUDA, stream_), PERDURE_OK);
  gpu_.write(buffer_, cells_of(1));
  ASSERT_EQ(perdure_commit(job_.pool, nullptr), PERDURE_OK);
  gpu_.write(buffer_, cells_of(2));
  FakeGpu::check(gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(stream_, 0));
  EXPECT_EQ(perdure_commit(job_.pool, nullptr), PERDURE_E_STATE);
  EXPECT_NE(std::strstr(perdure_last_error(), "captured"), nullptr) << perdure_last_error();
  EXPECT_EQ(perdure_commit_begin(job_.pool), PERDURE_E_STATE);
  void* graph = nullptr;
  FakeGpu::check(gpu_.call<int(void*, void**)>("cuStreamEndCapture")(stream_, &graph));
  EXPECT_EQ(perdure_commit_wait(job_.pool, nullptr), PERDURE_E_STATE);
  EXPECT_EQ(job_.status().version, 1U);
  ASSERT_EQ(perdure_commit(job_.pool, &job_.version), PERDURE_OK) << perdure_last_error();
  EXPECT_EQ(job_.version, 2U);
  job_.close();
  EXPECT_EQ(newest(path_, GetParam()), cells_of(2));
}

// Whose pages take no transfer: what the kernel doesn't see it does not write back.
TEST_P(GpuPool, a_pool_on_a_disk_is_saved_through_the_host) {
  TemporaryDirectory disk(perdure_test::on_disk());
  path_ = disk.path() + "/pool";
  for (int run = 0; run < 2; ++run) {
    start();
    EXPECT_EQ(job_.version, run == 0 ? 0U : 4U);
    if (run == 1) {
      EXPECT_EQ(gpu_.read<double>(buffer_, cells), cells_of(4));
    }
    ASSERT_EQ(perdure_stream(job_.pool, PERDURE_STREAM_CUDA, stream_), PERDURE_OK);
    commit_beside_later_stores(4);
    job_.close();
  }
  EXPECT_EQ(newest(path_, GetParam()), cells_of(4));
  path_ = directory_.path() + "/pool";
}

TEST_P(GpuPool, a_span_of_memory_of_the_gpu_is_an_array) {
  perdure::ArrayOptions<double> options;
  options.buffer = {reinterpret_cast<double*>(buffer_), cells};
  const Cells contents = cells_of(4);
  {
    perdure::Pool pool(path_, {.keep = 3});
    const auto mode = GetParam() == PERDURE_COPY ? perdure::Mode::copy : perdure::Mode::log;
    auto u = pool.array<double>("u", {cells}, mode, options);
    pool.restart();
    pool.stream(PERDURE_STREAM_CUDA, stream_);
    ask_for(contents);
    EXPECT_EQ(pool.commit(), 1U);
    EXPECT_EQ(u.working().data(), options.buffer.data());
  }
  EXPECT_EQ(newest(path_, GetParam()), contents);
}

TEST_P(GpuPool, twin_with_a_buffer_there_is_refused_and_names_copy) {
  EXPECT_EQ(job_.open(path_, PERDURE_TWIN, buffer_), PERDURE_E_INVALID);
  EXPECT_NE(std::strstr(perdure_last_error(), "open the array in copy mode"), nullptr)
      << perdure_last_error();
  job_.close();
  start();  // as it says, and in the same pool
  gpu_.write(buffer_, cells_of(1));
  EXPECT_EQ(perdure_commit(job_.pool, nullptr), PERDURE_OK) << perdure_last_error();
  job_.close();
  EXPECT_EQ(newest(path_, GetParam()), cells_of(1));
}

int copy_on_host(void* copies, void* to, const void* from, size_t bytes, int) {
  ++*static_cast<int*>(copies);
  std::memcpy(to, from, bytes);
  return 0;
}

TEST(Functions, of_a_device_reach_its_arrays) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/pool";
  int copies = 0;
  perdure_device device{};
  device.context = &copies;
  device.copy = copy_on_host;
  perdure::ArrayOptions<double> options;
  Cells contents = cells_of(1);
  options.buffer = contents;
  options.device = &device;
  {
    perdure::Pool pool(path, {.keep = 3});
    pool.array<double>("u", {cells}, perdure::Mode::copy, options);
    pool.restart();
    EXPECT_EQ(copies, 0);
    pool.commit();
    EXPECT_EQ(copies, 1);
  }
  EXPECT_EQ(newest(path, PERDURE_COPY), cells_of(1));
}

TEST(Functions, of_a_device_that_can_not_be_used_are_refused) {
  TemporaryDirectory directory;
  perdure_pool* pool = nullptr;
  perdure_array* array = nullptr;
  ASSERT_EQ(perdure_open((directory.path() + "/pool").c_str(), nullptr, &pool), PERDURE_OK);
  int copies = 0;
  Cells contents = cells_of(1);
  perdure_device device{};
  perdure_array_options options{};
  options.device = &device;
  options.buffer = contents.data();
  const auto open = [&](int mode) {
    return perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, mode, &options, &array);
  };
  EXPECT_EQ(open(PERDURE_COPY), PERDURE_E_INVALID);
  EXPECT_NE(std::strstr(perdure_last_error(), "`copy`"), nullptr) << perdure_last_error();
  device.context = &copies;
  device.copy = copy_on_host;
  EXPECT_EQ(open(PERDURE_TWIN), PERDURE_E_INVALID);
  EXPECT_NE(std::strstr(perdure_last_error(), "copy has two versions in the pool"), nullptr)
      << perdure_last_error();
  options.buffer = nullptr;
  EXPECT_EQ(open(PERDURE_COPY), PERDURE_E_INVALID);
  EXPECT_NE(std::strstr(perdure_last_error(), "`buffer`"), nullptr) << perdure_last_error();
  options.buffer = contents.data();
  options.flags = PERDURE_MARKS;
  EXPECT_EQ(open(PERDURE_LOG), PERDURE_E_UNSUPPORTED);
  options.flags = 0;
  EXPECT_EQ(open(PERDURE_LOG), PERDURE_OK) << perdure_last_error();
  perdure_close(pool);
}

}  // namespace
