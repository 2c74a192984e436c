// SPDX-License-Identifier: BSD-3-Clause
//
// What the fake driver refuses, fails and dies of; and kernels, which it runs from their text.
// ctest: NAME gpu_fake_test
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "base/data_checksum.hpp"
#include "fake_test.hpp"
#include "source_tree.hpp"
#include "test_seed.hpp"

namespace fake {
namespace {

constexpr std::size_t block = 65536;

std::string kernels_text() {
  std::ifstream file(perdure::source_file("src/device/kernels.ptx"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class FakeErrors : public Driver {
 protected:
  CudaFunctionHandle kernel(const char* name) {
    CudaModuleHandle module = nullptr;
    CudaFunctionHandle function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, kernels_text().c_str()), CUDA_OK);
    EXPECT_EQ(cuModuleGetFunction(&function, module, name), CUDA_OK);
    return function;
  }
  static int launch(CudaFunctionHandle function, CudaStreamHandle stream, CudaPointer data,
                    CudaPointer sums, std::uint64_t units, unsigned threads = 256) {
    void* arguments[] = {&data, &sums, &units};
    return cuLaunchKernel(function, 2, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
  }
};

TEST_F(FakeErrors, kernels_run_from_their_text_in_the_order_of_their_stream) {
  std::mt19937_64 random(perdure::test_seed());
  std::vector<std::uint64_t> words(20 * block / 8);
  for (auto& word : words) word = random();
  const CudaStreamHandle stream = new_stream();
  const CudaPointer data = allocated(20 * block);
  const CudaPointer sums = allocated(std::size_t{20} * 8);
  ASSERT_EQ(cuMemcpyHtoDAsync_v2(data, words.data(), 20 * block, stream), CUDA_OK);
  ASSERT_EQ(launch(kernel("perdure_block_sums"), stream, data, sums, 20), CUDA_OK);
  std::vector<std::uint64_t> got(20);
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(got.data(), sums, 160, stream), CUDA_OK);
  for (std::size_t i = 0; i < got.size(); i++) {
    EXPECT_EQ(got[i], perdure::data_checksum(perdure::DataChecksum::xxh3,
                                             words.data() + i * block / 8, block));
  }
}

TEST_F(FakeErrors, a_text_that_is_no_module_is_refused) {
  CudaModuleHandle module = nullptr;
  CudaFunctionHandle function = nullptr;
  std::string text = kernels_text();
  text.replace(text.find("shfl.sync.bfly"), 14, "shfl.sync.down");
  EXPECT_EQ(cuModuleLoadData(&module, text.c_str()), CUDA_INVALID_PTX);
  ASSERT_EQ(cuModuleLoadData(&module, kernels_text().c_str()), CUDA_OK);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "perdure_none"), CUDA_NOT_FOUND);
  EXPECT_EQ(cuModuleUnload(module), CUDA_OK);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "perdure_store"), CUDA_INVALID_HANDLE);
}

TEST_F(FakeErrors, an_illegal_access_of_a_kernel_loses_the_context) {
  const CudaPointer data = allocated(block);
  const CudaPointer sums = allocated(8);
  const CudaFunctionHandle function = kernel("perdure_block_sums");
  EXPECT_EQ(launch(function, nullptr, data, sums, 1, 512), CUDA_INVALID_VALUE) << "too many";
  EXPECT_EQ(launch(function, nullptr, data, sums, 2), CUDA_OK) << "it is seen later";
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ILLEGAL_ADDRESS);
  CudaPointer got = 0;
  EXPECT_EQ(cuMemAlloc_v2(&got, 8), CUDA_ILLEGAL_ADDRESS) << "and so is every call from then on";
  EXPECT_EQ(cuMemFree_v2(data), CUDA_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_OK);
  EXPECT_EQ(cuMemAlloc_v2(&got, 8), CUDA_OK);
}

TEST_F(FakeErrors, an_address_between_words_does_too) {
  const CudaPointer data = allocated(2 * block);
  const CudaPointer sums = allocated(8);
  EXPECT_EQ(launch(kernel("perdure_block_sums"), nullptr, data + 8, sums, 1), CUDA_OK);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_MISALIGNED_ADDRESS);
}

TEST_F(FakeErrors, a_kernel_reaches_no_memory_of_the_host_that_is_not_registered) {
  Pages pages(block);
  const CudaPointer sums = allocated(8);
  const auto at = reinterpret_cast<CudaPointer>(pages.at);
  const CudaFunctionHandle function = kernel("perdure_block_sums");
  ASSERT_EQ(cuMemHostRegister_v2(pages.at, block, 0), CUDA_OK);
  EXPECT_EQ(launch(function, nullptr, at, sums, 1), CUDA_OK);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_OK);
  EXPECT_EQ(cuMemHostUnregister(pages.at), CUDA_OK);
  EXPECT_EQ(launch(function, nullptr, at, sums, 1), CUDA_OK);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ILLEGAL_ADDRESS);
}

