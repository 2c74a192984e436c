// SPDX-License-Identifier: BSD-3-Clause
// As much of CUDA's interface as docs/gpu.md has.
#pragma once
#include <stddef.h>

typedef struct CUstream_st* cudaStream_t;
enum cudaMemcpyKind { cudaMemcpyDeviceToHost = 2 };
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                    cudaStream_t stream);
int cudaStreamSynchronize(cudaStream_t stream);
