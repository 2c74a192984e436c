// SPDX-License-Identifier: BSD-3-Clause
//
// The order of what streams of the fake driver do: nothing but what the program asked for, so that
// a missing event shows.
// ctest: NAME gpu_fake_test
#include <atomic>
#include <chrono>
#include <thread>

#include "fake_test.hpp"

namespace fake {
namespace {

constexpr std::size_t bytes = 65536;

// Streams are threads, so what no event orders is a race between them.
#if defined(__SANITIZE_THREAD__)
constexpr bool unordered_work_is_reported = true;
#else
constexpr bool unordered_work_is_reported = false;
#endif

class FakeOrder : public Driver {
 protected:
  void SetUp() override {
    Driver::SetUp();
    at = allocated(bytes);
    ASSERT_EQ(cuMemsetD8_v2(at, 1, bytes), CUDA_OK);
    ASSERT_EQ(cuMemHostRegister_v2(host.at, bytes, 0), CUDA_OK);
  }

  CudaPointer at = 0;
  Pages host{bytes};
};

// Stores 2 in one stream, and copies to the host in another: whether every byte was 2.
bool copy_sees_all(CudaPointer at, Pages& host, CudaStreamHandle first, CudaStreamHandle second,
                   CudaEventHandle between) {
  EXPECT_EQ(cuMemsetD8_v2(at, 1, bytes), CUDA_OK);
  EXPECT_EQ(cuMemsetD8Async(at, 2, bytes, first), CUDA_OK);
  if (between != nullptr) {
    EXPECT_EQ(cuEventRecord(between, first), CUDA_OK);
    EXPECT_EQ(cuStreamWaitEvent(second, between, 0), CUDA_OK);
  }
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(host.at, at, bytes, second), CUDA_OK);
  EXPECT_EQ(cuStreamSynchronize(second), CUDA_OK);
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_OK);
  for (std::size_t i = 0; i < bytes; i++) {
    if (host[i] != 2) return false;
  }
  return true;
}

TEST_F(FakeOrder, what_an_event_orders_comes_out_right) {
  const CudaStreamHandle first = new_stream();
  const CudaStreamHandle second = new_stream();
  const CudaEventHandle event = new_event();
  for (int i = 0; i < 100; i++) EXPECT_TRUE(copy_sees_all(at, host, first, second, event));
}

TEST_F(FakeOrder, what_no_event_orders_comes_out_wrong) {
  if (unordered_work_is_reported) GTEST_SKIP() << "ThreadSanitizer ends the program for it";
  const CudaStreamHandle first = new_stream();
  const CudaStreamHandle second = new_stream();
  int tries = 1;
  while (copy_sees_all(at, host, first, second, nullptr)) ASSERT_LT(++tries, 10'000);
}

TEST_F(FakeOrder, an_event_is_what_was_recorded_when_it_was_waited_for) {
  const CudaStreamHandle first = new_stream();
  const CudaStreamHandle second = new_stream();
  const CudaEventHandle event = new_event();
  EXPECT_EQ(cuStreamWaitEvent(second, event, 0), CUDA_OK) << "never recorded: no wait";
  EXPECT_EQ(cuStreamSynchronize(second), CUDA_OK);
  EXPECT_EQ(cuEventQuery(event), CUDA_OK);
  fake_cuda_hold();
  EXPECT_EQ(cuEventRecord(event, first), CUDA_OK);
  EXPECT_EQ(cuEventQuery(event), CUDA_NOT_READY);
  EXPECT_EQ(cuStreamQuery(first), CUDA_NOT_READY);
  fake_cuda_go_on();
  EXPECT_EQ(cuEventSynchronize(event), CUDA_OK);
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_OK);
  EXPECT_EQ(cuEventQuery(event), CUDA_OK);
  EXPECT_EQ(cuStreamQuery(first), CUDA_OK);
}

TEST_F(FakeOrder, a_copy_to_registered_memory_is_not_waited_for) {
  const CudaStreamHandle stream = new_stream();
  fake_cuda_hold();
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(host.at, at, bytes, stream), CUDA_OK);
  EXPECT_EQ(host[0], 0);
  EXPECT_EQ(host[bytes - 1], 0);
  fake_cuda_go_on();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_OK);
  EXPECT_EQ(host[0], 1);
  EXPECT_EQ(host[bytes - 1], 1);
}

TEST_F(FakeOrder, a_copy_to_other_memory_of_the_host_is_waited_for) {
  const CudaStreamHandle stream = new_stream();
  std::vector<unsigned char> to(bytes, 0);
  std::atomic<bool> returned = false;
  fake_cuda_hold();
  std::thread other([&] {
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_OK);
    EXPECT_EQ(cuMemcpyDtoHAsync_v2(to.data(), at, bytes, stream), CUDA_OK);
    returned = true;
    EXPECT_EQ(to[bytes - 1], 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(returned);
  fake_cuda_go_on();
  other.join();
}

TEST_F(FakeOrder, a_device_reads_registered_memory_late_and_other_memory_at_once) {
  const CudaStreamHandle stream = new_stream();
  std::vector<unsigned char> from(bytes, 5);
  const CudaPointer second = allocated(bytes);
  std::memset(host.at, 5, bytes);
  fake_cuda_hold();
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(at, host.at, bytes, stream), CUDA_OK);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(second, from.data(), bytes, stream), CUDA_OK);
  std::memset(host.at, 6, bytes);
  std::memset(from.data(), 6, bytes);
  fake_cuda_go_on();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_OK);
  EXPECT_EQ(seen(at), 6);
  EXPECT_EQ(seen(second), 5);
}