TEST_F(FakeErrors, work_after_a_lost_context_is_not_done) {
  const CudaStreamHandle stream = new_stream();
  const CudaEventHandle event = new_event();
  const CudaPointer at = allocated(100);
  ASSERT_EQ(cuMemsetD8_v2(at, 1, 100), CUDA_OK);
  fake_cuda_hold();
  EXPECT_EQ(cuMemsetD8Async(at, 2, 100, stream), CUDA_OK);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_OK);
  fake_cuda_break(0, CUDA_ILLEGAL_ADDRESS);
  fake_cuda_go_on();
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ILLEGAL_ADDRESS);
  EXPECT_EQ(seen(at), 1);
}

TEST_F(FakeErrors, without_a_current_context_there_is_nothing) {
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_OK);
  CudaPointer got = 0;
  CudaStreamHandle stream = nullptr;
  EXPECT_EQ(cuMemAlloc_v2(&got, 8), CUDA_INVALID_CONTEXT);
  EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxPushCurrent_v2(context), CUDA_OK);
  EXPECT_EQ(cuMemAlloc_v2(&got, 8), CUDA_OK);
}

TEST_F(FakeErrors, what_belongs_to_another_context_is_refused_but_for_copies) {
  const CudaPointer data = allocated(block);
  const CudaFunctionHandle function = kernel("perdure_block_sums");
  const CudaEventHandle event = new_event();
  CudaContextHandle second = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_OK);
  ASSERT_EQ(cuCtxPushCurrent_v2(second), CUDA_OK);
  const CudaStreamHandle stream = new_stream();
  const CudaPointer there = allocated(block);
  const CudaPointer sums = allocated(8);
  EXPECT_EQ(launch(function, stream, there, sums, 1), CUDA_INVALID_HANDLE) << "another's kernel";
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_INVALID_HANDLE);
  EXPECT_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_OK) << "to wait for another is allowed";
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(there, data, block, stream), CUDA_OK);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_OK);
  const CudaFunctionHandle own = kernel("perdure_block_sums");
  EXPECT_EQ(launch(own, stream, data, sums, 1), CUDA_OK);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ILLEGAL_ADDRESS) << "another's memory, in a kernel";
  EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_OK);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_OK) << "the first one is well";
  EXPECT_EQ(launch(function, stream, data, sums, 1), CUDA_INVALID_HANDLE) << "another's stream";
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(1), CUDA_OK);
}

TEST_F(FakeErrors, a_context_that_is_destroyed_takes_all_with_it) {
  CudaContextHandle made = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_OK);
  const CudaPointer at = allocated(100);
  const CudaStreamHandle stream = new_stream();
  const std::uint64_t before = fake_cuda_device_bytes();
  EXPECT_EQ(cuCtxPushCurrent_v2(made), CUDA_OK);
  EXPECT_EQ(cuCtxDestroy_v2(made), CUDA_OK);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_CONTEXT_DESTROYED) << "it is still below";
  EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_OK);
  EXPECT_EQ(fake_cuda_device_bytes(), before - 100);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_INVALID_HANDLE);
  EXPECT_EQ(fake_cuda_see(at), nullptr);
}

TEST_F(FakeErrors, the_nth_call_fails) {
  CudaPointer got = 0;
  fake_cuda_fail("cuMemAlloc_v2", 2, CUDA_OUT_OF_MEMORY, 0);
  EXPECT_EQ(cuMemAlloc_v2(&got, 8), CUDA_OK);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_OK);
  EXPECT_EQ(cuMemAlloc_v2(&got, 8), CUDA_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&got, 8), CUDA_OK);
  fake_cuda_fail(nullptr, 1, CUDA_ILLEGAL_ADDRESS, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemAlloc_v2(&got, 8), CUDA_ILLEGAL_ADDRESS);
  EXPECT_GE(fake_cuda_calls("cuMemAlloc_v2"), 4U);
  EXPECT_GT(fake_cuda_calls(nullptr), fake_cuda_calls("cuMemAlloc_v2"));
}

