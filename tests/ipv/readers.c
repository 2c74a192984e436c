// SPDX-License-Identifier: BSD-3-Clause
//
// Legal programs in which somebody whom the compiler does not see reads an object, or stores to
// another part of it, while a loop overwrites rows. Run as READERS CASE POOL; with POOL "-" it does
// the same without Perdure. Prints what must be the same in both. Built by perdure-clang --ipv.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#ifdef WITH_MPI
#include <mpi.h>
#include <perdure/perdure_mpi.h>
#endif
#include <perdure/perdure_ipv.h>

enum { row = 1024, static_doubles = 65536 };
static const char* pool_path;
static perdure_pool* pool;
static int rank;

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "readers: %s\n", perdure_last_error());
  exit(1);
}

static int protected(void) {
  return strcmp(pool_path, "-") != 0;
}

static void begin(const char* name, void* memory, size_t bytes) {
  if (!protected()) return;
#ifdef WITH_MPI
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", pool_path, rank);
  check(perdure_open(path, NULL, &pool));
#else
  check(perdure_open(pool_path, NULL, &pool));
#endif
  check(perdure_ipv_open(pool, NULL));
  const perdure_ipv_object_options options = {PERDURE_IPV_AUTO, 1};
  check(perdure_ipv_object(name, memory, bytes, &options));
  uint64_t version = 0;
  check(perdure_ipv_restart(&version));
}

static void persist(void) {
  if (protected()) check(perdure_ipv_persist(NULL));
}

static void end(void) {
  if (!protected()) return;
  check(perdure_ipv_close());
  check(perdure_close(pool));
}

static double sum(const double* values, size_t count) {
  double all = 0;
  for (size_t i = 0; i < count; i++) all += values[i] * (double)(i % 7 + 1);
  return all;
}

// One object that is two arrays of the program: two symbols in one section.
__attribute__((section("saved"), aligned(4096))) double first_half[static_doubles];
__attribute__((section("saved"))) double second_half[static_doubles];
extern char __start_saved[], __stop_saved[];

static void section(void) {
  for (int i = 0; i < static_doubles; i++) {
    first_half[i] = i % 13;
    second_half[i] = i % 17;
  }
  begin("saved", __start_saved, (size_t)(__stop_saved - __start_saved));
  for (int k = 0; k < 20; k++) {
    for (int j = 0; j < static_doubles / row; j++)
      for (int i = 0; i < row; i++)
        first_half[j * row + i] = first_half[j * row + i] * 0.5 + second_half[j * row + i];
    for (int j = 0; j < static_doubles / row; j++)
      for (int i = 0; i < row; i++) second_half[j * row + i] = second_half[j * row + i] * 0.25 + k;
    persist();
  }
  printf("%.17g %.17g\n", sum(first_half, static_doubles), sum(second_half, static_doubles));
}

// Two results of the program's own allocator, of one object.
static char* arena;
static size_t arena_used;
double* known_first;
double* known_second;

__attribute__((noinline, malloc)) double* take(size_t doubles) {
  double* part = (double*)(arena + arena_used);
  arena_used += doubles * sizeof(double);
  return part;
}

static void in_arena(void) {
  const size_t bytes = 2 * static_doubles * sizeof(double);
  arena = perdure_ipv_alloc(bytes);
  double* const a = take(static_doubles);
  double* const b = take(static_doubles);
  known_first = a;
  known_second = b;
  for (int i = 0; i < static_doubles; i++) {
    a[i] = i % 13;
    b[i] = i % 17;
  }
  begin("arena", arena, bytes);
  for (int k = 0; k < 20; k++) {
    for (int j = 0; j < static_doubles / row; j++)
      for (int i = 0; i < row; i++) a[j * row + i] = a[j * row + i] * 0.5 + b[j * row + i];
    for (int j = 0; j < static_doubles / row; j++)
      for (int i = 0; i < row; i++) b[j * row + i] = b[j * row + i] * 0.25 + k;
    persist();
  }
  printf("%.17g %.17g\n", sum(known_first, static_doubles), sum(known_second, static_doubles));
}

// A signal handler that looks at an object.
enum { watched_doubles = 1 << 20 };
static double* volatile watched;
static volatile sig_atomic_t iteration;
static volatile long never_existed;