TEST_F(FakeOrder, the_null_stream_is_in_order_with_streams_that_block_with_it) {
  const CudaStreamHandle blocking = new_stream(0);
  for (int i = 0; i < 50; i++) {
    EXPECT_TRUE(copy_sees_all(at, host, blocking, nullptr, nullptr));
    EXPECT_TRUE(copy_sees_all(at, host, nullptr, blocking, nullptr));
  }
  if (unordered_work_is_reported) return;
  const CudaStreamHandle free = new_stream();
  int tries = 1;
  while (copy_sees_all(at, host, free, nullptr, nullptr)) ASSERT_LT(++tries, 10'000);
}

TEST_F(FakeOrder, a_stream_that_is_destroyed_ends_its_work) {
  const CudaStreamHandle stream = new_stream();
  fake_cuda_hold();
  EXPECT_EQ(cuMemsetD8Async(at, 9, bytes, stream), CUDA_OK);
  const CudaEventHandle event = new_event();
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_OK);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_OK);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_INVALID_HANDLE);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_INVALID_HANDLE);
  EXPECT_EQ(fake_cuda_streams(), 0U);
  fake_cuda_go_on();
  EXPECT_EQ(cuEventSynchronize(event), CUDA_OK);
  EXPECT_EQ(seen(at + bytes - 1), 9);
}

TEST_F(FakeOrder, memory_is_given_back_after_what_is_done_with_it) {
  const CudaStreamHandle stream = new_stream();
  for (int i = 0; i < 20; i++) {
    const CudaPointer other = allocated(bytes);
    EXPECT_EQ(cuMemcpyDtoDAsync_v2(other, at, bytes, stream), CUDA_OK);
    EXPECT_EQ(cuMemcpyDtoHAsync_v2(host.at, other, bytes, stream), CUDA_OK);
    EXPECT_EQ(cuMemFree_v2(other), CUDA_OK);
    EXPECT_EQ(host[bytes - 1], 1);
  }
}

// ---- Captures

class FakeCapture : public FakeOrder {};

TEST_F(FakeCapture, work_of_a_captured_stream_is_not_done) {
  const CudaStreamHandle stream = new_stream();
  int status = 9;
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_OK);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 2), CUDA_OK);
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_OK);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(cuMemsetD8Async(at, 7, bytes, stream), CUDA_OK);
  CudaGraphHandle graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_OK);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_OK);
  EXPECT_EQ(seen(at), 1);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_OK);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ILLEGAL_STATE);
}

TEST_F(FakeCapture, waiting_for_a_captured_stream_spoils_the_capture) {
  const CudaStreamHandle stream = new_stream();
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 2), CUDA_OK);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_CAPTURE_UNSUPPORTED);
  int status = 0;
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_OK);
  EXPECT_EQ(status, 2);
  EXPECT_EQ(cuMemsetD8Async(at, 7, bytes, stream), CUDA_CAPTURE_INVALIDATED);
  CudaGraphHandle graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuMemsetD8Async(at, 7, bytes, stream), CUDA_OK);
}

TEST_F(FakeCapture, a_global_one_forbids_unsafe_calls_to_all_threads) {
  const CudaStreamHandle stream = new_stream();
  CudaGraphHandle graph = nullptr;
  for (int mode = 0; mode < 3; mode++) {
    ASSERT_EQ(cuStreamBeginCapture_v2(stream, mode), CUDA_OK);
    std::thread([&] {
      EXPECT_EQ(cuCtxSetCurrent(context), CUDA_OK);
      CudaPointer got = 0;
      EXPECT_EQ(cuMemAlloc_v2(&got, 100), mode == 0 ? CUDA_CAPTURE_UNSUPPORTED : CUDA_OK);
    }).join();
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), mode == 0 ? CUDA_CAPTURE_INVALIDATED : CUDA_OK);
  }
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 1), CUDA_OK);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_CAPTURE_UNSUPPORTED) << "by the thread itself";
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_CAPTURE_INVALIDATED);
}

TEST_F(FakeCapture, an_event_takes_another_stream_into_it) {
  const CudaStreamHandle stream = new_stream();
  const CudaStreamHandle second = new_stream();
  const CudaEventHandle event = new_event();
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 2), CUDA_OK);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_OK);
  EXPECT_EQ(cuStreamWaitEvent(second, event, 0), CUDA_OK);
  int status = 0;
  EXPECT_EQ(cuStreamIsCapturing(second, &status), CUDA_OK);
  EXPECT_EQ(status, 1);
  CudaGraphHandle graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(second, &graph), CUDA_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_CAPTURED_EVENT);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamIsCapturing(second, &status), CUDA_OK);
  EXPECT_EQ(status, 0);
}

TEST_F(FakeCapture, an_event_of_before_is_no_part_of_it) {
  const CudaStreamHandle stream = new_stream();
  const CudaStreamHandle second = new_stream();
  const CudaEventHandle event = new_event();
  EXPECT_EQ(cuEventRecord(event, second), CUDA_OK);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 2), CUDA_OK);
  EXPECT_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_CAPTURE_ISOLATION);
  CudaGraphHandle graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_CAPTURE_INVALIDATED);
}

TEST_F(FakeCapture, the_null_stream_would_wait_for_a_captured_one) {
  const CudaStreamHandle blocking = new_stream(0);
  ASSERT_EQ(cuStreamBeginCapture_v2(blocking, 2), CUDA_OK);
  EXPECT_EQ(cuMemsetD8Async(at, 7, bytes, nullptr), CUDA_CAPTURE_IMPLICIT);
  int status = 0;
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &status), CUDA_CAPTURE_IMPLICIT);
  CudaGraphHandle graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(blocking, &graph), CUDA_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, 2), CUDA_CAPTURE_UNSUPPORTED);
}

}  // namespace
}  // namespace fake
