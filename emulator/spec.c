#include "emulator/spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* Takes what stands before `separator` off the front of `rest`; all of it when there is none. */
static struct span take(struct span *rest, char separator)
{
    const char *end = rest->size ? memchr(rest->at, separator, rest->size) : NULL;
    struct span part = {rest->at, end ? (size_t)(end - rest->at) : rest->size};
    size_t used = end ? part.size + 1 : part.size;

    rest->at += used;
    rest->size -= used;
    return part;
}

/* The same GPU gets the same name every time, so that a test can be written down. */
static void name_unit(struct unit *unit, const char *prefix, int gpu, int number)
{
    snprintf(unit->uuid, sizeof(unit->uuid), "%s-c0110cc0-e4a7-4a1e-9b0%x-%012x", prefix, (unsigned)number,
             (unsigned)gpu);
}

static void init_whole(struct gpu *gpu, int index)
{
    const struct kind *kind = kind_at(gpu->kind);

    gpu->unit_count = 1;
    gpu->units[0] = (struct unit){
        .profile = -1, .capacity = 1, .total_bytes = kind->total_mib * MIB, .reserved_bytes = kind->reserved_mib * MIB};
    name_unit(&gpu->units[0], "GPU", index, 0);
}

static void add_instance(struct gpu *gpu, int index, int profile_index)
{
    const struct kind *kind = kind_at(gpu->kind);
    const struct profile *profile = &kind->profiles[profile_index];
    struct unit *unit = &gpu->units[gpu->unit_count];

    *unit = (struct unit){.profile = profile_index,
                          .capacity = (double)profile->sm_count / kind->sm_count,
                          .total_bytes = profile->total_mib * MIB,
                          .reserved_bytes = kind->reserved_mib * MIB * profile->memory_slices / MIG_MEMORY_SLICES};
    name_unit(unit, "MIG", index, gpu->unit_count);
    gpu->unit_count++;
}

static int parse_instances(struct span list, struct gpu *gpu, int index, struct fault *fault)
{
    const struct kind *kind = kind_at(gpu->kind);
    int compute = 0, memory = 0;

    while (list.size) {
        struct span name = take(&list, '+');
        int profile = kind_find_profile(kind, name);
        if (profile < 0)
            return fault_set(fault, EINVAL, "%.*s: no MIG profile of an %s", (int)name.size, name.at, kind->name);
        compute += kind->profiles[profile].compute_slices;
        memory += kind->profiles[profile].memory_slices;
        if (compute > MIG_COMPUTE_SLICES || memory > MIG_MEMORY_SLICES)
            return fault_set(fault, EINVAL,
                             "%.*s: does not fit beside the others: a GPU has %d compute and %d memory slices",
                             (int)name.size, name.at, MIG_COMPUTE_SLICES, MIG_MEMORY_SLICES);
        add_instance(gpu, index, profile);
    }
    return 0;
}

/* "4x" off the front of `item`, if it is there. */
static int take_count(struct span *item, int64_t *ret_count, struct fault *fault)
{
    struct span rest = *item;
    struct span head = take(&rest, 'x');
    char digits[8];

    *ret_count = 1;
    if (!rest.size)
        return 0;
    if (!span_copy(head, digits, sizeof(digits)) || parse_int64(digits, 1, GPUS_MAX, ret_count) < 0)
        return fault_set(fault, EINVAL, "%.*s: how many GPUs? 1 to %d can be pretended", (int)item->size, item->at,
                         GPUS_MAX);
    *item = rest;
    return 0;
}

static int parse_item(struct span item, struct world *world, struct fault *fault)
{
    int64_t count;
    int r = take_count(&item, &count, fault);

    if (r < 0)
        return r;
    struct span name = take(&item, ':');
    int kind = kind_find(name);
    if (kind < 0)
        return fault_set(fault, EINVAL, "%.*s: unknown GPU; known: A100-40GB, A100-80GB, H100-80GB, H200",
                         (int)name.size, name.at);
    if (world->gpu_count + count > GPUS_MAX)
        return fault_set(fault, EINVAL, "more than %d GPUs", GPUS_MAX);
    for (int64_t i = 0; i < count && r == 0; i++) {
        int index = world->gpu_count++;
        struct gpu *gpu = &world->gpus[index];
        *gpu = (struct gpu){.kind = kind};
        init_whole(gpu, index);
        r = parse_instances(item, gpu, index, fault);
    }
    return r;
}

int spec_parse(const char *text, struct world *world, struct fault *fault)
{
    struct span rest = span_of(text);

    world->gpu_count = 0;
    do {
        int r = parse_item(span_trim(take(&rest, ',')), world, fault);
        if (r < 0)
            return r;
    } while (rest.size);
    return 0;
}
