// SPDX-License-Identifier: BSD-3-Clause
//
// Lending: calls of MPI after which somebody may still read or store the memory that they were
// given say so (base/guests.hpp), and go on to where their name leads.
//
// The exported name leaves the caller's registers and stack as they are, as exported_calls.hpp
// does: PERDURE_EXPORT_LENDING. PERDURE_LEND_JUMP once in each .cpp
// file that exports such names. Memory of a type that is not one of MPI's own is not looked for:
// then all memory counts as lent. The MPI library's own calls lend nothing: they are of its memory,
// or of a call of the program's that lends.
//
// Threads: any.
#pragma once

#include <atomic>

#include "mpi/exported_calls.hpp"
#include "mpi/taken_call.hpp"

namespace perdure {

// Places of arguments, below 6; -1: none. Without a buffer: all memory.
struct LendingCall {
  void (*bind)();     // finds where the calls of its kind lead
  const char* name;   // MPI_X
  bool wide = false;  // its count has 64 bits
  int first = -1;
  int second = -1;
  int count = -1;
  int type = -1;
};

}  // namespace perdure

// Where the call goes on to. `registers`: as PERDURE_LEND_JUMP has saved them.
extern "C" [[gnu::visibility("hidden")]] void* perdure_lend(const perdure::LendingCall* call,
                                                            const unsigned long* registers,
                                                            const std::atomic<void*>* to);

#if defined(__x86_64__)

#define PERDURE_EXPORT_LENDING_JUMP(name, call, to)                     \
  PERDURE_ASM_NAME(name, "endbr64\nleaq " call "(%rip), %r10\nleaq " to \
                         "(%rip), %r11\njmp perdure_lend_jump\n2:\n")
#define PERDURE_LEND_JUMP                                                      \
  __asm__(                                                                     \
      ".text\n.type perdure_lend_jump, %function\n"                            \
      "perdure_lend_jump:\n.cfi_startproc\n"                                   \
      "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"            \
      "movq %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"                          \
      "pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\n" \
      "movq %r10, %rdi\nmovq %rsp, %rsi\nmovq %r11, %rdx\n"                    \
      "call perdure_lend\nmovq %rax, %r11\n"                                   \
      "popq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\n"       \
      "popq %rbp\n.cfi_def_cfa %rsp, 8\njmp *%r11\n"                           \
      ".cfi_endproc\n.size perdure_lend_jump, . - perdure_lend_jump\n");

#elif defined(__aarch64__)

#define PERDURE_EXPORT_LENDING_JUMP(name, call, to)                                            \
  PERDURE_ASM_NAME(name,                                                                       \
                   "hint #34\nadrp x16, " call "\nadd x16, x16, :lo12:" call "\nadrp x17, " to \
                   "\nadd x17, x17, :lo12:" to "\nb perdure_lend_jump\n2:\n")
#define PERDURE_LEND_JUMP                                             \
  __asm__(                                                            \
      ".text\n.type perdure_lend_jump, %function\n"                   \
      "perdure_lend_jump:\n.cfi_startproc\n"                          \
      "stp x29, x30, [sp, #-80]!\n.cfi_def_cfa_offset 80\n"           \
      ".cfi_offset x29, -80\n.cfi_offset x30, -72\nmov x29, sp\n"     \
      "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\n"                \
      "stp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"                \
      "mov x0, x16\nmov x1, sp\nmov x2, x17\nbl perdure_lend\n"       \
      "mov x16, x0\nldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\n"   \
      "ldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\n"                \
      "ldp x29, x30, [sp], #80\n.cfi_restore x29\n.cfi_restore x30\n" \
      ".cfi_def_cfa_offset 0\nbr x16\n"                               \
      ".cfi_endproc\n.size perdure_lend_jump, . - perdure_lend_jump\n");

#endif

// MPI_X and PMPI_X; then `bind`, whether its count is wide, and the places.
#define PERDURE_EXPORT_LENDING(x, bind, ...)                                                       \
  extern "C"                                                                                       \
      [[gnu::used, gnu::visibility("hidden")]] constexpr perdure::LendingCall perdure_lending_##x{ \
          bind, "MPI_" #x, __VA_ARGS__};                                                           \
  PERDURE_EXPORT_LENDING_JUMP("MPI_" #x, "perdure_lending_" #x, "perdure_taken_" #x)               \
  PERDURE_EXPORT_LENDING_JUMP("PMPI_" #x, "perdure_lending_" #x, "perdure_taken_" #x "+8")
