/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See guard.h. Arguments come in rdi, rsi, rdx, rcx, r8, r9; the copies use these, rax, r8 to r11 and
 * vectors, all of which belong to the called function.
 */
#ifdef __x86_64__

    .text

/* What may fault between `begin` and here goes on at `landing`. `call`: in code that guard_call has
 * called. The table holds distances, so nothing in it is relocated when a library is loaded. */
    .macro  FIXUP begin, end, landing, call=0
    .pushsection urnic_fixups, "a", @progbits
    .balign 4
    .long   \begin - .
    .long   \end - .
    .long   \landing - .
    .long   \call
    .popsection
    .endm

    .macro  FUNCTION name
    .globl  \name
    .hidden \name
    .type   \name, @function
    .balign 64
\name:
    .cfi_startproc
    .endm

    .macro  END name
    .cfi_endproc
    .size   \name, . - \name
    .endm

/* rdi <- rsi, rdx octets, by vectors of `size` octets: registers `v`0 to `v`8, moved by `mov`. Both
 * ends are copied by vectors that may overlap what lies between them, in front of the end the rest
 * by four aligned stores a turn. */
    .macro  COPY name, v, mov, size, done
    FUNCTION \name
    cmp     $16, %rdx
    jb      .Lsmall_\name
    cmp     $(2 * \size), %rdx
    ja      .Lmany_\name
    .if     \size > 16
    cmp     $32, %rdx
    jbe     .Ltwo16_\name
    .endif
    .if     \size > 32
    cmp     $64, %rdx
    jbe     .Ltwo32_\name
    .endif
    \mov    (%rsi), %\v\()0
    \mov    -\size(%rsi,%rdx), %\v\()1
    \mov    %\v\()0, (%rdi)
    \mov    %\v\()1, -\size(%rdi,%rdx)
    \done
    xor     %eax, %eax
    ret
    .if     \size > 16
.Ltwo16_\name:
    vmovdqu (%rsi), %xmm0
    vmovdqu -16(%rsi,%rdx), %xmm1
    vmovdqu %xmm0, (%rdi)
    vmovdqu %xmm1, -16(%rdi,%rdx)
    xor     %eax, %eax
    ret
    .endif
    .if     \size > 32
.Ltwo32_\name:
    vmovdqu (%rsi), %ymm0
    vmovdqu -32(%rsi,%rdx), %ymm1
    vmovdqu %ymm0, (%rdi)
    vmovdqu %ymm1, -32(%rdi,%rdx)
    \done
    xor     %eax, %eax
    ret
    .endif

.Lmany_\name:
    cmp     $(4 * \size), %rdx
    ja      .Lmore_\name
    \mov    (%rsi), %\v\()0
    \mov    \size(%rsi), %\v\()1
    \mov    (-2 * \size)(%rsi,%rdx), %\v\()2
    \mov    -\size(%rsi,%rdx), %\v\()3
    \mov    %\v\()0, (%rdi)
    \mov    %\v\()1, \size(%rdi)
    \mov    %\v\()2, (-2 * \size)(%rdi,%rdx)
    \mov    %\v\()3, -\size(%rdi,%rdx)
    \done
    xor     %eax, %eax
    ret

.Lmore_\name:
    \mov    (%rsi), %\v\()8
    \mov    (-4 * \size)(%rsi,%rdx), %\v\()4
    \mov    (-3 * \size)(%rsi,%rdx), %\v\()5
    \mov    (-2 * \size)(%rsi,%rdx), %\v\()6
    \mov    -\size(%rsi,%rdx), %\v\()7
    lea     (-4 * \size)(%rdi,%rdx), %r8  /* where the last four vectors go */
    lea     \size(%rdi), %rcx
    and     $-\size, %rcx
    \mov    %\v\()8, (%rdi)
    sub     %rdi, %rsi
    cmp     %r8, %rcx
    jae     .Ltail_\name
    .balign 32
.Lloop_\name:
    \mov    (%rsi,%rcx), %\v\()0
    \mov    \size(%rsi,%rcx), %\v\()1
    \mov    (2 * \size)(%rsi,%rcx), %\v\()2
    \mov    (3 * \size)(%rsi,%rcx), %\v\()3
    \mov    %\v\()0, (%rcx)
    \mov    %\v\()1, \size(%rcx)
    \mov    %\v\()2, (2 * \size)(%rcx)
    \mov    %\v\()3, (3 * \size)(%rcx)
    add     $(4 * \size), %rcx
    cmp     %r8, %rcx
    jb      .Lloop_\name
.Ltail_\name:
    \mov    %\v\()4, (%r8)
    \mov    %\v\()5, \size(%r8)
    \mov    %\v\()6, (2 * \size)(%r8)
    \mov    %\v\()7, (3 * \size)(%r8)
    \done
    xor     %eax, %eax
    ret

.Lsmall_\name:
    cmp     $8, %edx
    ja      .Lover8_\name
    je      .Leight_\name
    cmp     $4, %edx
    ja      .Lover4_\name
    je      .Lfour_\name
    cmp     $2, %edx
    ja      .Lthree_\name
    je      .Lpair_\name
    test    %edx, %edx
    jz      .Lnone_\name
    movzbl  (%rsi), %eax
    mov     %al, (%rdi)