static void look(int signal) {
  (void)signal;
  const double* const u = watched;
  const double at_least = iteration + 1;
  for (size_t i = 0; i < watched_doubles; i += 4099)
    if (u[i] != at_least && u[i] != at_least + 1) never_existed++;
}

static void handler(void) {
  double* const u = perdure_ipv_alloc(watched_doubles * sizeof *u);
  for (size_t i = 0; i < watched_doubles; i++) u[i] = 1;
  watched = u;
  begin("u", u, watched_doubles * sizeof *u);
  signal(SIGALRM, look);
  const struct itimerval every = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &every, NULL);
  for (int it = 0; it < 100; it++) {
    for (int j = 0; j < watched_doubles / row; j++)
      for (int i = 0; i < row; i++) u[(size_t)j * row + (size_t)i] += 1;
    iteration = it + 1;
    persist();
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%ld values that never existed\n", (long)never_existed);
}

// A thread that updates its own half of an object.
enum { thread_rows = 512 };
static double *shared_u, *shared_w;
static pthread_barrier_t in_step;

static void update(double* restrict u, const double* restrict w, int from, int to) {
  for (int pass = 0; pass < 2; pass++)
    for (int j = from; j < to; j++)
      for (int i = 0; i < row; i++) u[j * row + i] = u[j * row + i] * 0.5 + w[j * row + i];
}

static void* other_half(void* argument) {
  (void)argument;
  for (int it = 0; it < 30; it++) {
    pthread_barrier_wait(&in_step);
    update(shared_u, shared_w, thread_rows / 2, thread_rows);
    pthread_barrier_wait(&in_step);
  }
  return NULL;
}

static void threads(void) {
  const size_t count = (size_t)thread_rows * row;
  shared_u = perdure_ipv_alloc(count * sizeof *shared_u);
  shared_w = calloc(count, sizeof *shared_w);
  for (size_t i = 0; i < count; i++) {
    shared_u[i] = (double)(i % 31);
    shared_w[i] = (double)(i % 29);
  }
  begin("u", shared_u, count * sizeof *shared_u);
  pthread_barrier_init(&in_step, NULL, 2);
  pthread_t thread;
  pthread_create(&thread, NULL, other_half, NULL);
  for (int it = 0; it < 30; it++) {
    pthread_barrier_wait(&in_step);
    update(shared_u, shared_w, 0, thread_rows / 2);
    pthread_barrier_wait(&in_step);
    persist();
  }
  pthread_join(thread, NULL);
  printf("%.17g\n", sum(shared_u, count));
}

#ifdef WITH_MPI
// A send that is pending while other rows are updated.
enum { sent = 65536, sent_rows = 24 };

static long receive(double* ghost, int it) {
  const struct timespec late = {0, 3000000};
  nanosleep(&late, NULL);
  MPI_Recv(ghost, sent, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  long wrong = 0;
  for (int i = 0; i < sent; i++) wrong += ghost[i] != it + 1;
  return wrong;
}

static void send(void) {
  const size_t count = (size_t)sent * sent_rows;
  double* const u = perdure_ipv_alloc(count * sizeof *u);
  double* const ghost = calloc(sent, sizeof *ghost);
  for (size_t i = 0; i < count; i++) u[i] = 1;
  begin("u", u, count * sizeof *u);
  long wrong = 0;
  for (int it = 0; it < 40; it++) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Isend(u, sent, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request);
    for (int j = 1; j < sent_rows; j++)
      for (int i = 0; i < sent; i++) u[(size_t)j * sent + (size_t)i] += 1;
    if (rank == 1) wrong += receive(ghost, it);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < sent; i++) u[i] += 1;
    persist();
  }
  if (rank == 1) printf("%ld wrong values received\n", wrong);
}
#endif

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  pool_path = argv[2];
#ifdef WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(argv[1], "send") == 0) send();
#else
  if (strcmp(argv[1], "section") == 0) section();
  if (strcmp(argv[1], "arena") == 0) in_arena();
  if (strcmp(argv[1], "handler") == 0) handler();
  if (strcmp(argv[1], "threads") == 0) threads();
#endif
  end();
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return 0;
}
