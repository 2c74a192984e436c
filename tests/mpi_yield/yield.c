// SPDX-License-Identifier: BSD-3-Clause
//
// Preloaded into the tests' jobs of MPICH (cmake/perdure_mpi.cmake): a rank that waits lets others
// have its processor. MPICH on UCX polls without end and never yields, so that two tests with more
// ranks than processors take many times as long as one after the other. What it polls with,
// ucp_worker_progress() of UCX, is called through here; after some calls in which nothing happened
// the rank yields, and after many it sleeps for a moment. What is called, how often and in which
// order is for MPICH to say, as before.
//
// One count for each thread. Without UCX's function there is nothing to go on with: it stops.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { polls_until_yield = 20, polls_until_sleep = 100 };

typedef unsigned (*progress_fn)(void* worker);

static progress_fn find_progress(void) {
  void* found = dlsym(RTLD_NEXT, "ucp_worker_progress");
  if (found == NULL) {  // an MPI library that was loaded for itself, as a plug-in's is
    void* const ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (ucp != NULL) found = dlsym(ucp, "ucp_worker_progress");
  }
  if (found == NULL) {
    fputs("mpi_yield: there is no ucp_worker_progress to call\n", stderr);
    abort();
  }
  return (progress_fn)found;
}

unsigned ucp_worker_progress(void* worker) {
  static progress_fn progress;
  static __thread unsigned idle;
  if (progress == NULL) progress = find_progress();
  const unsigned made = progress(worker);
  idle = made != 0 ? 0 : idle + 1;
  if (idle > polls_until_sleep) {
    const struct timespec moment = {0, 50000};
    nanosleep(&moment, NULL);
  } else if (idle > polls_until_yield) {
    sched_yield();
  }
  return made;
}
