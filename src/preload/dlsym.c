/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's dlsym, which programs call in place of the C library's.
 *
 * A name that is no hook's goes to the real dlsym by a jump, not by a call: with RTLD_NEXT and
 * RTLD_DEFAULT that function looks at its return address to see which object asks, and that must
 * stay the program's. Without this, a library that stands before a function
 * and looks up the next definition of it finds itself and recurses without end.
 *
 * The real dlsym is found by reading the symbol tables of the objects that are loaded, since every
 * other way to ask for it leads through itself or is missing from some C library.
 */
#include "preload/dlsym.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "preload/call_stubs.h"
#include "preload/collectives.h"
#include "preload/symbol_table.h"

/* ---- the real dlsym ---- */

static const char own_address; /* lies in this library */

static bool contains_address(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        ElfW(Addr) begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && address - begin < part->p_memsz)
            return true;
    }
    return false;
}

typedef any_function *dlsym_function(void *handle, const char *name);

struct next_search {
    bool is_behind; /* this library was found */
    uintptr_t address;
};

/* In load order: another preloaded library's comes before the C library's. One that is loaded
 * before this library is passed over, as it calls ours: the two would call each other for ever. */
static int look_into(struct dl_phdr_info *object, size_t size, void *data)
{
    struct next_search *search = data;
    struct symbol_table symbols;
    if (contains_address(object, (uintptr_t)&own_address))
        search->is_behind = true;
    else if (search->is_behind && symbol_table_read(object, &symbols)) {
        uint32_t i = symbol_table_find(&symbols, "dlsym");
        search->address = i ? object->dlpi_addr + symbols.symbol[i].st_value : 0;
    }
    return search->address != 0;
}

static any_function *find_nothing(void *handle, const char *name)
{
    return NULL;
}

/* The assembly below jumps through it. */
__attribute__((visibility("hidden"))) dlsym_function *preload_real_dlsym;

static dlsym_function *real_dlsym(void)
{
    if (!preload_real_dlsym) {
        struct next_search search = {0};
        dl_iterate_phdr(look_into, &search);
        preload_real_dlsym = search.address ? (dlsym_function *)search.address : find_nothing;
    }
    return preload_real_dlsym;
}

any_function *dlsym_real(void *handle, const char *name)
{
    return real_dlsym()(handle, name);
}

any_function *dlsym_next(const char *name)
{
    return real_dlsym()(RTLD_NEXT, name);
}

struct search {
    any_function *function;
    const char *file; /* how its name begins */
    bool is_in_file;
};

static int is_it_there(struct dl_phdr_info *object, size_t size, void *data)
{
    struct search *search = data;
    if (!contains_address(object, (uintptr_t)search->function))
        return 0;
    search->is_in_file = symbol_table_is_of(object, search->file);
    return 1;
}

static bool lies_in(any_function *function, const char *file)
{
    struct search search = {.function = function, .file = file};
    dl_iterate_phdr(is_it_there, &search);
    return search.is_in_file;
}

bool dlsym_is_drivers(any_function *function)
{
    return lies_in(function, "libcuda.so");
}

bool dlsym_lies_in(const void *code, const char *file)
{
    return lies_in((any_function *)(uintptr_t)code, file);
}

bool dlsym_is_nccl(const void *code)
{
    return dlsym_lies_in(code, "libnccl");
}

struct definitions {
    const char *name;
    uintptr_t caller, first, of_caller;
    int count;
};

static int look_for_definition(struct dl_phdr_info *object, size_t size, void *data)
{
    struct definitions *found = data;
    struct symbol_table symbols;
    if (contains_address(object, (uintptr_t)&own_address) || !symbol_table_read(object, &symbols))
        return 0;
    uint32_t i = symbol_table_find(&symbols, found->name);
    if (!i)
        return 0;
    uintptr_t address = object->dlpi_addr + symbols.symbol[i].st_value;
    if (found->count++ == 0)
        found->first = address;
    if (contains_address(object, found->caller))
        found->of_caller = address;
    return 0;
}

any_function *dlsym_loaded(const char *name, const void *caller, bool *ret_is_only)
{
    struct definitions found = {.name = name, .caller = (uintptr_t)caller};
    dl_iterate_phdr(look_for_definition, &found);
    *ret_is_only = found.count == 1;
    return (any_function *)(found.of_caller ? found.of_caller : found.first);
}

/* ---- the library's ---- */

struct dlsym_answer {
    any_function *function;
    uint64_t is_final; /* 0: the real dlsym is to answer */
};

/* What the assembly below calls. */
struct dlsym_answer preload_dlsym_answer(void *handle, const char *name, any_function *caller);

/* A function of the file that has no hook, by a handle: with a handle, dlsym does not look at the
 * caller. */