TEST_F(FakeErrors, a_child_process_has_no_driver) {
  const pid_t child = ::fork();
  if (child == 0) {
    CudaContextHandle got = nullptr;
    ::_exit(cuCtxGetCurrent(&got) == CUDA_NOT_INITIALISED && cuInit(0) == CUDA_NOT_INITIALISED);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST_F(FakeErrors, a_code_has_a_name_and_a_sentence) {
  const char* text = nullptr;
  EXPECT_EQ(cuGetErrorName(CUDA_ILLEGAL_ADDRESS, &text), CUDA_OK);
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(cuGetErrorString(CUDA_ALREADY_MAPPED, &text), CUDA_OK);
  EXPECT_STREQ(text, "resource already mapped");
  EXPECT_EQ(cuGetErrorName(12345, &text), CUDA_INVALID_VALUE);
}

// ---- In processes of their own, by the environment

class FakeProcess : public Driver {};

TEST_F(FakeProcess, DISABLED_copies_once) {
  const CudaPointer at = allocated(block);
  Pages pages(block, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_EQ(cuMemsetD8_v2(at, 3, block), CUDA_OK);
  EXPECT_EQ(cuMemHostRegister_v2(pages.at, block, 0), CUDA_OK);
  EXPECT_EQ(cuMemcpyDtoH_v2(pages.at, at, block), CUDA_OK);
  EXPECT_EQ(pages[block - 1], 3);
  EXPECT_EQ(cuMemHostUnregister(pages.at), CUDA_OK);
}

// The exit status of a shell that runs the test above with this in its environment.
int run_with(const std::string& environment) {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  const std::string words =
      environment + " FAKE_CUDA_QUIET=1 " + std::string(self, static_cast<std::size_t>(length)) +
      " --gtest_also_run_disabled_tests --gtest_filter='*copies_once' >/dev/null 2>&1";
  return WEXITSTATUS(std::system(words.c_str()));
}

struct Log {
  std::vector<std::string> names;
  std::vector<int> codes;
};
Log read_log(const std::string& path) {
  Log log;
  std::ifstream file(path);
  int process = 0;
  int number = 0;
  int code = 0;
  for (std::string name; file >> process >> number >> name >> code;) {
    EXPECT_EQ(static_cast<std::size_t>(number), log.names.size() + 1);
    log.names.push_back(name);
    log.codes.push_back(code);
  }
  return log;
}

TEST(FakeEnvironment, a_log_has_each_call_and_its_code) {
  const std::string path = "fake_errors_test." + std::to_string(::getpid());
  EXPECT_EQ(run_with("FAKE_CUDA_LOG=" + path), 0);
  const Log log = read_log(path);
  ::unlink(path.c_str());
  ASSERT_GT(log.names.size(), 8U);
  EXPECT_EQ(log.names[0], "cuInit");
  EXPECT_EQ(log.names[3], "cuMemAlloc_v2");
  EXPECT_EQ(std::count(log.codes.begin(), log.codes.end(), CUDA_OK),
            static_cast<std::ptrdiff_t>(log.codes.size()));
}

TEST(FakeEnvironment, the_process_is_killed_at_the_nth_call_or_in_the_nth_copy) {
  const std::string path = "fake_errors_test." + std::to_string(::getpid());
  for (const int at : {1, 4, 7}) {
    EXPECT_EQ(run_with("FAKE_CUDA_LOG=" + path + " FAKE_CUDA_KILL_AT=" + std::to_string(at)),
              128 + SIGKILL);
    EXPECT_EQ(read_log(path).names.size(), static_cast<std::size_t>(at) - 1);
    ::unlink(path.c_str());
  }
  EXPECT_EQ(run_with("FAKE_CUDA_KILL_COPY=1"), 128 + SIGKILL);
  EXPECT_EQ(run_with("FAKE_CUDA_KILL_COPY=2"), 0);
}

TEST(FakeEnvironment, the_nth_call_fails_and_what_follows_if_that_is_asked_for) {
  const std::string path = "fake_errors_test." + std::to_string(::getpid());
  EXPECT_EQ(run_with("FAKE_CUDA_LOG=" + path +
                     " FAKE_CUDA_FAIL_CALL=cuMemHostRegister_v2 FAKE_CUDA_FAIL_AT=1"
                     " FAKE_CUDA_FAIL_CODE=304"),
            1);
  Log log = read_log(path);
  ::unlink(path.c_str());
  const auto failed = std::find(log.codes.begin(), log.codes.end(), 304) - log.codes.begin();
  EXPECT_EQ(log.names.at(static_cast<std::size_t>(failed)), "cuMemHostRegister_v2");
  EXPECT_EQ(run_with("FAKE_CUDA_LOG=" + path + " FAKE_CUDA_FAIL_AT=5 FAKE_CUDA_FAIL_ON=1"), 1);
  log = read_log(path);
  ::unlink(path.c_str());
  EXPECT_EQ(log.codes.at(3), CUDA_OK);
  for (std::size_t i = 4; i < 8; i++) EXPECT_NE(log.codes.at(i), CUDA_OK) << i;
}

TEST(FakeEnvironment, without_a_device_there_is_no_driver_to_speak_of) {
  EXPECT_EQ(run_with("FAKE_CUDA_DEVICES=0"), 1);
}

}  // namespace
}  // namespace fake
