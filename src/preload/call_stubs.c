/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each stub loads its number and jumps to the common code below, which
 *
 *     sets page->called            unless it is set already: threads then only read that line
 *     waits if page->gate is 1     registers that may hold arguments are saved around it
 *     jumps to targets[number]
 *
 * It touches only registers that every calling convention leaves to such code: r10 and r11; x9 to
 * x11 and x16, by which a function that begins with "bti c" may be jumped to. A forked child looks
 * at its parent's page until it calls CUDA itself: it makes the parent look busy, or waits with it,
 * which harms neither.
 *
 * A counted stub calls instead of jumping, so that it sees the function return:
 *
 *     preload_call_counts[thread's slot] += 1     one instruction, in one step for all cores
 *     if the gate is closed: -= 1, wait for it, and begin again
 *     calls targets[number]                       with a copy of the caller's stack arguments
 *     preload_call_counts[thread's slot] -= 1
 *
 * The slot follows from the address of the thread's own data, so that threads seldom write the same
 * line of memory; two threads in one slot are no harm. It costs about 10 ns more than a jump.
 */
#include "preload/call_stubs.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "preload/gate.h"
#include "preload/protocol.h"

/* What the assembly reads. */
#define HIDDEN __attribute__((visibility("hidden"), used))
static struct preload_page no_page; /* the gate is open */
HIDDEN _Atomic(struct preload_page *) preload_stub_page = &no_page;
HIDDEN _Atomic(any_function *) preload_stub_targets[CALL_STUBS_MAX];
HIDDEN _Atomic(any_function *) preload_counted_targets[CALL_STUBS_MAX];
HIDDEN void preload_stub_wait(void);
extern const char preload_stubs[] __attribute__((visibility("hidden")));
extern const char preload_counted_stubs[] __attribute__((visibility("hidden")));

/* Calls in flight, by slots of a line of the cache each. */
enum { COUNT_SLOTS = 256 };
HIDDEN struct {
    _Alignas(64) _Atomic uint32_t calls;
} preload_call_counts[COUNT_SLOTS];

_Static_assert(offsetof(struct preload_page, gate) == 8, "in the assembly");
_Static_assert(offsetof(struct preload_page, called) == 68, "in the assembly");
_Static_assert(PRELOAD_GATE_CLOSED == 1, "in the assembly");
_Static_assert(CALL_STUBS_MAX == 1024, "in the assembly");
_Static_assert(COUNT_SLOTS == 256 && sizeof(preload_call_counts[0]) == 64, "in the assembly");

enum { STUB_SIZE = 16 };

/* Counted stubs are written for x86_64 only so far. */
#if defined(__x86_64__)
enum { CAN_COUNT = 1 };
#else
enum { CAN_COUNT = 0 };
#endif

/* A function got no stub: its calls are not seen. */
static bool has_uncounted;

/* They need no GPU, and answer while the process is suspended. */
static bool never_waits(const char *symbol)
{
    static const char *const beginnings[] = {
        "cuGetError", "cuGetProcAddress", "cuGetExportTable", "cuDriverGetVersion", "cuCheckpoint"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(symbol, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

struct stub_set {
    _Atomic(any_function *) *targets;
    const char *code;
};

/* Without a lock: the child of a fork may find one held. */
static any_function *stub_of(const struct stub_set *set, any_function *function)
{
    for (int i = 0; i < CALL_STUBS_MAX; i++) {
        any_function *there = NULL;
        if (atomic_compare_exchange_strong(&set->targets[i], &there, function) || there == function)
            return (any_function *)(uintptr_t)(set->code + (size_t)i * STUB_SIZE);
    }
    return NULL;
}

any_function *call_stub_before(const char *symbol, any_function *function)
{
    static const struct stub_set plain = {preload_stub_targets, preload_stubs};
    if (!function || never_waits(symbol))
        return function;
    if (strncmp(symbol, "cu", 2) == 0 && !hook_is_own(function)) {
        any_function *counted = call_stub_counted(symbol, function);
        if (counted != function)
            return counted;
    }
    any_function *stub = stub_of(&plain, function);
    return stub ? stub : function;
}

any_function *call_stub_counted(const char *symbol, any_function *function)
{
    static const struct stub_set counted = {preload_counted_targets, preload_counted_stubs};
    if (!calls_are_counted() || never_waits(symbol))
        return function;
    any_function *stub = stub_of(&counted, function);
    has_uncounted |= !stub;
    return stub ? stub : function;
}

/* ---- counting ---- */

bool calls_are_counted(void)
{
    static _Atomic int answer; /* 0: not known, 1: no, 2: yes */
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (!known) {
        const char *text = getenv(PRELOAD_CARRIER_VARIABLE);
        known = CAN_COUNT && text && strcmp(text, "1") == 0 ? 2 : 1;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == 2;
}

/* As the assembly below finds it. GCC has a builtin for it since version 11 only. */
static uintptr_t own_thread(void)
{
#if defined(__x86_64__)
    uintptr_t thread;
    __asm__("movq %%fs:0, %0" : "=r"(thread));
    return thread;
#else
    return (uintptr_t)__builtin_thread_pointer();
#endif
}

static _Atomic uint32_t *own_count(void)
{
    uintptr_t thread = own_thread();
    return &preload_call_counts[(thread >> 12) % COUNT_SLOTS].calls;
}

void calls_enter(void)
{
    atomic_fetch_add(own_count(), 1);
}

void calls_leave(void)
{
    atomic_fetch_sub(own_count(), 1);
}

bool calls_are_in_flight(void)
{
    for (int i = 0; i < COUNT_SLOTS; i++)
        if (atomic_load(&preload_call_counts[i].calls))
            return true;
    return has_uncounted;
}

void call_stubs_use(struct preload_page *page)
{
    atomic_fetch_or(&page->flags, PRELOAD_COUNTS_CALLS);
    atomic_store_explicit(&preload_stub_page, page, memory_order_release);
}

void preload_stub_wait(void)
{
    struct process_state *state = process_state_peek();
    if (state)
        gate_wait(state);
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden preload_stubs\n"
        ".globl preload_stubs\n"
        ".type preload_stubs, @function\n"
        "preload_stubs:\n"
        ".set number, 0\n"
        ".rept 1024\n"
        "    .p2align 4\n"
        "    endbr64\n"
        "    movl $number, %r11d\n"
        "    jmp preload_stub_common\n"
        "    .set number, number + 1\n"
        ".endr\n"
        ".p2align 4\n"
        "preload_stub_common:\n"
        "    .cfi_startproc\n"
        "    movq preload_stub_page(%rip), %r10\n"
        "    cmpl $0, 68(%r10)\n"
        "    jne 1f\n"
        "    movl $1, 68(%r10)\n"
        "1:  cmpl $1, 8(%r10)\n"
        "    je 2f\n"
        "    leaq preload_stub_targets(%rip), %r10\n"
        "    jmpq *(%r10, %r11, 8)\n"
        "2:  subq $200, %rsp\n"
        "    .cfi_adjust_cfa_offset 200\n"
        "    movq %rdi, 0(%rsp)\n"
        "    movq %rsi, 8(%rsp)\n"
        "    movq %rdx, 16(%rsp)\n"
        "    movq %rcx, 24(%rsp)\n"
        "    movq %r8, 32(%rsp)\n"
        "    movq %r9, 40(%rsp)\n"
        "    movq %r11, 48(%rsp)\n"
        "    movq %rax, 56(%rsp)\n"
        "    movups %xmm0, 64(%rsp)\n"
        "    movups %xmm1, 80(%rsp)\n"
        "    movups %xmm2, 96(%rsp)\n"
        "    movups %xmm3, 112(%rsp)\n"
        "    movups %xmm4, 128(%rsp)\n"
        "    movups %xmm5, 144(%rsp)\n"
        "    movups %xmm6, 160(%rsp)\n"
        "    movups %xmm7, 176(%rsp)\n"
        "    call preload_stub_wait\n"
        "    movups 176(%rsp), %xmm7\n"
        "    movups 160(%rsp), %xmm6\n"
        "    movups 144(%rsp), %xmm5\n"
        "    movups 128(%rsp), %xmm4\n"
        "    movups 112(%rsp), %xmm3\n"
        "    movups 96(%rsp), %xmm2\n"
        "    movups 80(%rsp), %xmm1\n"
        "    movups 64(%rsp), %xmm0\n"
        "    movq 56(%rsp), %rax\n"
        "    movq 48(%rsp), %r11\n"
        "    movq 40(%rsp), %r9\n"
        "    movq 32(%rsp), %r8\n"
        "    movq 24(%rsp), %rcx\n"
        "    movq 16(%rsp), %rdx\n"
        "    movq 8(%rsp), %rsi\n"
        "    movq 0(%rsp), %rdi\n"
        "    addq $200, %rsp\n"
        "    .cfi_adjust_cfa_offset -200\n"
        "    leaq preload_stub_targets(%rip), %r10\n"
        "    jmpq *(%r10, %r11, 8)\n"
        "    .cfi_endproc\n"
        ".size preload_stubs, . - preload_stubs\n"
        /* The counted stubs. Twelve words of stack arguments: the driver's functions have ten at
         * most (cuTensorMapEncodeIm2colWide), a handle passed by value eight. */
        ".p2align 4\n"
        ".hidden preload_counted_stubs\n"
        ".globl preload_counted_stubs\n"
        ".type preload_counted_stubs, @function\n"
        "preload_counted_stubs:\n"
        ".set number, 0\n"
        ".rept 1024\n"
        "    .p2align 4\n"
        "    endbr64\n"
        "    movl $number, %r11d\n"
        "    jmp preload_counted_common\n"
        "    .set number, number + 1\n"
        ".endr\n"
        ".p2align 4\n"
        "preload_counted_common:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_rel_offset %rbp, 0\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    pushq %rbx\n"
        "    .cfi_offset %rbx, -24\n"
        "    pushq %r11\n"
        "    movq %fs:0, %rbx\n"
        "    shrq $12, %rbx\n"
        "    andl $255, %ebx\n"
        "    shll $6, %ebx\n"
        "    leaq preload_call_counts(%rip), %r10\n"
        "    addq %r10, %rbx\n"
        "3:  lock incl (%rbx)\n"
        "    movq preload_stub_page(%rip), %r10\n"
        "    cmpl $0, 68(%r10)\n"
        "    jne 1f\n"
        "    movl $1, 68(%r10)\n"
        "1:  cmpl $1, 8(%r10)\n"
        "    je 2f\n"
        "    movq -16(%rbp), %r11\n"
        ".set offset, 104\n"
        ".rept 12\n"
        "    pushq offset(%rbp)\n"
        "    .set offset, offset - 8\n"
        ".endr\n"
        "    leaq preload_counted_targets(%rip), %r10\n"
        "    callq *(%r10, %r11, 8)\n"
        "    lock decl (%rbx)\n"
        "    movq -8(%rbp), %rbx\n"
        "    leave\n"
        "    .cfi_remember_state\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    .cfi_restore %rbp\n"
        "    .cfi_restore %rbx\n"
        "    ret\n"
        "    .cfi_restore_state\n"
        "2:  lock decl (%rbx)\n"
        "    subq $192, %rsp\n"
        "    movq %rdi, 0(%rsp)\n"
        "    movq %rsi, 8(%rsp)\n"
        "    movq %rdx, 16(%rsp)\n"
        "    movq %rcx, 24(%rsp)\n"
        "    movq %r8, 32(%rsp)\n"
        "    movq %r9, 40(%rsp)\n"
        "    movq %rax, 48(%rsp)\n"
        "    movups %xmm0, 64(%rsp)\n"
        "    movups %xmm1, 80(%rsp)\n"
        "    movups %xmm2, 96(%rsp)\n"
        "    movups %xmm3, 112(%rsp)\n"
        "    movups %xmm4, 128(%rsp)\n"
        "    movups %xmm5, 144(%rsp)\n"
        "    movups %xmm6, 160(%rsp)\n"
        "    movups %xmm7, 176(%rsp)\n"
        "    call preload_stub_wait\n"
        "    movups 176(%rsp), %xmm7\n"
        "    movups 160(%rsp), %xmm6\n"
        "    movups 144(%rsp), %xmm5\n"
        "    movups 128(%rsp), %xmm4\n"
        "    movups 112(%rsp), %xmm3\n"
        "    movups 96(%rsp), %xmm2\n"
        "    movups 80(%rsp), %xmm1\n"
        "    movups 64(%rsp), %xmm0\n"
        "    movq 48(%rsp), %rax\n"
        "    movq 40(%rsp), %r9\n"
        "    movq 32(%rsp), %r8\n"
        "    movq 24(%rsp), %rcx\n"
        "    movq 16(%rsp), %rdx\n"
        "    movq 8(%rsp), %rsi\n"
        "    movq 0(%rsp), %rdi\n"
        "    addq $192, %rsp\n"
        "    jmp 3b\n"
        "    .cfi_endproc\n"
        ".size preload_counted_stubs, . - preload_counted_stubs\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden preload_stubs\n"
        ".globl preload_stubs\n"
        ".type preload_stubs, %function\n"
        "preload_stubs:\n"
        ".set number, 0\n"
        ".rept 1024\n"
        "    .p2align 4\n"
        "    hint #34\n" /* bti c */
        "    mov w9, #number\n"
        "    b preload_stub_common\n"
        "    .set number, number + 1\n"
        ".endr\n"
        ".p2align 4\n"
        "preload_stub_common:\n"
        "    .cfi_startproc\n"
        "    adrp x10, preload_stub_page\n"
        "    ldr x10, [x10, #:lo12:preload_stub_page]\n"
        "    ldr w11, [x10, #68]\n"
        "    cbnz w11, 1f\n"
        "    mov w11, #1\n"
        "    str w11, [x10, #68]\n"
        "1:  ldr w11, [x10, #8]\n"
        "    cmp w11, #1\n"
        "    b.eq 2f\n"
        "    adrp x10, preload_stub_targets\n"
        "    add x10, x10, #:lo12:preload_stub_targets\n"
        "    ldr x16, [x10, x9, lsl #3]\n"
        "    br x16\n"
        "2:  stp x29, x30, [sp, #-224]!\n"
        "    .cfi_def_cfa_offset 224\n"
        "    .cfi_offset 29, -224\n"
        "    .cfi_offset 30, -216\n"
        "    stp x0, x1, [sp, #16]\n"
        "    stp x2, x3, [sp, #32]\n"
        "    stp x4, x5, [sp, #48]\n"
        "    stp x6, x7, [sp, #64]\n"
        "    stp x8, x9, [sp, #80]\n"
        "    stp q0, q1, [sp, #96]\n"
        "    stp q2, q3, [sp, #128]\n"
        "    stp q4, q5, [sp, #160]\n"
        "    stp q6, q7, [sp, #192]\n"
        "    bl preload_stub_wait\n"
        "    ldp q6, q7, [sp, #192]\n"
        "    ldp q4, q5, [sp, #160]\n"
        "    ldp q2, q3, [sp, #128]\n"
        "    ldp q0, q1, [sp, #96]\n"
        "    ldp x8, x9, [sp, #80]\n"
        "    ldp x6, x7, [sp, #64]\n"
        "    ldp x4, x5, [sp, #48]\n"
        "    ldp x2, x3, [sp, #32]\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #224\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .cfi_restore 29\n"
        "    .cfi_restore 30\n"
        "    adrp x10, preload_stub_targets\n"
        "    add x10, x10, #:lo12:preload_stub_targets\n"
        "    ldr x16, [x10, x9, lsl #3]\n"
        "    br x16\n"
        "    .cfi_endproc\n"
        ".size preload_stubs, . - preload_stubs\n");
/* No stub is counted there (CAN_COUNT). */
const char preload_counted_stubs[1];
#else
#error "libcolloc-preload.so is for x86_64 and aarch64"
#endif
