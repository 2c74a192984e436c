// SPDX-License-Identifier: BSD-3-Clause
//
// What a driver refuses, and with which code: run on the tests' driver, and by tools/gpu_check.sh
// on a real one, it shows where the two differ.
//
//     gpu_rules
//
// Prints a fact for each rule. Exits with 1 if a code is another one, with 3 and a sentence where
// there is no GPU. The last rules lose the context, so they come last.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "address.hpp"
#include "cuda_driver.h"
#include "source_tree.hpp"

namespace {

constexpr std::size_t page = 4096;
bool all_hold = true;

void expect(const char* rule, int got, int wanted) {
  const bool holds = got == wanted;
  all_hold = all_hold && holds;
  std::printf(R"({"bench": "gpu_check", "case": "%s", "metric": "code", "value": %d, "unit": "", )"
              R"("target": %d, "holds": %s})"
              "\n",
              rule, got, wanted, holds ? "true" : "false");
}

void* mapped(std::size_t bytes, int access = PROT_READ | PROT_WRITE,
             int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1) {
  void* const at = ::mmap(nullptr, bytes, access, flags, file, 0);
  if (at == MAP_FAILED) std::exit(2);
  return at;
}
void* past(void* at, std::size_t bytes) {
  return static_cast<char*>(at) + bytes;
}

CudaPointer allocated(std::size_t bytes) {
  CudaPointer at = 0;
  if (cuMemAlloc_v2(&at, bytes) != CUDA_OK) std::exit(2);
  return at;
}
CudaStreamHandle new_stream(unsigned flags = CUDA_STREAM_NON_BLOCKING) {
  CudaStreamHandle stream = nullptr;
  if (cuStreamCreate(&stream, flags) != CUDA_OK) std::exit(2);
  return stream;
}
CudaFunctionHandle kernel(const char* name) {
  std::ifstream file(perdure::source_file("src/device/kernels.ptx"));
  std::stringstream text;
  text << file.rdbuf();
  CudaModuleHandle module = nullptr;
  CudaFunctionHandle function = nullptr;
  if (cuModuleLoadData(&module, text.str().c_str()) != CUDA_OK) std::exit(2);
  expect("no such kernel", cuModuleGetFunction(&function, module, "perdure_none"), CUDA_NOT_FOUND);
  if (cuModuleGetFunction(&function, module, name) != CUDA_OK) std::exit(2);
  return function;
}
int launch(CudaFunctionHandle function, CudaStreamHandle stream, CudaPointer data, CudaPointer sums,
           std::uint64_t units) {
  void* arguments[] = {&data, &sums, &units};
  return cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr);
}

// ---- Registered memory

void registering() {
  void* const at = mapped(8 * page);
  expect("register", cuMemHostRegister_v2(at, 4 * page, 0), CUDA_OK);
  expect("register what overlaps", cuMemHostRegister_v2(past(at, 2 * page), 4 * page, 0),
         CUDA_ALREADY_REGISTERED);
  expect("register what touches", cuMemHostRegister_v2(past(at, 4 * page), 4 * page, 0), CUDA_OK);
  const CudaPointer device = allocated(8 * page);
  expect("copy across two registrations", cuMemcpyDtoH_v2(at, device, 8 * page),
         CUDA_INVALID_VALUE);
  expect("give back", cuMemHostUnregister(past(at, 4 * page)), CUDA_OK);
  expect("give back twice", cuMemHostUnregister(past(at, 4 * page)), CUDA_NOT_REGISTERED);
  expect("copy to half registered memory", cuMemcpyDtoH_v2(at, device, 8 * page),
         CUDA_INVALID_VALUE);
  expect("give back the rest", cuMemHostUnregister(at), CUDA_OK);
  expect("register nothing", cuMemHostRegister_v2(at, 0, 0), CUDA_INVALID_VALUE);
  ::munmap(at, 8 * page);
  expect("register what is not mapped", cuMemHostRegister_v2(at, 8 * page, 0), CUDA_INVALID_VALUE);
  void* const read_only = mapped(page, PROT_READ);
  expect("register a read-only mapping", cuMemHostRegister_v2(read_only, page, 0),
         CUDA_INVALID_VALUE);
  expect("register it as read-only", cuMemHostRegister_v2(read_only, page, CUDA_REGISTER_READ_ONLY),
         CUDA_OK);
  expect("give it back", cuMemHostUnregister(read_only), CUDA_OK);
  cuMemFree_v2(device);
}

