// SPDX-License-Identifier: BSD-3-Clause
/* A program of an MPI that nobody knows: are its calls passed on as it made them, the first ones
 * and later ones? With a name, it makes a call that its MPI has not; with "wide", the large-count
 * form of one that it has.
 *
 *   preload_strange [init] [wide|MPI_NAME]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "strange_mpi.h"

#define W(n) WORD(n)
typedef int wide_call(word, word, word, word, word, word, word, word, word, word, word, word);

static int wrong(void) {
  int bad = 0;
  for (int again = 0; again < 3; again++) {
    bad += MPI_Rget_accumulate(W(0), W(1), W(2), W(3), W(4), W(5), W(6), W(7), W(8), W(9), W(10),
                               W(11), W(12)) != RIGHT;
    bad += PMPI_Rget_accumulate(W(0), W(1), W(2), W(3), W(4), W(5), W(6), W(7), W(8), W(9), W(10),
                                W(11), W(12)) != RIGHT;
    bad += MPI_Win_create(W(0), W(1), W(2), W(3), W(4), W(5)) != RIGHT;
    bad += MPI_Win_fence(W(0), W(1)) != RIGHT;
    bad += MPI_File_write_at(W(0), W(1), W(2), W(3), W(4), W(5)) != RIGHT;
  }
  return bad;
}

/* Counts that fit lead to MPI_Get_accumulate, others to an error. */
static int wide(void) {
  wide_call* get = (wide_call*)dlsym(RTLD_DEFAULT, "MPI_Get_accumulate_c");
  wide_call* query = (wide_call*)dlsym(RTLD_DEFAULT, "MPI_Win_shared_query_c");
  word unit = 0;
  if (get == 0 || query == 0) return 5;
  const word many = UINT64_C(1) << 31;
  if (get(W(0), 7, W(2), W(3), 8, W(5), W(6), W(7), 9, W(9), W(10), W(11)) != RIGHT) return 6;
  if (get(W(0), 7, W(2), W(3), many, W(5), W(6), W(7), 9, W(9), W(10), W(11)) != 2) return 7;
  if (query(W(0), W(1), W(2), (word)&unit, W(4), 0, 0, 0, 0, 0, 0, 0) != 0) return 8;
  return unit == 16 ? 0 : 9;
}

int main(int argc, char** argv) {
  int first = 1;
  if (argc > 1 && strcmp(argv[1], "init") == 0) {
    if (MPI_Init(&argc, &argv) != 0) return 3;
    first = 2;
  }
  if (argc > first && strcmp(argv[first], "wide") == 0) {
    const int bad = wide();
    printf("%s\n", bad == 0 ? "right" : "wrong");
    return bad;
  }
  if (argc > first) {
    int (*call)(word, word) = (int (*)(word, word))dlsym(RTLD_DEFAULT, argv[first]);
    printf("%s\n", call == NULL ? "is not there" : "is called");
    fflush(stdout);
    return call == NULL ? 4 : call(0, 0);
  }
  const int bad = wrong();
  printf("%s\n", bad == 0 ? "right" : "wrong");
  return bad == 0 ? 0 : 1;
}
