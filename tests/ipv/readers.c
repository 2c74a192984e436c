// SPDX-License-Identifier: BSD-3-Clause
//
// Legal programs in which somebody whom the compiler does not see reads an object, or stores to
// another part of it, while a nest overwrites a box of it; and some in which nobody does. Run as
// READERS CASE POOL; with POOL "-" it does the same without Perdure. What it prints must be the
// same in both. Built by perdure-clang --ipv.
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
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
  static char report[4096];
  snprintf(report, sizeof report, "%s.report", pool_path);
  const perdure_ipv_options versions = {.report = rank == 0 ? report : NULL};
  check(perdure_ipv_open(pool, &versions));
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

// What looks at an object all the time sees one value in all of it, or the one before.
static double* watched_array(void) {
  double* const u = perdure_ipv_alloc(watched_doubles * sizeof *u);
  for (size_t i = 0; i < watched_doubles; i++) u[i] = 1;
  watched = u;
  begin("u", u, watched_doubles * sizeof *u);
  return u;
}

static void update_watched(double* u, int iterations) {
  for (int it = 0; it < iterations; it++) {
    for (int j = 0; j < watched_doubles / row; j++)
      for (int i = 0; i < row; i++) u[(size_t)j * row + (size_t)i] += 1;
    __atomic_store_n(&iteration, it + 1, __ATOMIC_SEQ_CST);
    persist();
  }
}

static void alone(void) {
  double* const u = watched_array();
  update_watched(u, 20);
  printf("%.17g\n", sum(u, watched_doubles));
}

static int is_over;

static void look_once(void) {
  const double* const u = watched;
  for (size_t i = 0; i < watched_doubles; i += 4099) {
    const double least = __atomic_load_n(&iteration, __ATOMIC_SEQ_CST) + 1;
    const double found = ((const volatile double*)u)[i];
    const double most = __atomic_load_n(&iteration, __ATOMIC_SEQ_CST) + 2;
    if (found < least || found > most) never_existed++;
  }
}

static void* look_always(void* argument) {
  (void)argument;
  while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) look_once();
  return NULL;
}

static void reader(void) {
  double* const u = watched_array();
  pthread_t thread;
  pthread_create(&thread, NULL, look_always, NULL);
  update_watched(u, 60);
  __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  printf("%ld values that never existed\n", (long)never_existed);
}

// A pool: threads that wait for work, and look when they get it.
static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_changed = PTHREAD_COND_INITIALIZER;
static long work_given, work_done;

static void* worker(void* argument) {
  (void)argument;
  pthread_mutex_lock(&pool_mutex);
  for (;;) {
    while (!is_over && work_done == work_given) pthread_cond_wait(&pool_changed, &pool_mutex);
    if (is_over) break;
    work_done++;
    pthread_mutex_unlock(&pool_mutex);
    for (int times = 0; times < 5; times++) look_once();
    pthread_mutex_lock(&pool_mutex);
  }
  pthread_mutex_unlock(&pool_mutex);
  return NULL;
}

static void thread_pool(void) {
  double* const u = watched_array();
  pthread_t threads_of_pool[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads_of_pool[i], NULL, worker, NULL);
  for (int it = 0; it < 60; it++) {
    pthread_mutex_lock(&pool_mutex);
    work_given += 2;
    pthread_cond_broadcast(&pool_changed);
    pthread_mutex_unlock(&pool_mutex);
    for (int j = 0; j < watched_doubles / row; j++)
      for (int i = 0; i < row; i++) u[(size_t)j * row + (size_t)i] += 1;
    __atomic_store_n(&iteration, it + 1, __ATOMIC_SEQ_CST);
    persist();
  }
  pthread_mutex_lock(&pool_mutex);
  is_over = 1;
  pthread_cond_broadcast(&pool_changed);
  pthread_mutex_unlock(&pool_mutex);
  for (int i = 0; i < 2; i++) pthread_join(threads_of_pool[i], NULL);
  printf("%ld values that never existed\n", (long)never_existed);
}

// A row that is written to a file while the others are updated: by aio_write(), or, of which only
// the context is made here, by the kernel's own.
enum { sent = 65536, sent_rows = 24 };

static double* sent_array(void) {
  const size_t count = (size_t)sent * sent_rows;
  double* const u = perdure_ipv_alloc(count * sizeof *u);
  for (size_t i = 0; i < count; i++) u[i] = 1;
  begin("u", u, count * sizeof *u);
  return u;
}

static void update_others(double* u) {
  for (int j = 1; j < sent_rows; j++)
    for (int i = 0; i < sent; i++) u[(size_t)j * sent + (size_t)i] += 1;
}

static long wrong_in(const double* values, double wanted) {
  long wrong = 0;
  for (int i = 0; i < sent; i++) wrong += values[i] != wanted;
  return wrong;
}

