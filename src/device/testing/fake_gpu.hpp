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
#include <string>
#include <vector>

#include "device/program_stream.hpp"

namespace perdure {

class FakeGpu {
 public:
  using Address = std::uint64_t;

  // Loads the driver, once in a process, and takes the context of one of its two devices.
  explicit FakeGpu(int ordinal = 0) : ordinal_(ordinal) {
    ::setenv("FAKE_CUDA_DEVICES", "2", 1);
    const char* const other = std::getenv("FAKE_GPU_LIBRARY");  // that with the names of HIP
    library_ = ::dlopen(other != nullptr ? other : PERDURE_FAKE_GPU, RTLD_NOW | RTLD_GLOBAL);
    EXPECT_NE(library_, nullptr) << ::dlerror();
    check(call<int(unsigned)>("cuInit")(0));
    check(call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, ordinal));
  }
  ~FakeGpu() {
    for (const Address at : memory_) (void)call<int(Address)>("cuMemFree_v2")(at);
    for (void* const at : pinned_) (void)call<int(void*)>("cuMemFreeHost")(at);
    (void)call<int(int)>("cuDevicePrimaryCtxRelease_v2")(ordinal_);
  }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  bool is_hip() const { return ::dlsym(library_, "hipGetDevice") != nullptr; }
  ProgramStream named(void* stream) const {
    return {stream, is_hip() ? DriverKind::hip : DriverKind::cuda};
  }

  // In the context, whichever thread this is.
  template <typename Call>
  Call* call(const char* name) const {
    if (context_ != nullptr) look_up<int(void*)>("cuCtxSetCurrent")(context_);
    return look_up<Call>(name);
  }
  template <typename Call>
  Call* look_up(const char* name) const {
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

  // The `at`th call from now on, of that name unless it is null, fails; with a sticky failure the
  // context is lost. 0: none fails.
  void fail(const char* name, std::uint64_t at, int code, bool sticky = false) const {
    look_up<void(const char*, std::uint64_t, int, int)>("fake_cuda_fail")(name, at, code,
                                                                          sticky ? 1 : 0);
  }
  // As if a kernel of the program had made an illegal access.
  void break_context() const { look_up<void(int, int)>("fake_cuda_break")(0, 700); }
  // The kernel is taken and does nothing; null: none.
  void skip(const char* kernel) const { look_up<void(const char*)>("fake_cuda_skip")(kernel); }
  void set_no_registering(bool on) const {
    look_up<void(int)>("fake_cuda_set_no_registering")(on ? 1 : 0);
  }
  void set_null_context(bool on) const {
    look_up<void(int)>("fake_cuda_set_null_context")(on ? 1 : 0);
  }
  void set_other_addresses(bool on) const {
    look_up<void(int)>("fake_cuda_set_other_addresses")(on ? 1 : 0);
  }
  // No stream begins anything until go_on().
  void hold() const { look_up<void()>("fake_cuda_hold")(); }
  void go_on() const { look_up<void()>("fake_cuda_go_on")(); }
  // As much is left as there is now, and `bytes`.
  void leave(std::uint64_t bytes) const { set_bytes(held("device_bytes") + bytes); }
  void leave_enough() const { set_bytes(std::uint64_t{1} << 30U); }
  std::uint64_t calls(const char* name = nullptr) const {
    return look_up<std::uint64_t(const char*)>("fake_cuda_calls")(name);
  }
  // What is not given back: device_bytes, registrations, registered_bytes, streams, events.
  std::uint64_t held(const std::string& what) const {
    return look_up<std::uint64_t()>(("fake_cuda_" + what).c_str())();
  }

  static Address address(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }
  static std::byte* pointer(Address at) { return reinterpret_cast<std::byte*>(at); }
  static void check(int result) { EXPECT_EQ(result, 0); }

 private:
  void set_bytes(std::uint64_t bytes) const {
    look_up<void(std::uint64_t)>("fake_cuda_set_bytes")(bytes);
  }

  int ordinal_;
  void* library_ = nullptr;
  void* context_ = nullptr;
  std::vector<Address> memory_;
  std::vector<void*> pinned_;
};

}  // namespace perdure