.Lnone_\name:
    xor     %eax, %eax
    ret
.Lpair_\name:
    movzwl  (%rsi), %eax
    mov     %ax, (%rdi)
    xor     %eax, %eax
    ret
.Lthree_\name:
    movzwl  (%rsi), %eax
    movzbl  2(%rsi), %ecx
    mov     %ax, (%rdi)
    mov     %cl, 2(%rdi)
    xor     %eax, %eax
    ret
.Lfour_\name:
    mov     (%rsi), %eax
    mov     %eax, (%rdi)
    xor     %eax, %eax
    ret
.Lover4_\name:
    mov     (%rsi), %eax
    mov     -4(%rsi,%rdx), %ecx
    mov     %eax, (%rdi)
    mov     %ecx, -4(%rdi,%rdx)
    xor     %eax, %eax
    ret
.Leight_\name:
    mov     (%rsi), %rax
    mov     %rax, (%rdi)
    xor     %eax, %eax
    ret
.Lover8_\name:
    mov     (%rsi), %rax
    mov     -8(%rsi,%rdx), %rcx
    mov     %rax, (%rdi)
    mov     %rcx, -8(%rdi,%rdx)
    xor     %eax, %eax
    ret
.Lfault_\name:
    \done
    mov     $-14, %eax /* EFAULT */
    ret
    FIXUP   \name, .Lfault_\name, .Lfault_\name
    END     \name
    .endm

    .macro  NOTHING
    .endm

    COPY    guard_copy_sse, xmm, movdqu, 16, NOTHING
    COPY    guard_copy_avx, ymm, vmovdqu, 32, vzeroupper
    COPY    guard_copy_avx512, zmm, vmovdqu64, 64, vzeroupper

/* int guard_cas(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *orig) */
    FUNCTION guard_cas
    mov     %rsi, %rax
.Lcas:
    lock cmpxchg %rdx, (%rdi)
.Lcas_done:
    FIXUP   .Lcas, .Lcas_done, .Lfault
    mov     %rax, (%rcx)
    xor     %eax, %eax
    ret
    END     guard_cas

/* int guard_fadd(uint64_t *word, uint64_t add, uint64_t *orig) */
    FUNCTION guard_fadd
.Lfadd:
    lock xadd %rsi, (%rdi)
.Lfadd_done:
    FIXUP   .Lfadd, .Lfadd_done, .Lfault
    mov     %rsi, (%rdx)
    xor     %eax, %eax
    ret
    END     guard_fadd

/* int guard_store(uint64_t *word, uint64_t value) */
    FUNCTION guard_store
.Lstore:
    xchg    %rsi, (%rdi)
.Lstore_done:
    FIXUP   .Lstore, .Lstore_done, .Lfault
    xor     %eax, %eax
    ret
.Lfault:
    mov     $-14, %eax
    ret
    END     guard_store

/* int64_t guard_call(struct guard_frame *frame, uint32_t crc, void *dst, const void *src, size_t n,
 *                    guard_fn *fn)
 *
 * The frame says where the stack is while fn runs: directly below lies the address to which fn
 * returns. */
    FUNCTION guard_call
    push    %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov     %rsp, %rbp
    push    %rbx
    .cfi_offset %rbx, -24
    push    %r12
    .cfi_offset %r12, -32
    push    %r13
    .cfi_offset %r13, -40
    push    %r14
    .cfi_offset %r14, -48
    push    %r15
    .cfi_offset %r15, -56
    .cfi_def_cfa %rbp, 16
    push    %rdi
    mov     %rsp, (%rdi)
    mov     %esi, %edi
    mov     %rdx, %rsi
    mov     %rcx, %rdx
    mov     %r8, %rcx
    xor     %ebx, %ebx
    call    *%r9
    mov     %eax, %eax
    or      %rbx, %rax
    .cfi_def_cfa %rsp, 64
    pop     %rcx
    .cfi_def_cfa_offset 56
    movq    $0, (%rcx)
    pop     %r15
    .cfi_def_cfa_offset 48
    pop     %r14
    .cfi_def_cfa_offset 40
    pop     %r13
    .cfi_def_cfa_offset 32
    pop     %r12
    .cfi_def_cfa_offset 24
    pop     %rbx
    .cfi_def_cfa_offset 16
    pop     %rbp
    .cfi_def_cfa_offset 8
    ret
    END     guard_call

/* fn returns: the stack is what it was when guard_call had called it. */
.Lfault_call:
    mov     $-1, %rbx
    ret

/* The compiled functions. The linker says where their section begins and ends, if there is one. */
    .section urnic_guarded, "ax", @progbits
    ud2
    .hidden __start_urnic_guarded
    .hidden __stop_urnic_guarded
    FIXUP   __start_urnic_guarded, __stop_urnic_guarded, .Lfault_call, 1

#endif

    .section .note.GNU-stack, "", @progbits
