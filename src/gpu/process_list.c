/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the processes on a GPU. NVML has three lists of processes (compute, graphics, MPS clients),
 * and a process may be in several with the same memory. They are merged by pid; see struct
 * process_cache for when they are not queried.
 */
#include "gpu/process_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "gpu/query_cost.h"

enum { ENTRIES_MIN = 32, ENTRIES_MAX = 65536 }; /* chosen: a GPU has at most some hundred */

static bool has_name_of_mps_server(pid_t pid)
{
    char path[64], name[16] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    return file_read_start(path, name, sizeof name) > 0 &&
           strncmp(name, "nvidia-cuda-mps", 15) == 0;
}

void process_buffer_fini(struct process_buffer *buffer)
{
    free(buffer->raw);
    *buffer = (struct process_buffer){0};
}

static bool grow_buffer(struct process_buffer *buffer, size_t wanted, size_t stride)
{
    if (wanted > ENTRIES_MAX)
        return false;
    char *raw = realloc(buffer->raw, wanted * stride);
    if (!raw)
        return false;
    buffer->raw = raw;
    buffer->capacity = (unsigned)wanted;
    return true;
}

/* Processes come and go between two calls: the buffer is twice what the driver asks for. */
static int fetch_list(const struct nvml *nvml, nvml_processes_function *list, nvml_device device,
    struct process_buffer *buffer, unsigned *ret_count)
{
    if (!list)
        return NVML_FUNCTION_NOT_FOUND;
    if (buffer->capacity == 0 && !grow_buffer(buffer, ENTRIES_MIN, nvml->process_stride))
        return NVML_UNKNOWN;
    for (;;) {
        *ret_count = buffer->capacity;
        int r = list(device, ret_count, buffer->raw);
        if (r != NVML_INSUFFICIENT_SIZE)
            return r;
        size_t reported = *ret_count > buffer->capacity ? *ret_count : buffer->capacity;
        if (!grow_buffer(buffer, reported * 2, nvml->process_stride))
            return NVML_UNKNOWN;
    }
}

/* NULL without memory. */
static struct gpu_process *entry_of(struct gpu_sample *sample, pid_t pid)
{
    for (size_t i = 0; i < sample->processes.count; i++) {
        if (sample->processes.item[i].pid == pid)
            return &sample->processes.item[i];
    }
    if (ARRAY_APPEND(sample->processes.item, sample->processes.count, sample->processes.capacity,
            (struct gpu_process){.pid = pid}) < 0)
        return NULL;
    return &sample->processes.item[sample->processes.count - 1];
}

/* A process in two lists shows the same memory twice: the larger value counts. */
static int merge_process(
    struct gpu_sample *sample, const struct nvml_process *reported, enum gpu_process_kind kind)
{
    struct gpu_process *entry = entry_of(sample, (pid_t)reported->pid);
    if (!entry)
        return NVML_UNKNOWN;
    entry->kinds |= kind;
    if (reported->used_bytes != NVML_MEMORY_NOT_AVAILABLE)
        entry->used_bytes = reading_of(
            fmax((double)reported->used_bytes, reading_or(entry->used_bytes, 0)));
    return NVML_OK;
}

static int add_list(const struct nvml *nvml, nvml_processes_function *list, nvml_device device,
    struct process_buffer *buffer, enum gpu_process_kind kind, struct gpu_sample *sample)
{
    unsigned count = 0;
    int r = fetch_list(nvml, list, device, buffer, &count);
    for (unsigned i = 0; r == NVML_OK && i < count && i < buffer->capacity; i++) {
        struct nvml_process reported;
        memcpy(&reported, buffer->raw + i * nvml->process_stride, sizeof reported);
        r = merge_process(sample, &reported, kind);
    }
    return r;
}

/* The list does not exist for this GPU or driver, so that nothing is missing without it. */
static bool is_absent(int r)
{
    return r == NVML_NOT_SUPPORTED || r == NVML_FUNCTION_NOT_FOUND || r == NVML_INVALID_ARGUMENT;
}

