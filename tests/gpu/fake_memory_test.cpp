// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that the fake driver knows: what the real one refuses is refused, and what a processor
// cannot access here neither.
// ctest: NAME gpu_fake_test
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "address.hpp"
#include "fake_test.hpp"

namespace fake {
namespace {

constexpr std::size_t page = 4096;

class FakeMemory : public Driver {};

TEST_F(FakeMemory, of_a_device_is_out_of_the_processors_reach) {
  const CudaPointer at = allocated(page);
  unsigned char byte = 0;
  iovec here = {&byte, 1};
  iovec there = {at_address(at), 1};
  EXPECT_EQ(::process_vm_readv(::getpid(), &here, 1, &there, 1, 0), -1);
  EXPECT_EQ(::process_vm_writev(::getpid(), &here, 1, &there, 1, 0), -1);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    ::_exit(*static_cast<volatile std::byte*>(at_address(at)) != std::byte{0} ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
}

TEST_F(FakeMemory, of_a_device_is_not_zero_when_it_is_new) {
  EXPECT_NE(seen(allocated(100)), 0);
}

TEST_F(FakeMemory, what_is_copied_to_a_device_comes_back) {
  const CudaPointer at = allocated(100'000);
  std::vector<unsigned char> bytes(100'000);
  for (std::size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<unsigned char>(i * 7);
  std::vector<unsigned char> back(bytes.size());
  ASSERT_EQ(cuMemcpyHtoD_v2(at, bytes.data(), bytes.size()), CUDA_OK);
  ASSERT_EQ(cuMemcpyDtoH_v2(back.data(), at, back.size()), CUDA_OK);
  EXPECT_EQ(back, bytes);
}

TEST_F(FakeMemory, no_more_of_a_device_than_it_has) {
  fake_cuda_set_bytes(10 * page);
  const CudaPointer first = allocated(6 * page);
  CudaPointer second = 0;
  EXPECT_EQ(cuMemAlloc_v2(&second, 5 * page), CUDA_OUT_OF_MEMORY);
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &all_bytes), CUDA_OK);
  EXPECT_EQ(free_bytes, 4 * page);
  EXPECT_EQ(all_bytes, 10 * page);
  EXPECT_EQ(cuMemFree_v2(first), CUDA_OK);
  EXPECT_EQ(cuMemAlloc_v2(&second, 5 * page), CUDA_OK);
  EXPECT_EQ(cuMemFree_v2(second + 256), CUDA_INVALID_VALUE);
}

TEST_F(FakeMemory, no_copy_goes_beyond_one_allocation) {
  const CudaPointer at = allocated(page);
  std::vector<unsigned char> bytes(2 * page);
  EXPECT_EQ(cuMemcpyHtoD_v2(at, bytes.data(), page + 1), CUDA_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(bytes.data(), at + 1, page), CUDA_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(at, reinterpret_cast<CudaPointer>(bytes.data()), 1, nullptr),
            CUDA_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(at_address(at), at, 1), CUDA_INVALID_VALUE);
}

TEST_F(FakeMemory, pages_are_registered_once) {
  Pages pages(8 * page);
  EXPECT_EQ(cuMemHostRegister_v2(&pages[0], 3 * page, 0), CUDA_OK);
  EXPECT_EQ(cuMemHostRegister_v2(&pages[2 * page], 3 * page, 0), CUDA_ALREADY_REGISTERED);
  // Another part of a page that is registered is the same page.
  EXPECT_EQ(cuMemHostRegister_v2(&pages[5 * page + 100], 50, 0), CUDA_OK) << "an odd address";
  EXPECT_EQ(cuMemHostRegister_v2(&pages[5 * page + 200], 50, 0), CUDA_ALREADY_REGISTERED);
  EXPECT_EQ(cuMemHostUnregister(&pages[page]), CUDA_NOT_REGISTERED);
  EXPECT_EQ(cuMemHostUnregister(&pages[0]), CUDA_OK);
  EXPECT_EQ(cuMemHostUnregister(&pages[0]), CUDA_NOT_REGISTERED);
  EXPECT_EQ(cuMemHostUnregister(&pages[5 * page + 100]), CUDA_OK);
}

TEST_F(FakeMemory, what_is_not_mapped_is_not_registered) {
  Pages pages(4 * page);
  ASSERT_EQ(::munmap(&pages[page], page), 0);
  EXPECT_EQ(cuMemHostRegister_v2(&pages[0], 4 * page, 0), CUDA_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister_v2(&pages[2 * page], 2 * page, 0), CUDA_OK);
  EXPECT_EQ(cuMemHostUnregister(&pages[2 * page]), CUDA_OK);
}

TEST_F(FakeMemory, a_read_only_mapping_is_registered_as_such_alone) {
  Pages pages(2 * page, MAP_PRIVATE | MAP_ANONYMOUS, -1, PROT_READ);
  EXPECT_EQ(cuMemHostRegister_v2(pages.at, 2 * page, 0), CUDA_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister_v2(pages.at, 2 * page, CUDA_REGISTER_READ_ONLY), CUDA_OK);
  const CudaPointer at = allocated(page);
  EXPECT_EQ(cuMemcpyHtoD_v2(at, pages.at, page), CUDA_OK);
  EXPECT_EQ(seen(at), 0);
  EXPECT_EQ(cuMemcpyDtoH_v2(pages.at, at, page), CUDA_INVALID_VALUE);
  EXPECT_EQ(cuMemHostUnregister(pages.at), CUDA_OK);
}

TEST_F(FakeMemory, a_file_of_a_disk_is_not_registered) {
  char name[] = "fake_memory_test.XXXXXX";
  const int file = ::mkstemp(name);
  ASSERT_GE(file, 0);
  struct statfs system{};
  ::fstatfs(file, &system);
  ASSERT_EQ(::ftruncate(file, page), 0);
  Pages pages(page, MAP_SHARED, file);
  const int code = cuMemHostRegister_v2(pages.at, page, 0);
  ::close(file);
  ::unlink(name);
  if (system.f_type == TMPFS_MAGIC) {
    EXPECT_EQ(cuMemHostUnregister(pages.at), CUDA_OK);
    GTEST_SKIP() << "the working directory is in memory";
  }
  EXPECT_EQ(code, CUDA_INVALID_VALUE);
}

// The pages were pinned: a device neither asks the page tables nor leaves a trace in them.
TEST_F(FakeMemory, a_device_stores_to_registered_pages_whatever_their_protection) {
  const int file = ::memfd_create("pages", 0);
  ASSERT_EQ(::ftruncate(file, 2 * page), 0);
  Pages of_file(2 * page, MAP_SHARED, file);
  Pages of_program(2 * page);
  ::close(file);
  const CudaPointer at = allocated(2 * page);
  ASSERT_EQ(cuMemsetD8_v2(at, 0x55, 2 * page), CUDA_OK);
  for (Pages* const pages : {&of_file, &of_program}) {
    ASSERT_EQ(cuMemHostRegister_v2(pages->at, 2 * page, 0), CUDA_OK);
    ASSERT_EQ(::mprotect(pages->at, 2 * page, PROT_READ), 0);
    EXPECT_EQ(cuMemcpyDtoH_v2(pages->at, at, 2 * page), CUDA_OK);
    EXPECT_EQ((*pages)[2 * page - 1], 0x55);
    EXPECT_EQ(cuMemHostUnregister(pages->at), CUDA_OK);
  }
}

TEST_F(FakeMemory, pages_that_went_while_registered_make_the_next_allocation_fail) {
  const int file = ::memfd_create("pages", 0);
  ASSERT_EQ(::ftruncate(file, 2 * page), 0);
  Pages pages(2 * page, MAP_SHARED, file);
  ASSERT_EQ(cuMemHostRegister_v2(pages.at, 2 * page, 0), CUDA_OK);
  void* const at = pages.at;
  pages.unmap();
  CudaPointer got = 0;
  EXPECT_EQ(cuMemAlloc_v2(&got, page), CUDA_ALREADY_MAPPED);
  EXPECT_EQ(cuMemHostUnregister(at), CUDA_OK);
  EXPECT_EQ(cuMemAlloc_v2(&got, page), CUDA_OK);
  ::close(file);
}

TEST_F(FakeMemory, another_file_in_the_place_of_registered_pages_is_seen_as_well) {
  const int first = ::memfd_create("pages", 0);
  const int second = ::memfd_create("others", 0);
  ASSERT_EQ(::ftruncate(first, page), 0);
  ASSERT_EQ(::ftruncate(second, page), 0);
  Pages pages(page, MAP_SHARED, first);
  ASSERT_EQ(cuMemHostRegister_v2(pages.at, page, 0), CUDA_OK);
  ASSERT_EQ(::mmap(pages.at, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, second, 0),
            pages.at);
  CudaPointer got = 0;
  EXPECT_EQ(cuMemAlloc_v2(&got, page), CUDA_ALREADY_MAPPED);
  EXPECT_EQ(cuMemHostUnregister(pages.at), CUDA_OK);
  ::close(first);
  ::close(second);
}

TEST_F(FakeMemory, a_copy_across_two_registrations_is_refused) {
  Pages pages(4 * page);
  ASSERT_EQ(cuMemHostRegister_v2(&pages[0], 2 * page, 0), CUDA_OK);
  ASSERT_EQ(cuMemHostRegister_v2(&pages[2 * page], 2 * page, 0), CUDA_OK);
  const CudaPointer at = allocated(4 * page);
  EXPECT_EQ(cuMemcpyDtoH_v2(pages.at, at, 4 * page), CUDA_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(&pages[2 * page], at, 2 * page), CUDA_OK);
  EXPECT_EQ(cuMemHostUnregister(&pages[2 * page]), CUDA_OK);
  EXPECT_EQ(cuMemcpyDtoH_v2(&pages[page], at, 2 * page), CUDA_INVALID_VALUE) << "half registered";
  EXPECT_EQ(cuMemHostUnregister(&pages[0]), CUDA_OK);
}

TEST_F(FakeMemory, registering_can_be_refused_altogether) {
  Pages pages(page);
  fake_cuda_set_no_registering(1);
  EXPECT_EQ(cuMemHostRegister_v2(pages.at, page, 0), CUDA_INVALID_VALUE);
  fake_cuda_set_no_registering(0);
}

template <typename T>
T attribute(int which, CudaPointer at) {
  T value{};
  EXPECT_EQ(cuPointerGetAttribute(&value, which, at), CUDA_OK);
  return value;
}

TEST_F(FakeMemory, a_pointer_says_what_it_is) {
  const CudaPointer device = allocated(1000);
  CudaPointer managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, 1000, 1), CUDA_OK);
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 1000, 0), CUDA_OK);
  const auto pinned = reinterpret_cast<CudaPointer>(host);
  for (const CudaPointer at : {device, managed, pinned}) {
    EXPECT_EQ(attribute<CudaContextHandle>(CUDA_POINTER_CONTEXT, at), context);
    EXPECT_EQ(attribute<CudaPointer>(CUDA_POINTER_RANGE_START, at + 999), at);
    EXPECT_EQ(attribute<std::size_t>(CUDA_POINTER_RANGE_SIZE, at), 1000U);
    EXPECT_EQ(attribute<int>(CUDA_POINTER_DEVICE_ORDINAL, at), 0);
    EXPECT_EQ(attribute<unsigned>(CUDA_POINTER_IS_MANAGED, at), at == managed ? 1U : 0U);
    EXPECT_EQ(attribute<unsigned>(CUDA_POINTER_MEMORY_TYPE, at),
              static_cast<unsigned>(at == pinned ? CUDA_MEMORY_OF_HOST : CUDA_MEMORY_OF_DEVICE));
  }
  *at_address(managed) = std::byte{3};  // the processor may
  EXPECT_EQ(seen(managed), 3);
  unsigned kind = 0;
  EXPECT_EQ(cuPointerGetAttribute(&kind, CUDA_POINTER_MEMORY_TYPE, device + 1000),
            CUDA_INVALID_VALUE);
  EXPECT_EQ(
      cuPointerGetAttribute(&kind, CUDA_POINTER_MEMORY_TYPE, reinterpret_cast<CudaPointer>(&kind)),
      CUDA_INVALID_VALUE);
  fake_cuda_set_null_context(1);
  EXPECT_EQ(attribute<CudaContextHandle>(CUDA_POINTER_CONTEXT, device), nullptr);
  fake_cuda_set_null_context(0);
}

}  // namespace
}  // namespace fake