static void asynchronous_write(void) {
  double* const u = sent_array();
  double* const ghost = calloc(sent, sizeof *ghost);
  char path[] = "/dev/shm/perdure-readers-XXXXXX";
  const int file = mkstemp(path);
  unlink(path);
  long wrong = 0;
  for (int it = 0; it < 20; it++) {
    struct aiocb request = {.aio_fildes = file, .aio_buf = u, .aio_nbytes = sent * sizeof *u};
    const struct aiocb* const list[] = {&request};
    if (aio_write(&request) != 0) exit(1);
    update_others(u);
    while (aio_suspend(list, 1, NULL) != 0) continue;
    if (pread(file, ghost, sent * sizeof *u, 0) != (ssize_t)(sent * sizeof *u)) exit(1);
    wrong += wrong_in(ghost, it + 1);
    for (int i = 0; i < sent; i++) u[i] += 1;
    persist();
  }
  printf("%ld wrong values written\n", wrong);
}

static void kernel_context(void) {
  unsigned long context = 0;
  if (syscall(SYS_io_setup, 4, &context) != 0) exit(1);
  alone();
  syscall(SYS_io_destroy, context);
}

static void ring(void) {
  char parameters[120] = {0};
  const long made = syscall(SYS_io_uring_setup, 4, parameters);
  alone();
  if (made >= 0) close((int)made);
}

#ifdef WITH_MPI
static const char* how;

static int is(const char* name) {
  return strcmp(how, name) == 0;
}

// A send, a put or a write that is pending while other rows are updated.
static MPI_Request start_send(double* u, MPI_Request persistent, MPI_File file) {
  MPI_Request request = persistent;
  if (is("isend")) MPI_Isend(u, sent, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request);
  if (is("issend")) MPI_Issend(u, sent, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request);
  if (is("start")) MPI_Start(&request);
  if (is("iwrite")) MPI_File_iwrite_at(file, 0, u, sent, MPI_DOUBLE, &request);
  return request;
}

static void receive(double* ghost, MPI_File file) {
  const struct timespec late = {0, 3000000};
  nanosleep(&late, NULL);
  if (is("iwrite")) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 0, ghost, sent, MPI_DOUBLE, MPI_STATUS_IGNORE);
  } else if (!is("put")) {
    MPI_Recv(ghost, sent, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static long send_iterations(double* u, double* ghost, MPI_Win window, MPI_Request persistent,
                            MPI_File file) {
  long wrong = 0;
  for (int it = 0; it < 25; it++) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    if (is("put")) MPI_Win_fence(0, window);
    if (rank == 0) request = start_send(u, persistent, file);
    if (rank == 0 && is("put")) MPI_Put(u, sent, MPI_DOUBLE, 1, 0, sent, MPI_DOUBLE, window);
    update_others(u);
    if (rank == 1) receive(ghost, file);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0 && is("iwrite")) MPI_Barrier(MPI_COMM_WORLD);
    if (is("put")) MPI_Win_fence(0, window);
    if (rank == 1) wrong += wrong_in(ghost, it + 1);
    for (int i = 0; i < sent; i++) u[i] += 1;
    persist();
  }
  return wrong;
}

static void send(void) {
  double* const u = sent_array();
  double* const ghost = calloc(sent, sizeof *ghost);
  MPI_Request persistent = MPI_REQUEST_NULL;
  MPI_Win window = MPI_WIN_NULL;
  MPI_File file = MPI_FILE_NULL;
  char path[64];
  snprintf(path, sizeof path, "/dev/shm/perdure-readers-%d", (int)getppid());
  if (rank == 0 && is("start"))
    MPI_Send_init(u, sent, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &persistent);
  if (is("put")) {
    MPI_Win_create(ghost, sent * sizeof *ghost, sizeof *ghost, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
  }
  if (is("iwrite")) {
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
  }
  const long wrong = send_iterations(u, ghost, window, persistent, file);
  if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  if (file != MPI_FILE_NULL) MPI_File_close(&file);
  if (rank == 1) printf("%ld wrong values received\n", wrong);
}

// The halo has a buffer of its own, as in most programs: nobody looks at the object.
static void buffer(void) {
  double* const u = sent_array();
  double* const halo = calloc(2 * sent, sizeof *halo);
  for (int it = 0; it < 20; it++) {
    MPI_Request requests[2];
    memcpy(halo, u, sent * sizeof *u);
    MPI_Irecv(halo + sent, sent, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(halo, sent, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
    update_others(u);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < sent; i++) u[i] += halo[sent + i];
    persist();
  }
  if (rank == 1) printf("%.17g\n", sum(u, (size_t)sent * sent_rows));
}
#endif

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  pool_path = argv[2];
#ifdef WITH_MPI
  how = argv[1];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
  const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {
#ifdef WITH_MPI
      {"isend", send},
      {"issend", send},
      {"start", send},
      {"put", send},
      {"iwrite", send},
      {"buffer", buffer},
#endif
      {"section", section},
      {"arena", in_arena},
      {"handler", handler},
      {"threads", threads},
      {"reader", reader},
      {"pool", thread_pool},
      {"aio", asynchronous_write},
      {"context", kernel_context},
      {"ring", ring},
      {"alone", alone}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(argv[1], cases[i].name) == 0) cases[i].run();
  }
  end();
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return 0;
}
