// SPDX-License-Identifier: BSD-3-Clause
//
// One case of `perdure bench gpu`: commits of an array in memory of a GPU, by the driver alone.
//
//     gpu CASE POOL BYTES ROUNDS
//     gpu driver
//
// The second form says which driver there is, and no more. A case is copy, copy-snapshot, log-1,
// log-100, restart, fti-way or bus. The program's stream computes by copies within the device. With
// host and host-driver the array is in memory of the host; host loads no driver, and host-driver
// one that it makes no use of.
// Prints a line "sample METRIC VALUE" for each round, and "wrong N" of what was read back; exits
// with 3 and a sentence where there is no GPU.
#include "gpu_driver.h"

#include <fcntl.h>
#include <perdure/perdure.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define OK(call) check_cuda(call, #call)

enum { block_bytes = 65536, fti_part = 16 << 20, largest_part = 1 << 30, iterations_max = 200 };

// What every case works with.
typedef struct Bench {
  const char* pool_path;
  size_t bytes;
  int rounds;
  CudaStream program;   // the stream of the program
  CudaAddress live;     // the array
  CudaAddress scratch;  // as large: what the program computes with
  double gigabytes;
  size_t stride;       // of the blocks that change from version to version
  unsigned char byte;  // that they have now; the others have 1
} Bench;

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "bench_gpu: %s\n", perdure_last_error());
  exit(1);
}

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void sample(const char* metric, double value) {
  printf("sample %s %.17g\n", metric, value);
  fflush(stdout);
}

// One iteration of a program that reads and writes all of its state.
static void compute(const Bench* bench) {
  OK(cu.copy_within(bench->scratch, bench->live, bench->bytes, bench->program));
  OK(cu.copy_within(bench->live, bench->scratch, bench->bytes, bench->program));
}

// Every `stride`-th block has another byte than before, from block 0 on; the stream does it.
static void change(Bench* bench) {
  bench->byte++;
  if (bench->stride == 1) {
    OK(cu.fill(bench->live, bench->byte, bench->bytes, bench->program));
    return;
  }
  for (size_t at = 0; at < bench->bytes; at += bench->stride * block_bytes) {
    OK(cu.fill(bench->live + at, bench->byte, block_bytes, bench->program));
  }
}
static unsigned char byte_of(const Bench* bench, size_t block) {
  return block % bench->stride == 0 ? bench->byte : 1;
}
static void fill_all(Bench* bench, unsigned char byte) {
  OK(cu.fill(bench->live, byte, bench->bytes, bench->program));
  OK(cu.stream_synchronise(bench->program));
}

// ---- The pool

typedef struct Kept {
  perdure_pool* pool;
  perdure_array* array;
  uint64_t version;
} Kept;

static Kept open_pool(const Bench* bench, int mode, void* buffer) {
  Kept kept = {NULL, NULL, 0};
  const uint64_t shape = bench->bytes;
  const perdure_array_options options = {.buffer = buffer};
  check(perdure_open(bench->pool_path, NULL, &kept.pool));
  check(perdure_array_open(kept.pool, "u", PERDURE_BYTE, 1, &shape, mode, &options, &kept.array));
  check(perdure_restart(kept.pool, &kept.version));
  return kept;
}

static Kept open_on_gpu(const Bench* bench, int mode) {
  const Kept kept = open_pool(bench, mode, pointer_to(bench->live));
  check(perdure_stream(kept.pool, PERDURE_STREAM_CUDA, bench->program));
  return kept;
}

// A restart on the processor compares each block with the sum that the GPU made of it, and fails if
// one differs; and each byte is what was committed.
static void compare_on_host(const Bench* bench, int mode) {
  unsigned char* const buffer =
      mmap(NULL, bench->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffer == MAP_FAILED) exit(1);
  const Kept kept = open_pool(bench, mode, buffer);
  size_t wrong = 0;
  for (size_t begin = 0; begin < bench->bytes; begin += block_bytes) {
    const unsigned char right = byte_of(bench, begin / block_bytes);
    for (size_t i = begin; i < begin + block_bytes; i++) wrong += buffer[i] != right ? 1 : 0;
  }
  check(perdure_close(kept.pool));
  munmap(buffer, bench->bytes);
  printf("wrong %zu\n", wrong);
}

