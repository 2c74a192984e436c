// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the fake driver share: two devices, the first one's context current, and all
// given back after each test.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda_driver.h"
#include "fake_cuda.h"

namespace fake {

class Driver : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("FAKE_CUDA_DEVICES", "2", 0);
    ASSERT_EQ(cuInit(0), CUDA_OK);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_OK);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_OK);
  }
  void TearDown() override {
    fake_cuda_go_on();
    fake_cuda_fail(nullptr, 0, 0, 0);
    fake_cuda_set_bytes(std::uint64_t{1} << 30U);
    cuDevicePrimaryCtxReset_v2(0);
    cuDevicePrimaryCtxReset_v2(1);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_OK);
    EXPECT_EQ(fake_cuda_device_bytes(), 0U);
    EXPECT_EQ(fake_cuda_registrations(), 0U);
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_OK);
  }

  static CudaPointer allocated(std::size_t size_bytes) {
    CudaPointer at = 0;
    EXPECT_EQ(cuMemAlloc_v2(&at, size_bytes), CUDA_OK);
    return at;
  }
  static CudaStreamHandle new_stream(unsigned flags = CUDA_STREAM_NON_BLOCKING) {
    CudaStreamHandle stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, flags), CUDA_OK);
    return stream;
  }
  static CudaEventHandle new_event() {
    CudaEventHandle event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING), CUDA_OK);
    return event;
  }
  static unsigned char seen(CudaPointer at) {
    return *static_cast<const unsigned char*>(fake_cuda_see(at));
  }

  CudaContextHandle context = nullptr;
};

// A mapping of whole pages, until it goes out of scope.
class Pages {
 public:
  explicit Pages(std::size_t bytes, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1,
                 int access = PROT_READ | PROT_WRITE)
      : size_bytes(bytes), at(::mmap(nullptr, bytes, access, flags, file, 0)) {
    EXPECT_NE(at, MAP_FAILED);
  }
  ~Pages() { unmap(); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void unmap() {
    if (at != nullptr) ::munmap(at, size_bytes);
    at = nullptr;
  }
  unsigned char& operator[](std::size_t i) { return static_cast<unsigned char*>(at)[i]; }

  std::size_t size_bytes;
  void* at;
};

}  // namespace fake
