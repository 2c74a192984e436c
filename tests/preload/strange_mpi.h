// SPDX-License-Identifier: BSD-3-Clause
/* The calls of an MPI that nobody knows. */
#pragma once

#include <stdint.h>

typedef uint64_t word;
#define WORD(n) (UINT64_C(0xfedcba9800000000) + ((word)(n) << 36) + 5 * (word)(n) + 1)
#define RIGHT 1234

int MPI_Init(int* argc, char*** argv);
int MPI_Win_create(word a, word b, word c, word d, word e, word f);
int MPI_Win_fence(word a, word b);
int MPI_File_write_at(word a, word b, word c, word d, word e, word f);
int MPI_Rget_accumulate(word a, word b, word c, word d, word e, word f, word g, word h, word i,
                        word j, word k, word l, word m);
int PMPI_Rget_accumulate(word a, word b, word c, word d, word e, word f, word g, word h, word i,
                         word j, word k, word l, word m);
int MPI_Get_accumulate(word a, int b, word c, word d, int e, word f, word g, word h, int i, word j,
                       word k, word l);
int MPI_Win_shared_query(word a, word b, word c, int* unit, word e);