// From the call until the program's stream goes on, and until the version is durable.
static void commit_in_two_steps(const Bench* bench, const Kept* kept, CudaEvent passed) {
  const double began = milliseconds();
  check(perdure_commit_begin(kept->pool));
  OK(cu.event_record(passed, bench->program));
  OK(cu.event_synchronise(passed));
  const double blocked = milliseconds() - began;
  check(perdure_commit_wait(kept->pool, NULL));
  const double durable = milliseconds() - began;
  sample("blocked_ms_per_GB", blocked / bench->gigabytes);
  sample("durable_ms_per_GB", durable / bench->gigabytes);
}

// The program's time with a commit every `iterations`, or without any.
static double run_ms(Bench* bench, const Kept* kept, int iterations, int has_commits) {
  const double began = milliseconds();
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < iterations; j++) compute(bench);
    change(bench);
    if (has_commits) check(perdure_commit_begin(kept->pool));
  }
  // The last commit has as much to run beside as the others.
  for (int j = 0; j < iterations; j++) compute(bench);
  OK(cu.stream_synchronise(bench->program));
  if (has_commits) check(perdure_commit_wait(kept->pool, NULL));
  return milliseconds() - began;
}

// Commits that are three transfers of the array apart.
static void compare_run_times(Bench* bench, const Kept* kept) {
  double began = milliseconds();
  compute(bench);
  OK(cu.stream_synchronise(bench->program));
  const double iteration = milliseconds() - began;
  void* host;
  const size_t part = bench->bytes < largest_part ? bench->bytes : (size_t)largest_part;
  OK(cu.host_allocate(&host, part, 0));
  began = milliseconds();
  OK(cu.copy_to_host(host, bench->live, part, bench->program));
  OK(cu.stream_synchronise(bench->program));
  const double transfer = (milliseconds() - began) * (double)bench->bytes / (double)part;
  OK(cu.host_free(host));
  // A device's memory is some 40 times as fast as the bus.
  const double between = 3 * transfer / iteration;
  const int iterations = between < iterations_max ? (int)between + 1 : iterations_max;
  for (int round = 0; round < bench->rounds; round++) {
    const double without = run_ms(bench, kept, iterations, 0);
    sample("run_time_ratio", run_ms(bench, kept, iterations, 1) / without);
  }
}

static void measure_commits(Bench* bench, int mode, int in_two_steps) {
  const Kept kept = open_on_gpu(bench, mode);
  CudaEvent passed;
  OK(cu.event_create(&passed, CUDA_EVENT_WITHOUT_TIMES));
  fill_all(bench, 1);
  // All of the array is new to each copy in the pool once.
  for (int i = 0; i < 3; i++) check(perdure_commit(kept.pool, NULL));
  for (int round = 0; round < bench->rounds; round++) {
    change(bench);
    OK(cu.stream_synchronise(bench->program));
    if (in_two_steps) {
      commit_in_two_steps(bench, &kept, passed);
    } else {
      const double began = milliseconds();
      check(perdure_commit(kept.pool, NULL));
      const double took = milliseconds() - began;
      sample("blocked_ms_per_GB", took / bench->gigabytes);
      sample("durable_ms_per_GB", took / bench->gigabytes);
    }
  }
  if (in_two_steps) compare_run_times(bench, &kept);
  check(perdure_close(kept.pool));
  OK(cu.event_destroy(passed));
  compare_on_host(bench, mode);
}