void registering_files() {
  const int memory = ::memfd_create("gpu_rules", 0);
  if (::ftruncate(memory, 2 * page) != 0) std::exit(2);
  void* const at = mapped(2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, memory);
  const CudaPointer device = allocated(2 * page);
  expect("fill", cuMemsetD8_v2(device, 7, 2 * page), CUDA_OK);
  expect("register a file in memory", cuMemHostRegister_v2(at, 2 * page, 0), CUDA_OK);
  ::mprotect(at, 2 * page, PROT_READ);
  expect("copy to protected pages that were registered before", cuMemcpyDtoH_v2(at, device, page),
         CUDA_OK);
  unsigned char byte = 0;
  expect("and it is in the file", ::pread(memory, &byte, 1, 0) == 1 && byte == 7 ? 0 : 1, 0);
  cuMemHostUnregister(at);
  ::munmap(at, 2 * page);
  cuMemFree_v2(device);
  char name[] = "gpu_rules.XXXXXX";
  const int disk = ::mkstemp(name);
  struct statfs system{};
  if (disk < 0 || ::fstatfs(disk, &system) != 0 || ::ftruncate(disk, page) != 0) std::exit(2);
  ::unlink(name);
  if (system.f_type != TMPFS_MAGIC) {
    void* const on_disk = mapped(page, PROT_READ | PROT_WRITE, MAP_SHARED, disk);
    expect("register a file of a disk", cuMemHostRegister_v2(on_disk, page, 0), CUDA_INVALID_VALUE);
    ::munmap(on_disk, page);
  }
}

// ---- Pointers

void pointers() {
  const CudaPointer device = allocated(1000);
  unsigned kind = 0;
  CudaContextHandle context = nullptr;
  CudaPointer start = 0;
  std::size_t bytes = 0;
  expect("what a pointer is", cuPointerGetAttribute(&kind, CUDA_POINTER_MEMORY_TYPE, device),
         CUDA_OK);
  expect("it is of a device", static_cast<int>(kind), CUDA_MEMORY_OF_DEVICE);
  expect("whose", cuPointerGetAttribute(&context, CUDA_POINTER_CONTEXT, device), CUDA_OK);
  expect("from where", cuPointerGetAttribute(&start, CUDA_POINTER_RANGE_START, device + 999),
         CUDA_OK);
  expect("it begins there", start == device ? 0 : 1, 0);
  expect("how much", cuPointerGetAttribute(&bytes, CUDA_POINTER_RANGE_SIZE, device), CUDA_OK);
  expect("it is as large as was asked for", static_cast<int>(bytes), 1000);
  expect(
      "what a variable is",
      cuPointerGetAttribute(&kind, CUDA_POINTER_MEMORY_TYPE, reinterpret_cast<CudaPointer>(&kind)),
      CUDA_INVALID_VALUE);
  CudaPointer managed = 0;
  expect("managed memory", cuMemAllocManaged(&managed, 1000, 1), CUDA_OK);
  expect("what it is", cuPointerGetAttribute(&kind, CUDA_POINTER_MEMORY_TYPE, managed), CUDA_OK);
  expect("it is of a device too", static_cast<int>(kind), CUDA_MEMORY_OF_DEVICE);
  kind = 0;
  expect("is it managed", cuPointerGetAttribute(&kind, CUDA_POINTER_IS_MANAGED, managed), CUDA_OK);
  expect("it is managed", static_cast<int>(kind), 1);
  cuMemFree_v2(managed);
  std::uint64_t number = 0;
  std::uint64_t other = 0;
  expect("which allocation", cuPointerGetAttribute(&number, CUDA_POINTER_BUFFER_ID, device),
         CUDA_OK);
  cuMemFree_v2(device);
  const CudaPointer later = allocated(1000);  // perhaps at the same address
  expect("which a later one is", cuPointerGetAttribute(&other, CUDA_POINTER_BUFFER_ID, later),
         CUDA_OK);
  expect("it is another", number != other && number != 0 && other != 0 ? 0 : 1, 0);
  cuMemFree_v2(later);
}

// ---- Contexts and captures

void contexts(CudaContextHandle context) {
  CudaPointer at = 0;
  cuCtxSetCurrent(nullptr);
  expect("allocate without a context", cuMemAlloc_v2(&at, 100), CUDA_INVALID_CONTEXT);
  cuCtxSetCurrent(context);
  const CudaStreamHandle stream = new_stream();
  CudaEventHandle event = nullptr;
  CudaContextHandle other = nullptr;
  cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING);
  const CudaFunctionHandle function = kernel("perdure_page_sums");
  expect("another context", cuCtxCreate_v2(&other, 0, 0), CUDA_OK);
  const CudaStreamHandle second = new_stream();
  expect("record another context's event", cuEventRecord(event, second), CUDA_INVALID_HANDLE);
  expect("wait for another context's event", cuStreamWaitEvent(second, event, 0), CUDA_OK);
  expect("launch another context's kernel", launch(function, second, 0, 0, 0), CUDA_INVALID_HANDLE);
  expect("launch in another context's stream", launch(function, stream, 0, 0, 0),
         CUDA_INVALID_HANDLE);
  expect("wait for another context's stream", cuStreamSynchronize(stream), CUDA_OK);
  expect("destroy it", cuCtxDestroy_v2(other), CUDA_OK);
  cuCtxSetCurrent(context);
}

