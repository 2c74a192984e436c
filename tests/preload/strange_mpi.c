// SPDX-License-Identifier: BSD-3-Clause
/* An MPI that nobody knows, whose handles fill whole registers. Each of its calls returns RIGHT if
 * its arguments arrived: the n-th is WORD(n). It has no large-count calls, and no MPI_Win_sync. */
#include <string.h>

#include "strange_mpi.h"

int PMPI_Get_library_version(char* text, int* length) {
  static const char name[] = "Strange MPI 7.1, made for a test";
  memcpy(text, name, sizeof name);
  *length = (int)sizeof name - 1;
  return 0;
}

int MPI_Init(int* argc, char*** argv) {
  return argc != 0 && argv != 0 ? 0 : 1;
}

static int check(int count, const word* given) {
  for (int i = 0; i < count; i++) {
    if (given[i] != WORD(i)) return i;
  }
  return RIGHT;
}

int MPI_Win_create(word a, word b, word c, word d, word e, word f) {
  const word given[] = {a, b, c, d, e, f};
  return check(6, given);
}

int MPI_File_write_at(word a, word b, word c, word d, word e, word f) {
  const word given[] = {a, b, c, d, e, f};
  return check(6, given);
}

int MPI_Win_fence(word a, word b) {
  const word given[] = {a, b};
  return check(2, given);
}

int PMPI_Rget_accumulate(word a, word b, word c, word d, word e, word f, word g, word h, word i,
                         word j, word k, word l, word m) {
  const word given[] = {a, b, c, d, e, f, g, h, i, j, k, l, m};
  return check(13, given);
}

int MPI_Rget_accumulate(word a, word b, word c, word d, word e, word f, word g, word h, word i,
                        word j, word k, word l, word m) {
  return PMPI_Rget_accumulate(a, b, c, d, e, f, g, h, i, j, k, l, m);
}

int MPI_Get_accumulate(word a, int b, word c, word d, int e, word f, word g, word h, int i, word j,
                       word k, word l) {
  const word given[] = {a, WORD(1), c, d, WORD(4), f, g, h, WORD(8), j, k, l};
  return b == 7 && e == 8 && i == 9 ? check(12, given) : -1;
}

int MPI_Win_shared_query(word a, word b, word c, int* unit, word e) {
  const word given[] = {a, b, c, WORD(3), e};
  *unit = 16;
  return check(5, given) == RIGHT ? 0 : -1;
}
