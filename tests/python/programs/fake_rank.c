/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fake_rank: stands in for a rank of a Perdure application in the tests of `perdure run`.
 *
 * It keeps to src/pool/run_page.hpp: writes its run page, obeys PERDURE_KILL, and restarts from
 * the file state-R in --state DIR, which plays the part of the pool. Built without MPI and with
 * each MPI (PERDURE_FAKE_MPI), where it also makes a shared window so that there is something in
 * /dev/shm to leave behind.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef PERDURE_FAKE_MPI
#include <mpi.h>
#endif

struct page { /* RunPageFormat */
  uint64_t magic;
  uint32_t pid, rank, ranks, phase;
  uint64_t version, iteration, commits, commit_ns_last, commit_ns_total;
  uint64_t commit_bytes_last, commit_bytes_total, model_ns_total, restored_version, restart_ns;
};
enum { OPENING, RESTARTING, COMPUTING, COMMITTING, CLOSED };
static const char *const points[] = {"copy", "data", "slot", "state", "agreed"};

struct settings {
  int rank, ranks, linger_rank;
  uint64_t iterations, loop_at;
  long step_ms;
  int exit_code, ignore_term, linger_s;
  const char *state;
};

static struct page *map_page(int rank) {
  static struct page silent;
  const char *dir = getenv("PERDURE_RUN_DIR");
  char path[4096];
  if (dir == NULL) return &silent;
  snprintf(path, sizeof path, "%s/page-%05d", dir, rank);
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return &silent;
  void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return at == MAP_FAILED ? &silent : at;
}

static void rehearse(const struct page *page, uint64_t iteration, const char *here) {
  const char *spec = getenv("PERDURE_KILL");
  char point[16];
  unsigned rank;
  unsigned long long at;
  if (spec == NULL) return;
  if (sscanf(spec, "rank=%u,iteration=%llu,point=%15s", &rank, &at, point) != 3) exit(90);
  if (rank == page->rank && iteration >= at && strcmp(point, here) == 0) raise(SIGKILL);
}

static uint64_t read_state(const struct settings *s) {
  char path[4096];
  unsigned long long version = 0;
  snprintf(path, sizeof path, "%s/state-%d", s->state, s->rank);
  FILE *file = s->state ? fopen(path, "r") : NULL;
  if (file == NULL) return 0;
  if (fscanf(file, "%llu", &version) != 1) version = 0;
  fclose(file);
  return version;
}

static void write_state(const struct settings *s, uint64_t version) {
  char path[4096], fresh[4112];
  if (s->state == NULL) return;
  snprintf(path, sizeof path, "%s/state-%d", s->state, s->rank);
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE *file = fopen(fresh, "w");
  if (file == NULL) exit(91);
  fprintf(file, "%llu\n", (unsigned long long)version);
  fclose(file);
  if (rename(fresh, path) != 0) exit(92);
}

static void sleep_ms(long ms) {
  struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&pause, NULL);
}

/* Ranks may have died one commit apart: all go back to the oldest. */
static uint64_t agreed_on(uint64_t version) {
#ifdef PERDURE_FAKE_MPI
  MPI_Allreduce(MPI_IN_PLACE, &version, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
#endif
  return version;
}

static void barrier(void) {
#ifdef PERDURE_FAKE_MPI
  MPI_Barrier(MPI_COMM_WORLD);
#endif
}

static void commit(struct page *page, const struct settings *s, uint64_t iteration) {
  page->phase = COMMITTING;
  for (int i = 0; i < 3; i++) rehearse(page, iteration, points[i]);
  write_state(s, iteration);
  rehearse(page, iteration, points[3]);
  barrier();
  rehearse(page, iteration, points[4]);
  page->version = page->iteration = iteration;
  page->commits++;
  page->commit_ns_last = 1000000;
  page->commit_ns_total += 1000000;
  page->commit_bytes_last = 4000000;
  page->commit_bytes_total += 4000000;
  page->phase = COMPUTING;
}

static int run(const struct settings *s) {
  struct page *page = map_page(s->rank);
  page->pid = (uint32_t)getpid();
  page->rank = (uint32_t)s->rank;
  page->ranks = (uint32_t)s->ranks;
  page->magic = 0x314e555244524550u;
  page->phase = RESTARTING;
  uint64_t iteration = agreed_on(read_state(s));
  page->restored_version = page->version = page->iteration = iteration;
  page->restart_ns = 2000000;
  page->phase = COMPUTING;
  const int fresh = iteration == 0;
  while (iteration < s->iterations) {
    sleep_ms(s->step_ms);
    volatile int loops = fresh && iteration + 1 == s->loop_at && s->rank == s->ranks - 1;
    while (loops) continue;
    commit(page, s, ++iteration);
  }
  page->phase = CLOSED;
  if (s->rank == s->linger_rank) sleep((unsigned)s->linger_s);
  if (s->rank == 0) printf("done at %llu\n", (unsigned long long)iteration);
  return s->exit_code;
}

static int number_from(const char *const *names, int otherwise) {
  for (; *names != NULL; names++) {
    const char *text = getenv(*names);
    if (text != NULL) return atoi(text);
  }
  return otherwise;
}

static struct settings parse(int argc, char **argv) {
  static const char *const rank_names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", NULL};
  static const char *const size_names[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", NULL};
  struct settings s = {
      number_from(rank_names, 0), number_from(size_names, 1), -1, 10, 0, 10, 0, 0, 0, NULL};
  for (int option; (option = getopt(argc, argv, "n:m:e:s:tl:w:b:")) != -1;) {
    switch (option) {
      case 'n':
        s.iterations = strtoull(optarg, NULL, 10);
        break;
      case 'm':
        s.step_ms = atol(optarg);
        break;
      case 'e':
        s.exit_code = atoi(optarg);
        break;
      case 's':
        s.state = optarg;
        break;
      case 't':
        s.ignore_term = 1;
        break;
      case 'b': /* the last rank of a fresh start loops for ever before this commit */
        s.loop_at = strtoull(optarg, NULL, 10);
        break;
      case 'l':
        s.linger_rank = atoi(optarg);
        break;
      case 'w':
        s.linger_s = atoi(optarg);
        break;
      default:
        exit(93);
    }
  }
  return s;
}

int main(int argc, char **argv) {
  struct settings s = parse(argc, argv);
  if (s.ignore_term) signal(SIGTERM, SIG_IGN);
#ifdef PERDURE_FAKE_MPI
  MPI_Win window;
  void *base;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
  MPI_Win_allocate_shared(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  memset(base, 1, 1 << 20);
#endif
  int code = run(&s);
#ifdef PERDURE_FAKE_MPI
  MPI_Win_free(&window);
  MPI_Finalize();
#endif
  return code;
}
