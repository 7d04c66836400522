/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the dynamic section, and looks names up by DT_GNU_HASH or DT_HASH. */
#include "preload/symbol_table.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

bool symbol_table_is_of(const struct dl_phdr_info *object, const char *beginning)
{
    return strncmp(path_name(object->dlpi_name), beginning, strlen(beginning)) == 0;
}

/* musl leaves addresses in the dynamic section relative to the object. */
static const void *address_in(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    return (const void *)(address < object->dlpi_addr ? address + object->dlpi_addr : address);
}

bool symbol_table_read(const struct dl_phdr_info *object, struct symbol_table *ret_table)
{
    const ElfW(Dyn) *dynamic = NULL;
    *ret_table = (struct symbol_table){0};
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB)
            ret_table->symbol = address_in(object, dynamic->d_un.d_ptr);
        else if (dynamic->d_tag == DT_STRTAB)
            ret_table->names = address_in(object, dynamic->d_un.d_ptr);
        else if (dynamic->d_tag == DT_GNU_HASH)
            ret_table->gnu_hash = address_in(object, dynamic->d_un.d_ptr);
        else if (dynamic->d_tag == DT_HASH)
            ret_table->hash = address_in(object, dynamic->d_un.d_ptr);
    }
    return ret_table->symbol && ret_table->names && (ret_table->gnu_hash || ret_table->hash);
}

/* Not strcmp: a sanitizer's stands before the C library's, and asks for functions by dlsym before
 * it can be called itself. */
static bool is_same_name(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static bool defines_symbol(const struct symbol_table *table, uint32_t i, const char *name)
{
    const ElfW(Sym) *symbol = &table->symbol[i];
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
           is_same_name(table->names + symbol->st_name, name);
}

/* The layout of DT_GNU_HASH: four numbers, a Bloom filter of 64-bit words, the buckets, and a hash
 * for each symbol from the first on, whose lowest bit ends a bucket's chain. */
static uint32_t find_by_gnu_hash(const struct symbol_table *table, const char *name)
{
    uint32_t n_buckets = table->gnu_hash[0], first = table->gnu_hash[1];
    const uint32_t *buckets = table->gnu_hash + 4 + 2 * (size_t)table->gnu_hash[2];
    const uint32_t *chain = buckets + n_buckets;
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    uint32_t i = n_buckets ? buckets[hash % n_buckets] : 0;
    for (; i >= first && i; i++) {
        if (((chain[i - first] ^ hash) >> 1) == 0 && defines_symbol(table, i, name))
            return i;
        if (chain[i - first] & 1)
            break;
    }
    return 0;
}

static uint32_t find_among_all(const struct symbol_table *table, const char *name)
{
    for (uint32_t i = 1; i < table->hash[1]; i++)
        if (defines_symbol(table, i, name))
            return i;
    return 0;
}

uint32_t symbol_table_find(const struct symbol_table *table, const char *name)
{
    return table->gnu_hash ? find_by_gnu_hash(table, name) : find_among_all(table, name);
}

/* Those that an object imports come before the first one in DT_GNU_HASH. An object that has only
 * DT_HASH has few, and any of them may be one. */
uint32_t symbol_table_imports_end(const struct symbol_table *table)
{
    return table->gnu_hash ? table->gnu_hash[1] : table->hash[1];
}
