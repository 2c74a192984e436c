// SPDX-License-Identifier: BSD-3-Clause
//
// Fake GPU: the driver of tests/gpu in this process, as a program on a GPU has the real one: with a
// context, streams of its own, and memory that only the driver's calls reach.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace perdure {

class FakeGpu {
 public:
  using Address = std::uint64_t;

  // Loads the driver, once in a process, and makes the context of its device current here.
  FakeGpu() {
    library_ = ::dlopen(PERDURE_FAKE_GPU, RTLD_NOW | RTLD_GLOBAL);
    EXPECT_NE(library_, nullptr) << ::dlerror();
    check(call<int(unsigned)>("cuInit")(0));
    check(call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, 0));
    check(call<int(void*)>("cuCtxSetCurrent")(context_));
  }
  ~FakeGpu() {
    for (const Address at : memory_) (void)call<int(Address)>("cuMemFree_v2")(at);
    for (void* const at : pinned_) (void)call<int(void*)>("cuMemFreeHost")(at);
    (void)call<int(int)>("cuDevicePrimaryCtxRelease_v2")(0);
  }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  template <typename Call>
  Call* call(const char* name) const {
    void* const found = ::dlsym(library_, name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Call*>(found);
  }

  std::byte* allocate(std::uint64_t bytes) {
    Address at = 0;
    check(call<int(Address*, std::size_t)>("cuMemAlloc_v2")(&at, bytes));
    memory_.push_back(at);
    return pointer(at);
  }
  std::byte* allocate_managed(std::uint64_t bytes) {
    Address at = 0;
    check(call<int(Address*, std::size_t, unsigned)>("cuMemAllocManaged")(&at, bytes, 1));
    memory_.push_back(at);
    return pointer(at);
  }
  std::byte* allocate_pinned(std::uint64_t bytes) {
    void* at = nullptr;
    check(call<int(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&at, bytes, 0));
    pinned_.push_back(at);
    return static_cast<std::byte*>(at);
  }
  void free(std::byte* memory) {
    std::erase(memory_, address(memory));
    check(call<int(Address)>("cuMemFree_v2")(address(memory)));
  }

  void* make_stream() const {
    void* stream = nullptr;
    check(call<int(void**, unsigned, int)>("cuStreamCreateWithPriority")(&stream, 1, 0));
    return stream;
  }
  void synchronise(void* stream = nullptr) const {
    check(call<int(void*)>("cuStreamSynchronize")(stream));
  }

  // In the order of the stream; `from` must stay until synchronise().
  void store(std::byte* to, const void* from, std::uint64_t bytes, void* stream) const {
    check(call<int(Address, const void*, std::size_t, void*)>("cuMemcpyHtoDAsync_v2")(
        address(to), from, bytes, stream));
  }
  // At once.
  template <typename T>
  void write(std::byte* to, const std::vector<T>& from) const {
    store(to, from.data(), from.size() * sizeof(T), nullptr);
    synchronise();
  }
  template <typename T>
  std::vector<T> read(const std::byte* from, std::size_t count) const {
    std::vector<T> to(count);
    check(call<int(void*, Address, std::size_t, void*)>("cuMemcpyDtoHAsync_v2")(
        to.data(), address(from), count * sizeof(T), nullptr));
    synchronise();
    return to;
  }

  static Address address(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }
  static std::byte* pointer(Address at) { return reinterpret_cast<std::byte*>(at); }
  static void check(int result) { EXPECT_EQ(result, 0); }

 private:
  void* library_ = nullptr;
  void* context_ = nullptr;
  std::vector<Address> memory_;
  std::vector<void*> pinned_;
};

}  // namespace perdure
