/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions of the driver the library replaces. Which form of a function cuGetProcAddress
 * returned is found out by asking it again, for the form that we know: the same address is the same
 * form. So neither an older nor a future form of a function is ever called as if it were ours.
 */
#include "preload/hook_table.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "preload/call_stubs.h"
#include "preload/dlsym.h"
#include "preload/symbol_table.h"

/* Before glibc 2.34 they are in libdl, which not every program has. */
#pragma weak dlopen
#pragma weak dlclose

static const struct hook_entry {
    const char *function, *name;
    int version, streams;
    any_function *replacement;
} entries[HOOK_COUNT] = {
#define HOOK_ENTRY(function, name, version, streams)                                               \
    [HOOK_##function] = {#function, name, version, streams, (any_function *)function},
    HOOK_LIST(HOOK_ENTRY)
#undef HOOK_ENTRY
};

/* The driver's functions, once they are known. The same in a forked child. */
static _Atomic(any_function *) found[HOOK_COUNT];
static _Atomic(any_function *) counted[HOOK_COUNT]; /* the same, or stubs before them */

int hook_find(const char *function)
{
    for (int i = 0; i < HOOK_COUNT; i++)
        if (strcmp(entries[i].function, function) == 0)
            return i;
    return -1;
}

bool hook_is_own(any_function *function)
{
    for (int i = 0; i < HOOK_COUNT; i++)
        if (entries[i].replacement == function)
            return true;
    return false;
}

any_function *hook_function(enum hook hook)
{
    return entries[hook].replacement;
}

any_function *hook_stand_before(enum hook hook, any_function *function)
{
    any_function *before = NULL;
    if (function == entries[hook].replacement)
        return function;
    if (atomic_compare_exchange_strong(&found[hook], &before, function) || before == function)
        return entries[hook].replacement;
    /* The driver's cuGetProcAddress may know it by another address than dlsym. */
    return dlsym_is_drivers(function) ? entries[hook].replacement : function;
}

static CUresult no_function(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

any_function *hook_driver_function(enum hook hook)
{
    any_function *function = atomic_load_explicit(&found[hook], memory_order_relaxed);
    if (function)
        return function;
    function = dlsym_next(entries[hook].function);
    if (!function || function == entries[hook].replacement)
        function = driver_function(entries[hook].function);
    if (!function)
        return (any_function *)no_function;
    atomic_store_explicit(&found[hook], function, memory_order_relaxed);
    return function;
}

any_function *hook_counted_function(enum hook hook)
{
    any_function *function = atomic_load_explicit(&counted[hook], memory_order_relaxed);
    if (function)
        return function;
    function = hook_driver_function(hook);
    if (function == (any_function *)no_function)
        return function;
    function = call_stub_counted(entries[hook].name, function);
    atomic_store_explicit(&counted[hook], function, memory_order_relaxed);
    return function;
}

void hook_find_all(void)
{
    for (int hook = 0; hook < HOOK_COUNT; hook++)
        hook_driver_function((enum hook)hook);
}

struct wanted {
    const char *name;
    any_function *function;
    bool has_driver;
};

static int look_into_driver(struct dl_phdr_info *object, size_t size, void *data)
{
    struct wanted *wanted = data;
    struct symbol_table symbols;
    if (!symbol_table_is_of(object, "libcuda.so") || !symbol_table_read(object, &symbols))
        return 0;
    wanted->has_driver = true;
    uint32_t i = symbol_table_find(&symbols, wanted->name);
    if (i)
        wanted->function = (any_function *)(object->dlpi_addr + symbols.symbol[i].st_value);
    return i != 0;
}

/* In a driver whose file has another name. */
static any_function *function_by_handle(const char *name)
{
    void *library = dlopen ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!library)
        return NULL;
    any_function *function = dlsym_real(library, name);
    dlclose(library);
    return function;
}

/* By the driver's own table: dlopen and dlsym wait for a thread that loads a library, and its
 * constructor may wait for the gate, which the carrier's thread keeps closed. */
any_function *driver_function(const char *name)
{
    struct wanted wanted = {.name = name};
    dl_iterate_phdr(look_into_driver, &wanted);
    return wanted.has_driver ? wanted.function : function_by_handle(name);
}

/* What the driver returns for the form that the entry is of; NULL: it has none. */
static any_function *known_form(const struct hook_entry *entry)
{
    any_function *function = NULL;
    int status;
    uint64_t flags = (uint64_t)entry->streams;
    CUresult r = HOOK_CALL(cuGetProcAddress_v2)(
        entry->name, &function, entry->version, flags, &status);
    if (r == CUDA_ERROR_NOT_FOUND && !function)
        r = HOOK_CALL(cuGetProcAddress)(entry->name, &function, entry->version, flags);
    return r == CUDA_SUCCESS ? function : NULL;
}

/* What cuGetProcAddress found for a program: a stub before the library's function where there is
 * one, else before the driver's. */
static any_function *hook_for_answer(const char *symbol, any_function *function)
{
    for (int i = 0; i < HOOK_COUNT; i++)
        if (strcmp(entries[i].name, symbol) == 0 && known_form(&entries[i]) == function)
            return call_stub_before(symbol, hook_stand_before((enum hook)i, function));
    return call_stub_before(symbol, function);
}

/* ---- the two forms of cuGetProcAddress ---- */

CUresult cuGetProcAddress(const char *symbol, any_function **function, int version, uint64_t flags)
{
    CUresult r = HOOK_CALL(cuGetProcAddress)(symbol, function, version, flags);
    if (r == CUDA_SUCCESS && symbol && function && *function)
        *function = hook_for_answer(symbol, *function);
    return r;
}

CUresult cuGetProcAddress_v2(
    const char *symbol, any_function **function, int version, uint64_t flags, int *status)
{
    CUresult r = HOOK_CALL(cuGetProcAddress_v2)(symbol, function, version, flags, status);
    if (r == CUDA_SUCCESS && symbol && function && *function)
        *function = hook_for_answer(symbol, *function);
    return r;
}
