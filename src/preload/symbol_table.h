/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbols of a loaded object, as the dynamic linker's tables have them.
 *
 * dl_iterate_phdr holds a lock of the dynamic linker while it calls its callback. A callback that
 * calls dlopen, dlsym or dlclose waits for the linker's other lock, whose holder, another thread in
 * dlopen, waits for the first: both for ever. So callbacks read these tables instead.
 */
#ifndef COLLOC_PRELOAD_SYMBOL_TABLE_H
#define COLLOC_PRELOAD_SYMBOL_TABLE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct symbol_table {
    const ElfW(Sym) * symbol; /* the first one is none */
    const char *names;
    const uint32_t *gnu_hash; /* DT_GNU_HASH, DT_HASH: one of them may be NULL */
    const uint32_t *hash;
};

/* Returns whether the name of the object's file begins so. */
bool symbol_table_is_of(const struct dl_phdr_info *object, const char *beginning);

/* Reads where the object has its tables. Returns false when it has none. */
bool symbol_table_read(const struct dl_phdr_info *object, struct symbol_table *ret_table);

/* Returns the number of the function that the object defines by this name; 0: it defines none. */
uint32_t symbol_table_find(const struct symbol_table *table, const char *name);

/* Returns the number behind the last symbol that the object may import. */
uint32_t symbol_table_imports_end(const struct symbol_table *table);

#endif