static int query_lists(const struct nvml *nvml, nvml_device device, struct process_buffer *buffer,
    struct gpu_sample *sample)
{
    sample->processes.count = 0;
    int r = add_list(nvml, nvml->compute_processes, device, buffer, GPU_PROCESS_COMPUTE, sample);
    if (r == NVML_OK) {
        r = add_list(nvml, nvml->graphics_processes, device, buffer, GPU_PROCESS_GRAPHICS, sample);
        r = is_absent(r) ? NVML_OK : r;
    }
    if (r == NVML_OK) {
        r = add_list(nvml, nvml->mps_processes, device, buffer, GPU_PROCESS_MPS, sample);
        r = is_absent(r) ? NVML_OK : r;
    }
    sample->processes.valid = r == NVML_OK;
    if (r != NVML_OK)
        sample->processes.count = 0;
    return r;
}

/* ---- the last list ---- */

void process_cache_fini(struct process_cache *cache)
{
    free(cache->item);
    *cache = (struct process_cache){0};
}

void process_cache_store(struct process_cache *cache, const struct gpu_sample *sample)
{
    size_t count = sample->processes.count;
    cache->valid = sample->processes.valid &&
                   ARRAY_RESERVE(cache->item, cache->capacity, count) == 0;
    cache->count = cache->valid ? count : 0;
    if (cache->count)
        memcpy(cache->item, sample->processes.item, count * sizeof *cache->item);
}

static const struct gpu_process *find_cached(const struct process_cache *cache, pid_t pid)
{
    for (size_t i = 0; i < cache->count; i++)
        if (cache->item[i].pid == pid)
            return &cache->item[i];
    return NULL;
}

/* sm_utilisation is queried, and names are read from /proc, less often than the lists. */
static void copy_rare_facts(struct process_cache *cache, struct gpu_sample *sample)
{
    bool has_names = sample->at_us < cache->next_names_us;
    if (!has_names)
        cache->next_names_us = sample->at_us + SLOW_INTERVAL_US;
    for (size_t i = 0; i < sample->processes.count; i++) {
        struct gpu_process *process = &sample->processes.item[i];
        const struct gpu_process *last = find_cached(cache, process->pid);
        if (last)
            process->sm_utilisation = last->sm_utilisation;
        process->is_mps_server = last && has_names ? last->is_mps_server
                                                   : has_name_of_mps_server(process->pid);
    }
}

/* Is the memory in use what it was at the last query? */
static bool is_memory_unchanged(const struct process_cache *cache, const struct gpu_sample *sample)
{
    return sample->mem_used_bytes.valid && !(sample->mem_used_bytes.value < cache->used_bytes ||
                                               sample->mem_used_bytes.value > cache->used_bytes);
}

static bool is_current(const struct process_cache *cache, const struct gpu_sample *sample)
{
    return cache->valid && cache->at_rest && sample->at_us < cache->next_query_us &&
           is_memory_unchanged(cache, sample);
}

static bool repeat_list(const struct process_cache *cache, struct gpu_sample *sample)
{
    if (ARRAY_RESERVE(sample->processes.item, sample->processes.capacity, cache->count) < 0)
        return false;
    if (cache->count)
        memcpy(sample->processes.item, cache->item, cache->count * sizeof *cache->item);
    sample->processes.count = cache->count;
    sample->processes.valid = true;
    return true;
}

int process_list_query(const struct nvml *nvml, nvml_device device, struct process_buffer *buffer,
    bool may_repeat, struct process_cache *cache, struct gpu_sample *sample)
{
    if (may_repeat && is_current(cache, sample) && repeat_list(cache, sample))
        return NVML_OK;
    int r = query_lists(nvml, device, buffer, sample);
    copy_rare_facts(cache, sample);
    process_cache_store(cache, sample);
    cache->at_rest = is_memory_unchanged(cache, sample);
    cache->used_bytes = reading_or(sample->mem_used_bytes, -1);
    cache->next_query_us = sample->at_us + SLOW_INTERVAL_US;
    return r;
}
