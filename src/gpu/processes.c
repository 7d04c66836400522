/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/processes.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cost.h"

enum { ROOM_MIN = 32, ROOM_MAX = 65536 };

bool gpu_process_is_mps_server(pid_t pid)
{
    char path[64], name[16] = "";

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, name, sizeof(name) - 1);
    close(fd);
    return n > 0 && strncmp(name, "nvidia-cuda-mps", 15) == 0;
}

void process_room_fini(struct process_room *room)
{
    free(room->raw);
    *room = (struct process_room){0};
}

static bool room_grow(struct process_room *room, size_t wanted, size_t stride)
{
    if (wanted > ROOM_MAX)
        return false;
    char *raw = realloc(room->raw, wanted * stride);
    if (!raw)
        return false;
    room->raw = raw;
    room->capacity = (unsigned)wanted;
    return true;
}

/* Processes come and go between two calls: ask for more room than the driver said, again and again.
 */
static int fetch(const struct nvml *nvml, nvml_processes_function *list, nvml_device device,
    struct process_room *room, unsigned *ret_count)
{
    if (!list)
        return NVML_FUNCTION_NOT_FOUND;
    if (room->capacity == 0 && !room_grow(room, ROOM_MIN, nvml->process_stride))
        return NVML_UNKNOWN;
    for (;;) {
        *ret_count = room->capacity;
        int r = list(device, ret_count, room->raw);
        if (r != NVML_INSUFFICIENT_SIZE)
            return r;
        size_t told = *ret_count > room->capacity ? *ret_count : room->capacity;
        if (!room_grow(room, told * 2, nvml->process_stride))
            return NVML_UNKNOWN;
    }
}

/* Room for one more than `count`, which grows by doubling. */
static bool items_grow(struct gpu_process **items, size_t *capacity, size_t count)
{
    size_t wanted = *capacity ? *capacity : ROOM_MIN;
    while (wanted <= count)
        wanted *= 2;
    if (wanted == *capacity)
        return true;
    struct gpu_process *item = realloc(*items, wanted * sizeof(*item));
    if (!item)
        return false;
    *items = item;
    *capacity = wanted;
    return true;
}

/* NULL without memory. */
static struct gpu_process *entry_of(struct gpu_sample *sample, pid_t pid)
{
    for (size_t i = 0; i < sample->processes.count; i++) {
        if (sample->processes.item[i].pid == pid)
            return &sample->processes.item[i];
    }
    if (!items_grow(&sample->processes.item, &sample->processes.capacity, sample->processes.count))
        return NULL;
    struct gpu_process *entry = &sample->processes.item[sample->processes.count++];
    *entry = (struct gpu_process){.pid = pid};
    return entry;
}

/* A process in two lists shows the same memory twice: the larger telling counts. */
static int merge(
    struct gpu_sample *sample, const struct nvml_process *told, enum gpu_process_kind kind)
{
    struct gpu_process *entry = entry_of(sample, (pid_t)told->pid);

    if (!entry)
        return NVML_UNKNOWN;
    entry->kinds |= kind;
    if (told->used_bytes != NVML_MEMORY_NOT_AVAILABLE)
        entry->used_bytes = reading_of(
            fmax((double)told->used_bytes, reading_or(entry->used_bytes, 0)));
    return NVML_OK;
}

static int look(const struct nvml *nvml, nvml_processes_function *list, nvml_device device,
    struct process_room *room, enum gpu_process_kind kind, struct gpu_sample *sample)
{
    unsigned count = 0;
    int r = fetch(nvml, list, device, room, &count);

    for (unsigned i = 0; r == NVML_OK && i < count && i < room->capacity; i++) {
        struct nvml_process told;
        memcpy(&told, room->raw + i * nvml->process_stride, sizeof(told));
        r = merge(sample, &told, kind);
    }
    return r;
}

/* The list does not exist for this GPU or driver, so that nothing is missing without it. */
static bool is_absent(int r)
{
    return r == NVML_NOT_SUPPORTED || r == NVML_FUNCTION_NOT_FOUND || r == NVML_INVALID_ARGUMENT;
}

static int ask(const struct nvml *nvml, nvml_device device, struct process_room *room,
    struct gpu_sample *sample)
{
    sample->processes.count = 0;
    int r = look(nvml, nvml->compute_processes, device, room, GPU_PROCESS_COMPUTE, sample);
    if (r == NVML_OK) {
        r = look(nvml, nvml->graphics_processes, device, room, GPU_PROCESS_GRAPHICS, sample);
        r = is_absent(r) ? NVML_OK : r;
    }
    if (r == NVML_OK) {
        r = look(nvml, nvml->mps_processes, device, room, GPU_PROCESS_MPS, sample);
        r = is_absent(r) ? NVML_OK : r;
    }
    sample->processes.valid = r == NVML_OK;
    if (r != NVML_OK)
        sample->processes.count = 0;
    return r;
}

/* ---- what was told last ---- */

void processes_told_fini(struct processes_told *told)
{
    free(told->item);
    *told = (struct processes_told){0};
}

void processes_told_note(struct processes_told *told, const struct gpu_sample *sample)
{
    size_t count = sample->processes.count;

    told->valid = sample->processes.valid && items_grow(&told->item, &told->capacity, count);
    told->count = told->valid ? count : 0;
    if (told->count)
        memcpy(told->item, sample->processes.item, count * sizeof(*told->item));
}

/* The time that a process was seen to use is asked for less often than who is there. */
static void keep_times(const struct processes_told *told, struct gpu_sample *sample)
{
    for (size_t i = 0; i < sample->processes.count; i++)
        for (size_t k = 0; k < told->count; k++)
            if (told->item[k].pid == sample->processes.item[i].pid)
                sample->processes.item[i].sm_utilisation = told->item[k].sm_utilisation;
}

/* In use is what it was when the lists were told. */
static bool is_unmoved(const struct processes_told *told, const struct gpu_sample *sample)
{
    return sample->mem_used_bytes.valid && !(sample->mem_used_bytes.value < told->used_bytes ||
                                               sample->mem_used_bytes.value > told->used_bytes);
}

static bool still_holds(const struct processes_told *told, const struct gpu_sample *sample)
{
    return told->valid && told->at_rest && sample->at_us < told->ask_again_us &&
           is_unmoved(told, sample);
}

static bool repeat(const struct processes_told *told, struct gpu_sample *sample)
{
    if (!items_grow(&sample->processes.item, &sample->processes.capacity, told->count))
        return false;
    if (told->count)
        memcpy(sample->processes.item, told->item, told->count * sizeof(*told->item));
    sample->processes.count = told->count;
    sample->processes.valid = true;
    return true;
}

int processes_look(const struct nvml *nvml, nvml_device device, struct process_room *room,
    bool may_repeat, struct processes_told *told, struct gpu_sample *sample)
{
    if (may_repeat && still_holds(told, sample) && repeat(told, sample))
        return NVML_OK;
    int r = ask(nvml, device, room, sample);
    keep_times(told, sample);
    processes_told_note(told, sample);
    told->at_rest = is_unmoved(told, sample);
    told->used_bytes = reading_or(sample->mem_used_bytes, -1);
    told->ask_again_us = sample->at_us + SLOW_LEAST_US;
    return r;
}
