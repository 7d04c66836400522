/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/meminfo as `free` counts it: what is used is the total less what is free, in buffers and in
 * caches, the kernel's reclaimable memory included. (Newer versions of `free` take the total less
 * what is available; both are in the file.)
 *
 *     MemTotal: 100 kB, MemFree: 20 kB, Buffers: 5 kB, Cached: 30 kB, SReclaimable: 5 kB
 *     -> used 40, buffers and caches 40
 */
#include "bench/meminfo.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/units.h"

enum { TEXT_MAX = 1 << 13 };

/* Returns the value of "NAME:   123 kB". */
static struct reading value_of(const char *text, const char *name)
{
    size_t size = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, size) == 0 && line[size] == ':') {
            char *end;
            unsigned long long kib = strtoull(line + size + 1, &end, 10);
            return end == line + size + 1 ? READING_NONE : reading_of((double)kib * (double)KIB);
        }
    }
    return READING_NONE;
}

static struct reading reading_add(struct reading a, struct reading b)
{
    return a.valid && b.valid ? reading_of(a.value + b.value) : READING_NONE;
}

static struct reading reading_subtract(struct reading a, struct reading b)
{
    return a.valid && b.valid && a.value >= b.value ? reading_of(a.value - b.value) : READING_NONE;
}

void meminfo_parse(const char *text, struct meminfo *ret_memory)
{
    struct reading cached = reading_add(value_of(text, "Cached"), value_of(text, "SReclaimable"));
    *ret_memory = (struct meminfo){
        .total = value_of(text, "MemTotal"),
        .free = value_of(text, "MemFree"),
        .shared = value_of(text, "Shmem"),
        .buffers_cache = reading_add(value_of(text, "Buffers"), cached),
        .available = value_of(text, "MemAvailable"),
        .swap_total = value_of(text, "SwapTotal"),
        .swap_free = value_of(text, "SwapFree"),
    };
    ret_memory->used = reading_subtract(
        reading_subtract(ret_memory->total, ret_memory->free), ret_memory->buffers_cache);
    ret_memory->swap_used = reading_subtract(ret_memory->swap_total, ret_memory->swap_free);
}

void meminfo_print_names(FILE *csv)
{
    fputs("unix_s,total_mib,used_mib,free_mib,shared_mib,buffers_cache_mib,available_mib,"
          "swap_total_mib,swap_used_mib,swap_free_mib\n",
        csv);
}

void meminfo_sample(FILE *csv, double unix_s)
{
    char text[TEXT_MAX];
    struct meminfo memory;
    file_read_start("/proc/meminfo", text, sizeof text);
    meminfo_parse(text, &memory);
    const struct reading values[] = {memory.total, memory.used, memory.free, memory.shared,
        memory.buffers_cache, memory.available, memory.swap_total, memory.swap_used,
        memory.swap_free};
    fprintf(csv, "%.3f", unix_s);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        if (values[i].valid)
            fprintf(csv, ",%.1f", values[i].value / (double)MIB);
        else
            fputc(',', csv);
    fputc('\n', csv);
}
