// SPDX-License-Identifier: BSD-3-Clause
//
// Exports names of MPI as jumps: MPI_X leads to where perdure_taken_X says (taken_call.hpp), with
// the caller's registers, stack and return address as they are.
//
// In assembly, because a function of C++ would have to know the types of the arguments, and those
// of handles differ from MPI to MPI: int in one, a pointer in another. Calls of MPI pass no
// floating point numbers, so only the other registers of arguments are kept over the first call.
//
// For a .cpp file that is compiled into the shared library itself:
//   PERDURE_FIRST_CALLS(function)   void* function(const std::atomic<void*>* to, const char* name):
//                                   called by a name that leads nowhere yet, returns where to go
//   PERDURE_EXPORT_CALL(X)          MPI_X and PMPI_X
//   PERDURE_EXPORT_UNPROFILED(X)    MPI_X alone
//   PERDURE_EXPORT_LENDING_JUMP, PERDURE_LEND_JUMP: for lending.hpp, which sees the registers
#pragma once

#include "mpi/taken_call.hpp"

#define PERDURE_ASM_NAME(name, body)                                             \
  __asm__(".text\n.p2align 4\n.globl " name "\n.type " name ", %function\n" name \
          ":\n.cfi_startproc\n" body ".cfi_endproc\n.size " name ", . - " name   \
          "\n.pushsection .rodata.str1.1, \"aMS\", %progbits, 1\n2:\n"           \
          ".asciz \"" name "\"\n.popsection\n");

#if defined(__x86_64__)

#define PERDURE_EXPORT_JUMP(name, to)      \
  PERDURE_ASM_NAME(name,                   \
                   "endbr64\n"             \
                   "movq " to              \
                   "(%rip), %r11\n"        \
                   "testq %r11, %r11\n"    \
                   "je 1f\n"               \
                   "jmp *%r11\n"           \
                   "1: leaq " to           \
                   "(%rip), %r11\n"        \
                   "leaq 2f(%rip), %r10\n" \
                   "jmp perdure_first_jump\n")

#define PERDURE_FIRST_CALLS(function)                                          \
  __asm__(                                                                     \
      ".text\n.type perdure_first_jump, %function\n"                           \
      "perdure_first_jump:\n.cfi_startproc\n"                                  \
      "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"            \
      "movq %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"                          \
      "pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\n" \
      "movq %r11, %rdi\nmovq %r10, %rsi\n"                                     \
      "call " #function                                                        \
      "\n"                                                                     \
      "movq %rax, %r11\n"                                                      \
      "popq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\n"       \
      "popq %rbp\n.cfi_def_cfa %rsp, 8\n"                                      \
      "jmp *%r11\n"                                                            \
      ".cfi_endproc\n.size perdure_first_jump, . - perdure_first_jump\n");

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

#define PERDURE_EXPORT_JUMP(name, to)                             \
  PERDURE_ASM_NAME(name,                                          \
                   "hint #34\n"                                   \
                   "adrp x16, " to "\nldr x16, [x16, :lo12:" to   \
                   "]\n"                                          \
                   "cbz x16, 1f\n"                                \
                   "br x16\n"                                     \
                   "1: adrp x16, " to "\nadd x16, x16, :lo12:" to \
                   "\n"                                           \
                   "adrp x17, 2f\nadd x17, x17, :lo12:2f\n"       \
                   "b perdure_first_jump\n")

#define PERDURE_FIRST_CALLS(function)                                 \
  __asm__(                                                            \
      ".text\n.type perdure_first_jump, %function\n"                  \
      "perdure_first_jump:\n.cfi_startproc\n"                         \
      "stp x29, x30, [sp, #-80]!\n.cfi_def_cfa_offset 80\n"           \
      ".cfi_offset x29, -80\n.cfi_offset x30, -72\nmov x29, sp\n"     \
      "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\n"                \
      "stp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"                \
      "mov x0, x16\nmov x1, x17\nbl " #function                       \
      "\nmov x16, x0\n"                                               \
      "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\n"                \
      "ldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\n"                \
      "ldp x29, x30, [sp], #80\n.cfi_restore x29\n.cfi_restore x30\n" \
      ".cfi_def_cfa_offset 0\nbr x16\n"                               \
      ".cfi_endproc\n.size perdure_first_jump, . - perdure_first_jump\n");

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

#else
#error "the jumps of exported names are written for x86-64 and aarch64 only"
#endif

#define PERDURE_EXPORT_UNPROFILED(x) PERDURE_EXPORT_JUMP("MPI_" #x, "perdure_taken_" #x)
#define PERDURE_EXPORT_CALL(x, ...) \
  PERDURE_EXPORT_UNPROFILED(x)      \
  PERDURE_EXPORT_JUMP("PMPI_" #x, "perdure_taken_" #x "+8")
