/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/process_time.h"

#include <stdlib.h>

#include "base/clock.h"
#include "gpu/cost.h"

enum { ROOM_MAX = 65536 };

void process_time_room_fini(struct process_time_room *room)
{
    free(room->item);
    *room = (struct process_time_room){0};
}

/* A second before. */
static unsigned long long behind(unsigned long long time_us)
{
    return time_us > SECOND_US ? time_us - SECOND_US : 0;
}

static bool is_worth_asking(const struct gpu_sample *sample)
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

static bool room_grow(struct process_time_room *room, unsigned wanted)
{
    struct nvml_process_utilization *item = NULL;

    if (wanted <= ROOM_MAX)
        item = realloc(room->item, wanted * sizeof(*item));
    if (!item)
        return false;
    room->item = item;
    room->capacity = wanted;
    return true;
}

/* NVML says how many there are; more may have come by the next call. */
static int fetch(const struct nvml *nvml, nvml_device device, struct process_time_room *room,
    unsigned long long since_us, unsigned *ret_count)
{
    const int tries = 4;
    int r = NVML_INSUFFICIENT_SIZE;

    for (int i = 0; i < tries && r == NVML_INSUFFICIENT_SIZE; i++) {
        *ret_count = room->capacity;
        r = nvml_call(nvml, process_utilization, device, room->item, ret_count, since_us);
        if (r == NVML_INSUFFICIENT_SIZE && !room_grow(room, 2 * *ret_count + 32))
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

/* One of whom there is no sample had no kernel, when there are samples of others. */
static void fill(const struct nvml_process_utilization *items, unsigned count,
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

static void forget(struct gpu_sample *sample)
{
    for (size_t i = 0; i < sample->processes.count; i++)
        sample->processes.item[i].sm_utilisation = READING_NONE;
}

int process_time_look(const struct nvml *nvml, nvml_device device, struct process_time_room *room,
    double share, struct process_time *time, struct gpu_sample *sample)
{
    unsigned count = 0;
    int64_t began_us = cost_processor_us();

    if (!is_worth_asking(sample)) {
        forget(sample);
        return NVML_OK;
    }
    if (share > 0 && sample->at_us < time->ask_again_us)
        return NVML_OK;
    forget(sample);
    int r = fetch(nvml, device, room, behind(time->newest_us), &count);
    if (share > 0)
        time->ask_again_us = sample->at_us +
                             (int64_t)((double)(cost_processor_us() - began_us) / share);
    if (r != NVML_OK)
        return r;
    for (unsigned i = 0; i < count; i++)
        if (room->item[i].time_us > time->newest_us)
            time->newest_us = room->item[i].time_us;
    fill(room->item, count, behind(time->newest_us), sample);
    return NVML_OK;
}
