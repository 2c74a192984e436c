// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs here ask of a GPU: memory, one stream, loops over indices, and sums in an order
// that is always the same. By CUDA's runtime where nvcc or clang compiles this as CUDA. Any other
// compiler makes programs for the driver of the tests (tests/gpu), which has no GPU: its streams
// run the loops, on the processor.
//
// Threads: one. What fails ends the program with a sentence.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define ON_GPU __host__ __device__
#else
#include "cuda_driver.h"
#include "fake_cuda.h"
#define ON_GPU
#endif

namespace gpu {

inline void check(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s: CUDA's error %d\n", what, code);
  std::exit(1);
}

#ifdef __CUDACC__
using Address = double*;
using Stream = cudaStream_t;
#else
using Address = CudaPointer;
using Stream = CudaStreamHandle;
#endif

// Elements in memory of the GPU, for loops; what it names is never given back.
class Vector {
 public:
  static Vector of(long elements);
  ON_GPU double& operator[](long i) const { return at_[i]; }
  Address address() const { return address_; }
  // As a pool takes it.
  void* buffer() const { return reinterpret_cast<void*>(address_); }

 private:
  Address address_{};
  double* at_ = nullptr;  // where loops have it
};

#ifdef __CUDACC__

inline Vector Vector::of(long elements) {
  Vector made;
  check(cudaMalloc(&made.address_, elements * sizeof(double)), "cudaMalloc");
  made.at_ = made.address_;
  return made;
}

inline Stream make_stream() {
  Stream made;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
  return made;
}

template <typename Body>
__global__ void run_all(long count, Body body) {
  const long step = static_cast<long>(gridDim.x) * blockDim.x;
  for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    body(i);
  }
}

template <typename Body>
void for_each(Stream stream, long count, Body body) {
  run_all<<<1024, 256, 0, stream>>>(count, body);
  check(cudaGetLastError(), "a kernel");
}

inline std::vector<double> read(Stream stream, const Vector& from, long elements) {
  std::vector<double> found(elements);
  check(cudaMemcpyAsync(found.data(), from.address(), elements * sizeof(double),
                        cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return found;
}

#else

inline Vector Vector::of(long elements) {
  Vector made;
  check(cuMemAlloc_v2(&made.address_, static_cast<size_t>(elements) * sizeof(double)),
        "cuMemAlloc");
  made.at_ = static_cast<double*>(fake_cuda_see(made.address_));
  return made;
}

inline Stream make_stream() {
  CudaContextHandle context = nullptr;
  Stream made = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuStreamCreate(&made, CUDA_STREAM_NON_BLOCKING), "cuStreamCreate");
  return made;
}

template <typename Body>
void for_each(Stream stream, long count, Body body) {
  auto* const loop = new std::function<void()>([count, body] {
    for (long i = 0; i < count; ++i) body(i);
  });
  const auto run = [](void* given) {
    auto* const its = static_cast<std::function<void()>*>(given);
    (*its)();
    delete its;
  };
  check(cuLaunchHostFunc(stream, run, loop), "cuLaunchHostFunc");
}

inline std::vector<double> read(Stream stream, const Vector& from, long elements) {
  std::vector<double> found(static_cast<size_t>(elements));
  check(cuMemcpyDtoHAsync_v2(found.data(), from.address(), found.size() * sizeof(double), stream),
        "cuMemcpyDtoHAsync");
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  return found;
}

#endif

// Of body(i) for all i below `count`.
class Sum {
 public:
  template <typename Body>
  double operator()(Stream stream, long count, Body body) {
    for_each(stream, parts, Part<Body>{sums_, count, body});
    double sum = 0;
    for (const double part : read(stream, sums_, parts)) sum += part;
    return sum;
  }

 private:
  static constexpr long parts = 4096;
  template <typename Body>
  struct Part {
    Vector sums;
    long count;
    Body body;
    ON_GPU void operator()(long part) const {
      double sum = 0;
      const long end = (part + 1) * count / parts;
      for (long i = part * count / parts; i < end; ++i) sum += body(i);
      sums[part] = sum;
    }
  };
  const Vector sums_ = Vector::of(parts);
};

// The bits of the elements.
inline std::uint64_t hash_of(const std::vector<double>& elements) {
  std::uint64_t hash = 14695981039346656037U;
  const auto* const byte = reinterpret_cast<const unsigned char*>(elements.data());
  for (std::size_t i = 0; i < elements.size() * sizeof(double); ++i) {
    hash = (hash ^ byte[i]) * 1099511628211U;
  }
  return hash;
}

}  // namespace gpu
