/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of radT's listeners. Three kinds of them:
 *
 *     smi, dcgmi, top, ps, iostat  colloc's samples have their figures: of the GPU, and the
 *                                  trainings' processor time, memory and disk traffic
 *     nsys, ncu, ...               the training runs under that profiler
 *     free                         the memory of the whole host (meminfo.h)
 *     macmon, ncuattach            nothing here does the same
 */
#include "bench/radt_listeners.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

static const struct listener {
    const char *name;
    enum profiler profiler;
    bool is_refused, lists_host_memory;
} listeners[] = {
    {.name = "none"}, {.name = "smi"}, {.name = "dcgmi"}, {.name = "top"}, {.name = "ps"},
    {.name = "iostat"}, {.name = "nsys", .profiler = PROFILER_NSYS_RANGES},
    {.name = "nsysraw", .profiler = PROFILER_NSYS},
    {.name = "ncu", .profiler = PROFILER_NCU_RANGES}, {.name = "ncuraw", .profiler = PROFILER_NCU},
    {.name = "ncuattach", .is_refused = true}, /* it waits until a person attaches */
    {.name = "free", .lists_host_memory = true},
    {.name = "macmon", .is_refused = true}, /* Apple's GPUs */
};

static const struct listener *find_listener(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(listeners); i++)
        if (strlen(listeners[i].name) == size && strncasecmp(listeners[i].name, name, size) == 0)
            return &listeners[i];
    return NULL;
}

int listeners_parse(
    const char *text, struct listeners *ret_listeners, const char **ret_name, int *ret_size)
{
    *ret_listeners = (struct listeners){.profiler = PROFILER_NONE};
    for (const char *at = text; *at; at += *at == '+') {
        at += strspn(at, " ");
        size_t size = strcspn(at, "+ ");
        const struct listener *listener = find_listener(at, size);
        *ret_name = at;
        *ret_size = (int)size;
        at += size;
        at += strspn(at, " ");
        if (!listener || (*at && *at != '+'))
            return LISTENER_UNKNOWN;
        if (listener->is_refused)
            return LISTENER_REFUSED;
        if (listener->profiler && ret_listeners->profiler)
            return LISTENER_SECOND;
        if (listener->profiler)
            ret_listeners->profiler = listener->profiler;
        ret_listeners->host_memory |= listener->lists_host_memory;
    }
    return 0;
}

const char *listener_answer_text(int answer)
{
    switch (answer) {
    case LISTENER_REFUSED:
        return "is not supported: smi, dcgmi, top, ps, iostat, free, nsys, nsysraw, ncu and ncuraw are";
    case LISTENER_SECOND:
        return "is a second profiler: a training runs under one";
    default:
        return "is not one of radT's";
    }
}