// Open, register and fill: what a job that starts again waits for. The array is compared there.
static void measure_restart(Bench* bench) {
  size_t wrong = 0;
  unsigned char* const host = malloc(block_bytes);
  if (host == NULL) exit(1);
  for (int round = 0; round <= bench->rounds; round++) {
    const double began = milliseconds();
    const Kept kept = open_on_gpu(bench, PERDURE_COPY);
    const double took = milliseconds() - began;
    if (round != 0) sample("blocked_ms_per_GB", took / bench->gigabytes);
    for (size_t at = 0; round != 0 && at < bench->bytes; at += block_bytes) {
      OK(cu.copy_to_host(host, bench->live + at, block_bytes, bench->program));
      OK(cu.stream_synchronise(bench->program));
      for (size_t i = 0; i < block_bytes; i++) wrong += host[i] != bench->byte ? 1 : 0;
    }
    change(bench);
    check(perdure_commit(kept.pool, NULL));
    check(perdure_close(kept.pool));
    fill_all(bench, 0);  // what was there is gone
  }
  free(host);
  printf("wrong %zu\n", wrong);
}

// ---- Others' ways

// One state by two pinned buffers and two streams, while this thread writes to the file.
static void write_as_fti(const Bench* bench, int file, void* const* buffers,
                         const CudaStream* streams) {
  size_t at = 0;
  size_t part = bench->bytes < fti_part ? bench->bytes : (size_t)fti_part;
  OK(cu.copy_to_host(buffers[0], bench->live, part, streams[0]));
  for (int turn = 0; at < bench->bytes; turn = !turn) {
    const size_t next = at + part;
    const size_t left = bench->bytes - next;
    const size_t next_part = left < fti_part ? left : (size_t)fti_part;
    if (next_part != 0) {
      OK(cu.copy_to_host(buffers[!turn], bench->live + next, next_part, streams[!turn]));
    }
    OK(cu.stream_synchronise(streams[turn]));
    if (write(file, buffers[turn], part) != (ssize_t)part) exit(1);
    at = next;
    part = next_part;
  }
}

static void measure_fti_way(Bench* bench) {
  void* buffers[2];
  CudaStream streams[2];
  for (int i = 0; i < 2; i++) {
    OK(cu.host_allocate(&buffers[i], fti_part, 0));
    OK(cu.stream_create(&streams[i], CUDA_STREAM_OF_ITS_OWN, 0));
  }
  size_t wrong = 0;
  for (int round = 0; round < bench->rounds; round++) {
    change(bench);
    OK(cu.stream_synchronise(bench->program));
    const double began = milliseconds();
    const int file = open(bench->pool_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) exit(1);
    write_as_fti(bench, file, buffers, streams);
    if (fsync(file) != 0) exit(1);
    const double took = milliseconds() - began;
    sample("blocked_ms_per_GB", took / bench->gigabytes);
    sample("durable_ms_per_GB", took / bench->gigabytes);
    unsigned char last = 0;
    if (pread(file, &last, 1, (off_t)bench->bytes - 1) != 1 || last != bench->byte) wrong++;
    close(file);
    unlink(bench->pool_path);
  }
  for (int i = 0; i < 2; i++) {
    OK(cu.host_free(buffers[i]));
    OK(cu.stream_destroy(streams[i]));
  }
  printf("wrong %zu\n", wrong);
}

// What the bus takes for the bytes, and nothing else.
static void measure_bus(const Bench* bench) {
  const size_t part = bench->bytes < largest_part ? bench->bytes : (size_t)largest_part;
  void* host;
  OK(cu.host_allocate(&host, part, 0));
  for (int round = 0; round < bench->rounds; round++) {
    const double began = milliseconds();
    OK(cu.copy_to_host(host, bench->live, part, bench->program));
    OK(cu.stream_synchronise(bench->program));
    sample("transfer_ms_per_GB", (milliseconds() - began) / ((double)part / 1e9));
  }
  OK(cu.host_free(host));
  printf("wrong 0\n");
}

// ---- A program whose array is in memory of the host

