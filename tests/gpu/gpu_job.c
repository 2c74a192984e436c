// SPDX-License-Identifier: BSD-3-Clause
//
// A job whose array is in memory of a GPU, which is killed anywhere and started again:
//
//     gpu_job POOL MODE BYTES COMMITS      on the GPU: prints "acknowledged VALUE" after each
//     gpu_job POOL MODE BYTES check        on the processor: prints "found VALUE wrong BYTES"
//
// MODE is copy or log. In version VALUE the blocks of 64 KiB whose number is VALUE modulo 3 have
// just changed; the first start compares what it restarts from as well.
#include <perdure/perdure.h>
#include <sys/mman.h>

#include "gpu_driver.h"

#define OK(call) check_cuda(call, #call)

enum { block_bytes = 65536 };

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "gpu_job: %s\n", perdure_last_error());
  exit(1);
}

// What a byte of the block is in this version: the last that changed it.
static unsigned char byte_of(uint64_t value, size_t block) {
  const uint64_t since = (value + 3 - block % 3) % 3;
  return value < since ? 0 : (unsigned char)(value - since);
}

static size_t wrong_bytes(const unsigned char* at, size_t bytes, uint64_t value) {
  size_t wrong = 0;
  for (size_t begin = 0; begin < bytes; begin += block_bytes) {
    const unsigned char right = byte_of(value, begin / block_bytes);
    for (size_t i = begin; i < begin + block_bytes; i++) wrong += at[i] != right ? 1 : 0;
  }
  return wrong;
}

static perdure_pool* restarted(const char* path, const char* mode, uint64_t bytes, void* buffer,
                               uint64_t* value, CudaStream stream) {
  perdure_pool* pool;
  perdure_array* array;
  uint64_t version = 0;
  const perdure_array_options options = {.buffer = buffer};
  const int kind = strcmp(mode, "log") == 0 ? PERDURE_LOG : PERDURE_COPY;
  check(perdure_open(path, NULL, &pool));
  check(perdure_array_open(pool, "u", PERDURE_BYTE, 1, &bytes, kind, &options, &array));
  check(perdure_scalar(pool, "value", value, sizeof *value));
  if (stream != NULL) check(perdure_stream(pool, PERDURE_STREAM_CUDA, stream));
  check(perdure_restart(pool, &version));
  return pool;
}

static void look(const char* path, const char* mode, size_t bytes) {
  uint64_t value = 0;
  unsigned char* const buffer =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffer == MAP_FAILED) exit(1);
  perdure_pool* const pool = restarted(path, mode, bytes, buffer, &value, NULL);
  printf("found %llu wrong %zu\n", (unsigned long long)value, wrong_bytes(buffer, bytes, value));
  check(perdure_close(pool));
}

static void step(CudaAddress u, size_t bytes, uint64_t value, CudaStream stream) {
  for (size_t block = value % 3; block * block_bytes < bytes; block += 3) {
    OK(cu.fill(u + block * block_bytes, (unsigned char)value, block_bytes, stream));
  }
}

static void work(const char* path, const char* mode, size_t bytes, int commits) {
  CudaAddress u;
  CudaStream stream;
  uint64_t value = 0;
  open_driver();
  OK(cu.allocate(&u, bytes));
  OK(cu.stream_create(&stream, CUDA_STREAM_OF_ITS_OWN, 0));
  OK(cu.fill(u, 0, bytes, stream));
  OK(cu.stream_synchronise(stream));
  perdure_pool* const pool = restarted(path, mode, bytes, pointer_to(u), &value, stream);
  unsigned char* const host = malloc(bytes);
  if (host == NULL) exit(1);
  OK(cu.copy_to_host(host, u, bytes, stream));
  OK(cu.stream_synchronise(stream));
  printf("begins %llu wrong %zu\n", (unsigned long long)value, wrong_bytes(host, bytes, value));
  fflush(stdout);
  free(host);
  value++;
  step(u, bytes, value, stream);
  for (int i = 0; i < commits; i++) {
    const uint64_t saved = value;
    check(perdure_commit_begin(pool));
    // The stream goes on; what it stores now is no part of the version.
    value++;
    step(u, bytes, value, stream);
    check(perdure_commit_wait(pool, NULL));
    printf("acknowledged %llu\n", (unsigned long long)saved);
    fflush(stdout);
  }
  OK(cu.stream_synchronise(stream));
  check(perdure_close(pool));
  OK(cu.release(u));
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const size_t bytes = strtoull(argv[3], NULL, 10) / block_bytes * block_bytes;
  if (strcmp(argv[4], "check") == 0) {
    look(argv[1], argv[2], bytes);
  } else {
    work(argv[1], argv[2], bytes, atoi(argv[4]));
  }
  return 0;
}