void captures() {
  const CudaStreamHandle stream = new_stream();
  const CudaStreamHandle other = new_stream();
  const CudaStreamHandle blocking = new_stream(0);
  CudaGraphHandle graph = nullptr;
  CudaEventHandle event = nullptr;
  CudaPointer at = 0;
  int status = 0;
  cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING);
  cuStreamBeginCapture_v2(stream, 0);
  expect("is it captured", cuStreamIsCapturing(stream, &status), CUDA_OK);
  expect("it is captured", status, 1);
  expect("allocate during a global capture", cuMemAlloc_v2(&at, 100), CUDA_CAPTURE_UNSUPPORTED);
  expect("end it", cuStreamEndCapture(stream, &graph), CUDA_CAPTURE_INVALIDATED);
  cuStreamBeginCapture_v2(stream, 0);
  expect("wait for another stream during it", cuStreamSynchronize(other), CUDA_CAPTURE_UNSUPPORTED);
  cuStreamEndCapture(stream, &graph);
  cuStreamBeginCapture_v2(stream, 2);
  expect("wait for what is captured", cuStreamSynchronize(stream), CUDA_CAPTURE_UNSUPPORTED);
  expect("is it spoilt", cuStreamIsCapturing(stream, &status), CUDA_OK);
  expect("it is spoilt", status, 2);
  cuStreamEndCapture(stream, &graph);
  cuEventRecord(event, other);
  cuStreamBeginCapture_v2(stream, 2);
  expect("wait in it for an event of before", cuStreamWaitEvent(stream, event, 0),
         CUDA_CAPTURE_ISOLATION);
  cuStreamEndCapture(stream, &graph);
  cuStreamBeginCapture_v2(stream, 2);
  expect("record in it", cuEventRecord(event, stream), CUDA_OK);
  expect("wait for that event", cuEventSynchronize(event), CUDA_CAPTURED_EVENT);
  cuStreamEndCapture(stream, &graph);
  cuStreamBeginCapture_v2(blocking, 2);
  expect("ask about the null stream while one is captured that blocks with it",
         cuStreamIsCapturing(nullptr, &status), CUDA_CAPTURE_IMPLICIT);
  cuStreamEndCapture(blocking, &graph);
  expect("capture the null stream", cuStreamBeginCapture_v2(nullptr, 2), CUDA_CAPTURE_UNSUPPORTED);
}

// ---- What loses the context

// The next allocations after registered pages went fail, until the registration is given back.
void unmapping() {
  const int memory = ::memfd_create("gpu_rules", 0);
  constexpr std::size_t bytes = std::size_t{64} << 20U;
  if (::ftruncate(memory, bytes) != 0) std::exit(2);
  void* const at = mapped(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory);
  if (cuMemHostRegister_v2(at, bytes, 0) != CUDA_OK) std::exit(2);
  ::munmap(at, bytes);
  CudaPointer got = 0;
  int code = CUDA_OK;
  for (int i = 0; i < 16 && code == CUDA_OK; i++) code = cuMemAlloc_v2(&got, bytes);
  expect("allocate after registered pages went", code, CUDA_ALREADY_MAPPED);
  expect("give back pages that went", cuMemHostUnregister(at), CUDA_OK);
}

void illegal() {
  const CudaFunctionHandle function = kernel("perdure_page_sums");
  const CudaStreamHandle stream = new_stream();
  const CudaPointer at = allocated(page);
  expect("launch what will fail", launch(function, stream, at, 16, 1), CUDA_OK);
  expect("wait for it", cuStreamSynchronize(stream), CUDA_ILLEGAL_ADDRESS);
  CudaPointer got = 0;
  expect("allocate in a lost context", cuMemAlloc_v2(&got, 100), CUDA_ILLEGAL_ADDRESS);
  expect("free in a lost context", cuMemFree_v2(at), CUDA_ILLEGAL_ADDRESS);
  unsigned kind = 0;
  expect("what a pointer is in a lost context",
         cuPointerGetAttribute(&kind, CUDA_POINTER_MEMORY_TYPE, at), CUDA_OK);
}

}  // namespace

int main() {
  CudaContextHandle context = nullptr;
  if (cuInit(0) != CUDA_OK || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_OK) {
    std::fprintf(stderr, "gpu_rules: there is no GPU here\n");
    return 3;
  }
  CudaPointer at = 0;
  expect("allocate before a context is current", cuMemAlloc_v2(&at, 100), CUDA_INVALID_CONTEXT);
  cuCtxSetCurrent(context);
  CudaModuleHandle module = nullptr;
  expect("a text that is no module", cuModuleLoadData(&module, ".version 6.3\n.nonsense\n"),
         CUDA_INVALID_PTX);
  registering();
  registering_files();
  pointers();
  contexts(context);
  captures();
  unmapping();
  illegal();
  return all_hold ? 0 : 1;
}
