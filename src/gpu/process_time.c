/* SPDX-License-Identifier: Apache-2.0 */
/* Per-process SM utilisation from NVML's sample buffer, averaged over its last second. */
#include "gpu/process_time.h"

#include <stdlib.h>

#include "base/clock.h"

enum { ENTRIES_MAX = 65536 }; /* chosen: 4096 processes, 16 samples each */

void process_time_buffer_fini(struct process_time_buffer *buffer)
{
    free(buffer->item);
    *buffer = (struct process_time_buffer){0};
}

/* Returns the time one second before, or 0. */
static unsigned long long second_before(unsigned long long time_us)
{
    return time_us > SECOND_US ? time_us - SECOND_US : 0;
}

static bool is_worth_query(const struct gpu_sample *sample)
{
    unsigned computing = 0;
    for (size_t i = 0; i < sample->processes.count; i++) {
        unsigned kinds = sample->processes.item[i].kinds;
        if (kinds & GPU_PROCESS_MPS)
            return false;
        computing += (kinds & GPU_PROCESS_COMPUTE) != 0;
    }
    return computing > 1;
}

static bool grow_buffer(struct process_time_buffer *buffer, unsigned wanted)
{
    struct nvml_process_utilization *item = NULL;
    if (wanted <= ENTRIES_MAX)
        item = realloc(buffer->item, wanted * sizeof *item);
    if (!item)
        return false;
    buffer->item = item;
    buffer->capacity = wanted;
    return true;
}

/* NVML reports how many entries it has; there may be more by the next call. */
static int fetch_samples(const struct nvml *nvml, nvml_device device,
    struct process_time_buffer *buffer, unsigned long long since_us, unsigned *ret_count)
{
    const int tries = 4; /* chosen: the list hardly grows each time */
    int r = NVML_INSUFFICIENT_SIZE;
    for (int i = 0; i < tries && r == NVML_INSUFFICIENT_SIZE; i++) {
        *ret_count = buffer->capacity;
        r = nvml_call(nvml, process_utilization, device, buffer->item, ret_count, since_us);
        if (r == NVML_INSUFFICIENT_SIZE && !grow_buffer(buffer, 2 * *ret_count + 32))
            return NVML_UNKNOWN;
    }
    return r;
}

static struct reading mean_of(const struct nvml_process_utilization *items, unsigned count,
    pid_t pid, unsigned long long since_us)
{
    double sum = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++) {
        if ((pid_t)items[i].pid != pid || items[i].time_us <= since_us || items[i].sm > 100)
            continue;
        sum += items[i].sm / 100.0;
        n++;
    }
    return n ? reading_of(sum / n) : READING_NONE;
}

/* A process without an entry had no kernel, if others have entries. */
static void fill_means(const struct nvml_process_utilization *items, unsigned count,
    unsigned long long since_us, struct gpu_sample *sample)
{
    bool any = false;
    for (size_t i = 0; i < sample->processes.count; i++) {
        struct gpu_process *process = &sample->processes.item[i];
        process->sm_utilisation = mean_of(items, count, process->pid, since_us);
        any |= process->sm_utilisation.valid;
    }
    for (size_t i = 0; any && i < sample->processes.count; i++)
        if (!sample->processes.item[i].sm_utilisation.valid)
            sample->processes.item[i].sm_utilisation = reading_of(0);
}

static void clear_times(struct gpu_sample *sample)
{
    for (size_t i = 0; i < sample->processes.count; i++)
        sample->processes.item[i].sm_utilisation = READING_NONE;
}

int process_time_query(const struct nvml *nvml, nvml_device device,
    struct process_time_buffer *buffer, double share, struct process_time *time,
    struct gpu_sample *sample)
{
    unsigned count = 0;
    if (!is_worth_query(sample)) {
        clear_times(sample);
        return NVML_OK;
    }
    if (share > 0 && sample->at_us < time->next_query_us)
        return NVML_OK;
    clear_times(sample);
    int64_t began_us = clock_thread_us();
    int r = fetch_samples(nvml, device, buffer, second_before(time->newest_us), &count);
    if (share > 0)
        time->next_query_us = sample->at_us +
                              (int64_t)((double)(clock_thread_us() - began_us) / share);
    if (r != NVML_OK)
        return r;
    for (unsigned i = 0; i < count; i++)
        if (buffer->item[i].time_us > time->newest_us)
            time->newest_us = buffer->item[i].time_us;
    fill_means(buffer->item, count, second_before(time->newest_us), sample);
    return NVML_OK;
}