// How many mappings this process has of a GPU's driver.
static int driver_mappings(void) {
  FILE* const maps = fopen("/proc/self/maps", "re");
  char line[4352];
  int found = 0;
  if (maps == NULL) exit(1);
  while (fgets(line, sizeof line, maps) != NULL) {
    found += strstr(line, "libcuda.so") != NULL || strstr(line, "libamdhip64.so") != NULL ? 1 : 0;
  }
  fclose(maps);
  return found;
}

// Of the tests' driver, which counts them; 0 of another one, or without any.
static unsigned long long driver_calls(void) {
  uint64_t (*calls)(const char*) = NULL;
  void* const found = dlsym(dlopen(NULL, RTLD_NOW), "fake_cuda_calls");
  memcpy(&calls, &found, sizeof found);
  return calls == NULL ? 0 : (unsigned long long)calls(NULL);
}

static int measure_on_host(Bench* bench, int has_driver) {
  if (has_driver) open_driver();
  unsigned char* const buffer = malloc(bench->bytes);
  if (buffer == NULL) exit(1);
  memset(buffer, bench->byte, bench->bytes);
  const Kept kept = open_pool(bench, PERDURE_COPY, buffer);
  for (int i = 0; i < 3; i++) check(perdure_commit(kept.pool, NULL));
  const unsigned long long calls = driver_calls();
  for (int round = 0; round < bench->rounds; round++) {
    memset(buffer, ++bench->byte, bench->bytes);
    const double began = milliseconds();
    check(perdure_commit(kept.pool, NULL));
    sample("commit_ms_per_GB", (milliseconds() - began) / bench->gigabytes);
  }
  printf("calls %llu\nlibraries %d\n", driver_calls() - calls, driver_mappings());
  check(perdure_close(kept.pool));
  free(buffer);
  compare_on_host(bench, PERDURE_COPY);
  return 0;
}

// ---- All

static size_t bytes_of(const char* text) {
  const size_t bytes = strtoull(text, NULL, 10) / block_bytes * block_bytes;
  return bytes < block_bytes ? (size_t)block_bytes : bytes;
}

static int measure(Bench* bench, const char* wanted) {
  if (strcmp(wanted, "copy") == 0) {
    measure_commits(bench, PERDURE_COPY, 0);
  } else if (strcmp(wanted, "copy-snapshot") == 0) {
    measure_commits(bench, PERDURE_COPY, 1);
  } else if (strcmp(wanted, "log-1") == 0) {
    bench->stride = 100;
    measure_commits(bench, PERDURE_LOG, 1);
  } else if (strcmp(wanted, "log-100") == 0) {
    measure_commits(bench, PERDURE_LOG, 1);
  } else if (strcmp(wanted, "restart") == 0) {
    measure_restart(bench);
  } else if (strcmp(wanted, "fti-way") == 0) {
    measure_fti_way(bench);
  } else if (strcmp(wanted, "bus") == 0) {
    measure_bus(bench);
  } else {
    fprintf(stderr, "bench_gpu: '%s' is no case\n", wanted);
    return 2;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "driver") == 0) {
    open_driver();
    return 0;
  }
  if (argc != 5) return 2;
  Bench bench = {.pool_path = argv[2],
                 .bytes = bytes_of(argv[3]),
                 .rounds = atoi(argv[4]),
                 .stride = 1,
                 .byte = 1};
  bench.gigabytes = (double)bench.bytes / 1e9;
  const int has_driver = strcmp(argv[1], "host-driver") == 0;
  if (has_driver || strcmp(argv[1], "host") == 0) return measure_on_host(&bench, has_driver);
  open_driver();
  OK(cu.stream_create(&bench.program, CUDA_STREAM_OF_ITS_OWN, -5));
  OK(cu.allocate(&bench.live, bench.bytes));
  OK(cu.allocate(&bench.scratch, bench.bytes));
  const int code = measure(&bench, argv[1]);
  OK(cu.release(bench.live));
  OK(cu.release(bench.scratch));
  OK(cu.stream_destroy(bench.program));
  return code;
}
