// SPDX-License-Identifier: BSD-3-Clause
//
// NPB_PARALLEL(CLAUSE …) in front of a loop: OpenMP shares its iterations out, in a program that is
// compiled with -fopenmp; elsewhere it is nothing. Only loops whose iterations store to places of
// their own. Sums are left to one thread: their last digits would depend on which thread is first.
#pragma once

#ifdef NPB_NO_PARALLEL_LOOPS
#error "compiled without -fopenmp: give this file the property PERDURE_OPENMP (CMakeLists.txt)"
#endif

#ifdef _OPENMP
#define NPB_PRAGMA(words) _Pragma(#words)
#define NPB_PARALLEL(...) NPB_PRAGMA(omp parallel for __VA_ARGS__)
#else
#define NPB_PARALLEL(...)
#endif