static struct dlsym_answer stub_answer(
    void *handle, const char *name, any_function *caller, const char *file)
{
    struct dlsym_answer answer = {NULL, 0};
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || lies_in(caller, file))
        return answer;
    any_function *function = real_dlsym()(handle, name);
    if (!function || !lies_in(function, file))
        return answer;
    answer.function = call_stub_before(name, function);
    answer.is_final = 1;
    return answer;
}

static bool begins_with(const char *name, const char *start)
{
    while (*start && *name == *start)
        name++, start++;
    return !*start;
}

/* Functions of hooks_collectives.c that an NCCL before 2.28 does not have. */
static bool is_newer_nccls(const char *name)
{
    static const char *const newer[] = {"ncclAlltoAll", "ncclGather", "ncclScatter"};
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (begins_with(name, newer[i]) && !name[strlen(newer[i])])
            return true;
    return false;
}

/* A program asks whether the function is there: our export does not answer for NCCL. */
static bool is_missing_in_nccl(const char *name)
{
    bool is_only;
    return is_newer_nccls(name) && !dlsym_loaded(name, NULL, &is_only);
}

/* A program that finds NCCL's functions in the file of NCCL calls them past ours. */
static void note_nccl(void *handle, const char *name)
{
    if (!begins_with(name, "ncclCommInit"))
        return;
    any_function *function = real_dlsym()(handle, name);
    if (function && !lies_in(function, "libcolloc-preload"))
        collectives_note_other();
}

/*
 * RTLD_NEXT is always the real one's: an object that looks for the next definition of a hook's name
 * stands itself before the driver, behind us. So are the driver's own questions: the one of WSL is
 * two libraries, and hooks between them would call themselves. RTLD_DEFAULT would find our own
 * export also where there is no driver.
 */
__attribute__((visibility("hidden"), used)) struct dlsym_answer preload_dlsym_answer(
    void *handle, const char *name, any_function *caller)
{
    struct dlsym_answer answer = {NULL, 0};
    dlsym_function *dlsym_of_libc = real_dlsym();
    bool is_by_handle = handle != RTLD_NEXT && handle != RTLD_DEFAULT;
    bool is_nccl = name && begins_with(name, "nccl");
    if (is_nccl && is_by_handle)
        note_nccl(handle, name);
    if (is_nccl && handle != RTLD_NEXT && is_missing_in_nccl(name)) {
        answer.function = dlsym_of_libc(RTLD_NEXT, name); /* none, and dlerror says so */
        answer.is_final = 1;
    }
    if (name && name[0] == 'n' && name[1] == 'v' && name[2] == 'm' && name[3] == 'l')
        return stub_answer(handle, name, caller, "libnvidia-ml.so");
    if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT)
        return answer;
    int hook = hook_find(name);
    if (hook < 0)
        return stub_answer(handle, name, caller, "libcuda.so");
    if (dlsym_is_drivers(caller))
        return answer;
    any_function *function = handle == RTLD_DEFAULT ? NULL : dlsym_of_libc(handle, name);
    if (handle == RTLD_DEFAULT || function == hook_function((enum hook)hook))
        function = dlsym_of_libc(RTLD_NEXT, name);
    if (function)
        answer.function = call_stub_before(name, hook_stand_before((enum hook)hook, function));
    answer.is_final = 1;
    return answer;
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    subq $24, %rsp\n"
        "    .cfi_adjust_cfa_offset 24\n"
        "    movq %rdi, 0(%rsp)\n"
        "    movq %rsi, 8(%rsp)\n"
        "    movq 24(%rsp), %rdx\n"
        "    call preload_dlsym_answer\n"
        "    movq 0(%rsp), %rdi\n"
        "    movq 8(%rsp), %rsi\n"
        "    addq $24, %rsp\n"
        "    .cfi_adjust_cfa_offset -24\n"
        "    testq %rdx, %rdx\n"
        "    jnz 1f\n"
        "    jmpq *preload_real_dlsym(%rip)\n"
        "1:  ret\n"
        "    .cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, #-32]!\n"
        "    .cfi_def_cfa_offset 32\n"
        "    .cfi_offset 29, -32\n"
        "    .cfi_offset 30, -24\n"
        "    stp x0, x1, [sp, #16]\n"
        "    mov x2, x30\n"
        "    bl preload_dlsym_answer\n"
        "    mov x2, x0\n"
        "    mov x3, x1\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .cfi_restore 29\n"
        "    .cfi_restore 30\n"
        "    cbnz x3, 1f\n"
        "    adrp x16, preload_real_dlsym\n" /* by x16 one may jump to "bti c" */
        "    ldr x16, [x16, #:lo12:preload_real_dlsym]\n"
        "    br x16\n"
        "1:  mov x0, x2\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#else
#error "libcolloc-preload.so is for x86_64 and aarch64"
#endif
