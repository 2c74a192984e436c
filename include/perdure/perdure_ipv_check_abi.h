/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_ipv_check_abi.h: what code calls that was instrumented by the pass `ipv-check`
 * (perdure-clang --ipv-record, --ipv-check). Programs do not use it; it is public because
 * instrumented objects depend on it.
 *
 * Each load and store is announced just before it, with its place in the source.
 * Everything here may be called at any moment of a process, by any thread, and in signal handlers.
 */
#ifndef PERDURE_PERDURE_IPV_CHECK_ABI_H
#define PERDURE_PERDURE_IPV_CHECK_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A member of a struct, or of one in it: "x", "velocity.x", "faces[]". */
struct perdure_ipv_member {
  const char* name;
  uint64_t offset;
  uint64_t bytes;
};

struct perdure_ipv_type {
  const char* name;
  uint64_t bytes;
  const struct perdure_ipv_member* members;
  uint64_t count; /* of members; 0: without debug information of types (-g) */
};

/* A place in the source. `file` and `function` may be empty, numbers 0: compiled without -g. */
struct perdure_ipv_site {
  const char* file;
  const char* function;
  uint32_t line;
  uint32_t column;
  uint32_t nest_line; /* of the outermost loop of the function around it; 0: none */
  uint32_t number;    /* 0; the checker's */
  const struct perdure_ipv_type* type; /* of which a part is accessed there; null: of none */
  int64_t offset;                      /* in the type; -1: differs from access to access */
  uint64_t reserved[4];                /* 0; the checker's */
};

/* A variable of the module that has static storage and is not constant. */
struct perdure_ipv_global {
  const void* address;
  uint64_t bytes;
  const char* name;
  const char* file;
  uint32_t line;
  uint32_t is_scalar;
};

void perdure_ipv_check_load(uint64_t address, uint64_t bytes, struct perdure_ipv_site* site);
void perdure_ipv_check_store(uint64_t address, uint64_t bytes, struct perdure_ipv_site* site);

/* Lanes of a masked access of consecutive elements: bit i of `lanes` is element i. */
void perdure_ipv_check_load_lanes(uint64_t address, uint64_t element_bytes, uint64_t lanes,
                                  struct perdure_ipv_site* site);
void perdure_ipv_check_store_lanes(uint64_t address, uint64_t element_bytes, uint64_t lanes,
                                   struct perdure_ipv_site* site);

/* memcpy and memmove: all is loaded, then all is stored. */
void perdure_ipv_check_copy(uint64_t to, uint64_t from, uint64_t bytes,
                            struct perdure_ipv_site* site);

/* Flang's assignment of whole arrays: both are its descriptors (ISO_Fortran_binding.h). */
void perdure_ipv_check_assign(const void* to, const void* from, struct perdure_ipv_site* site);

/* The call of a function of perdure_ipv.h or perdure_ipv_abi.h that follows is at `site`. */
void perdure_ipv_check_here(struct perdure_ipv_site* site);

/* When a module begins. */
void perdure_ipv_check_globals(const struct perdure_ipv_global* globals, uint64_t count);

#ifdef __cplusplus
}
#endif

#endif
