/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python reads what only the C programs know: GPUs and MIG instances by NVML, with the reason why
 * no task can be placed on one; and the command lines of profilers by radT's names for them.
 *
 *     {"driver": "570.1", "gpus": [{"index": "0", "card": "0", "uuid": "GPU-...", ...}],
 *      "profilers": {"nsys": ["nsys", "profile", "--output=%s", ...], ...}}
 */
#include "cli/bench_machine.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/units.h"
#include "exec/profiler.h"
#include "gpu/gpu.h"

static json_t *gpu_json(const struct gpu_set *set, const struct gpu_info *gpu)
{
    const struct gpu_info *card = gpu->is_mig ? &set->gpu[gpu->parent] : gpu;
    json_t *memory = gpu->mem_total_bytes.valid
                         ? json_real(gpu->mem_total_bytes.value / (double)MIB)
                         : json_null();
    return json_pack("{ss,ss,ss,ss,ss,ss,so}", "index", gpu->index, "name", gpu->name, "uuid",
        gpu->uuid, "profile", gpu->is_mig ? gpu->profile : "", "card", card->index, "why_not",
        gpu->is_place ? "" : gpu->why_not, "mem_total_mib", memory);
}

static void add_gpus(json_t *machine)
{
    struct fault fault = {0};
    struct gpu_set *set;
    if (gpu_set_open(NULL, &fault, &set) != 0)
        return; /* the trainings fail, and their messages say what is missing */
    json_t *gpus = json_array();
    for (size_t i = 0; i < set->count; i++)
        json_array_append_new(gpus, gpu_json(set, &set->gpu[i]));
    json_object_set_new(machine, "driver", json_string(set->driver_version));
    json_object_set_new(machine, "gpus", gpus);
    gpu_set_close(set);
}

static json_t *profilers_json(void)
{
    static const struct {
        const char *listener;
        enum profiler profiler;
    } listeners[] = {{"nsys", PROFILER_NSYS_RANGES}, {"nsysraw", PROFILER_NSYS},
        {"ncu", PROFILER_NCU_RANGES}, {"ncuraw", PROFILER_NCU}};
    char *const no_command[] = {NULL};
    json_t *profilers = json_object();
    for (size_t i = 0; i < ARRAY_SIZE(listeners); i++) {
        char **words = profiler_command(listeners[i].profiler, "%s", no_command);
        json_t *list = json_array();
        for (char **word = words; word && *word; word++)
            json_array_append_new(list, json_string(*word));
        json_object_set_new(profilers, listeners[i].listener, list);
        free(words);
    }
    return profilers;
}

char *bench_machine_describe(bool has_gpus)
{
    json_t *machine = json_pack("{so}", "profilers", profilers_json());
    if (machine && has_gpus)
        add_gpus(machine);
    char *text = json_dumps(machine, JSON_COMPACT);
    json_decref(machine);
    return text;
}
