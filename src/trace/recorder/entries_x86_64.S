// perdure_trace_read, _write, _read_miss and _write_miss for LLVM's preserve_mostcc: all general registers but r11 are
// saved around the function of entries.cpp, as the code that calls keeps its values in them.
//
// Misses have a short way: the thread's misses are only to be appended to its batch
// (MissPath in stream.hpp), and there is room. It does what the function would. `busy` is set
// meanwhile, as a signal's handler may come in between any two of these instructions.
        .text

        .set    path, 0                 // ThreadState (process.hpp)
        .set    busy, 16
        .set    next, 0                 // MissPath (stream.hpp)
        .set    end, 8
        .set    line_bytes, 64          // of PERDURE_TRACE_LINE_SHIFT

        // Around the function \target; the stack is aligned for the call.
        .macro  saved_call target
        .irp    register, rax, rcx, rdx, rsi, rdi, r8, r9, r10
        pushq   %\register
        .cfi_adjust_cfa_offset 8
        .endr
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    \target
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        .irp    register, r10, r9, r8, rdi, rsi, rdx, rcx, rax
        popq    %\register
        .cfi_adjust_cfa_offset -8
        .endr
        ret
        .endm

        .macro  begin name
        .globl  \name
        .type   \name, @function
        .p2align 5
\name:
        .cfi_startproc
        endbr64
        .endm

        .macro  finish name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   perdure_trace_read
        saved_call perdure_trace_read_access
        finish  perdure_trace_read

        begin   perdure_trace_write
        saved_call perdure_trace_write_access
        finish  perdure_trace_write

        .macro  miss name, target, is_write
        begin   \name                   // rdi: the entry, rsi: the address
        movq    thread_state@gottpoff(%rip), %r11
        pushq   %rax
        .cfi_adjust_cfa_offset 8
        cmpb    $0, %fs:busy(%r11)
        jne     2f
        pushq   %rcx
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        movq    %fs:path(%r11), %rcx
        testq   %rcx, %rcx
        jz      1f
        movb    $1, %fs:busy(%r11)
        movq    next(%rcx), %rax
        movq    $-line_bytes, %rdx
        cmpq    end(%rcx), %rax
        je      1f
        andq    %rsi, %rdx
        movq    %rdx, (%rdi)
        .if     \is_write
        orq     $1, %rdx
        .endif
        movq    %rdx, (%rax)
        addq    $8, %rax
        movq    %rax, next(%rcx)        // after the word, for threads that read along
        movb    $0, %fs:busy(%r11)
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        popq    %rax
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_adjust_cfa_offset 24
1:      movb    $0, %fs:busy(%r11)
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rcx
        .cfi_adjust_cfa_offset -8
2:      popq    %rax
        .cfi_adjust_cfa_offset -8
        saved_call \target
        finish  \name
        .endm

        .hidden thread_state
        miss    perdure_trace_read_miss, perdure_trace_read_miss_access, 0
        miss    perdure_trace_write_miss, perdure_trace_write_miss_access, 1

        .section .note.GNU-stack, "", @progbits
