// perdure_trace_read and perdure_trace_write for LLVM's preserve_mostcc: all general registers but
// r11 are saved around the function of entries.cpp, as the code that calls keeps its values in them.
        .text
        .macro  entry name, target
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        .irp    register, rax, rcx, rdx, rsi, rdi, r8, r9, r10
        pushq   %\register
        .cfi_adjust_cfa_offset 8
        .endr
        subq    $8, %rsp                // the stack is aligned for the call
        .cfi_adjust_cfa_offset 8
        call    \target
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        .irp    register, r10, r9, r8, rdi, rsi, rdx, rcx, rax
        popq    %\register
        .cfi_adjust_cfa_offset -8
        .endr
        ret
        .cfi_endproc
        .size   \name, . - \name
        .endm

        entry   perdure_trace_read, perdure_trace_read_access
        entry   perdure_trace_write, perdure_trace_write_access

        .section .note.GNU-stack, "", @progbits
