/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the GPUs of `colloc-emulator create` into the table of the world. MIG instances are placed
 * by search, since each profile may begin at some slices only; an instance gets the first place
 * that leaves places for the others: "3g.20gb+2g.10gb+1g.5gb" of eight memory slices lie at 0, 4
 * and 6.
 */
#include "emulator/gpu_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "sharing/mig_division.h"

/* Removes the text before `separator` from the front of `rest`; all of it when there is none. */
static struct span take_until(struct span *rest, char separator)
{
    const char *end = rest->size ? memchr(rest->at, separator, rest->size) : NULL;
    struct span part = {rest->at, end ? (size_t)(end - rest->at) : rest->size};
    size_t used = end ? part.size + 1 : part.size;

    rest->at += used;
    rest->size -= used;
    return part;
}

/* A GPU gets the same UUID in each world, so that a test can name it. */
static void name_unit(struct unit *unit, const char *prefix, int gpu, int number)
{
    snprintf(unit->uuid, sizeof(unit->uuid), "%s-c0110cc0-e4a7-4a1e-9b0%x-%012x", prefix,
        (unsigned)number, (unsigned)gpu);
}

/* Unit 0 is the whole GPU, also while it is divided: values of the whole GPU are measured there. */
static void init_whole(struct gpu *gpu, int index)
{
    const struct gpu_kind *kind = &gpu->kind;

    gpu->unit_count = 1;
    gpu->units[0] = (struct unit){.sms = 1,
        .bandwidth = 1,
        .total_bytes = kind->total_bytes,
        .reserved_bytes = kind->reserved_bytes};
    name_unit(&gpu->units[0], "GPU", index, 0);
}

/* Two instances must not have a memory slice in common. */
static bool is_free(const struct gpu *gpu, const struct mig_profile *profile, int start)
{
    for (int i = 1; i < INSTANCES_MAX; i++) {
        const struct gpu_instance *other = &gpu->instances[i];
        if (other->is_made &&
            start < other->start + gpu->kind.profiles[other->profile].memory_slices &&
            other->start < start + profile->memory_slices)
            return false;
    }
    return true;
}

/* A profile has its own places: 3g.20gb begins at slice 0 or 4 only. */
static bool may_start(const struct gpu *gpu, const struct mig_profile *profile, int start)
{
    int starts[MIG_MEMORY_SLICES_MAX], count = mig_profile_starts(&gpu->kind, profile, starts);

    for (int i = 0; i < count; i++)
        if (starts[i] == start)
            return is_free(gpu, profile, start);
    return false;
}

/* It has the lowest free number, which an instance that was removed may have had. */
int gpu_add_instance(struct gpu *gpu, int profile, int start)
{
    int number = 1;

    while (number < INSTANCES_MAX && gpu->instances[number].is_made)
        number++;
    if (number == INSTANCES_MAX || !may_start(gpu, &gpu->kind.profiles[profile], start))
        return -1;
    gpu->instances[number] = (struct gpu_instance){true, profile, start};
    return number;
}

/* The lowest free place for a unit; it may be that of one that was removed. */
static int find_place(const struct gpu *gpu)
{
    for (int u = 1; u < gpu->unit_count; u++)
        if (gpu->units[u].state == UNIT_GONE)
            return u;
    return gpu->unit_count < UNITS_MAX ? gpu->unit_count : -1;
}

/* Returns the lowest number that no compute instance of the GPU instance has; and how many slices
 * they leave. */
static int find_number(const struct gpu *gpu, int instance, int *ret_slices)
{
    bool is_taken[UNITS_MAX] = {false};
    int number = 0;

    *ret_slices = gpu->kind.profiles[gpu->instances[instance].profile].compute_slices;
    for (int u = 1; u < gpu->unit_count; u++) {
        const struct unit *unit = &gpu->units[u];
        if (unit->state == UNIT_GONE || unit->instance != instance)
            continue;
        *ret_slices -= unit->slices;
        is_taken[unit->number] = true;
    }
    while (number < UNITS_MAX - 1 && is_taken[number])
        number++;
    return number;
}

/* A compute instance has its part of the SMs and of the bandwidth, and all of the memory; other
 * values, such as power, are the card's. */
struct unit *gpu_add_compute(struct gpu *gpu, int index, int instance, int slices)
{
    const struct mig_profile *profile = &gpu->kind.profiles[gpu->instances[instance].profile];
    int left, place = find_place(gpu), number = find_number(gpu, instance, &left);
    double part = mig_compute_part(profile, slices);

    if (place < 0 || slices > left)
        return NULL;
    struct unit *unit = &gpu->units[place];
    *unit = (struct unit){.instance = instance,
        .number = number,
        .slices = slices,
        .sms = part * profile->sms / gpu->kind.sms,
        .bandwidth = part * profile->memory_slices / gpu->kind.memory_slices,
        .total_bytes = profile->total_bytes};
    name_unit(unit, "MIG", index, place);
    gpu->unit_count = place < gpu->unit_count ? gpu->unit_count : place + 1;
    return unit;
}

/* Tries all ways to place the profiles from number `placed` on, until one works. */
static bool lay_out(
    const struct gpu_kind *kind, const int *profiles, int count, int placed, int *starts)
{
    int possible[MIG_MEMORY_SLICES_MAX];

    if (placed == count)
        return true;
    int n = mig_profile_starts(kind, &kind->profiles[profiles[placed]], possible);
    for (int i = 0; i < n; i++) {
        bool is_free = true;
        for (int k = 0; k < placed; k++)
            is_free &= possible[i] + kind->profiles[profiles[placed]].memory_slices <= starts[k] ||
                       starts[k] + kind->profiles[profiles[k]].memory_slices <= possible[i];
        starts[placed] = possible[i];
        if (is_free && lay_out(kind, profiles, count, placed + 1, starts))
            return true;
    }
    return false;
}

/* Nothing is added unless all of them fit. */
static int parse_instances(struct span list, struct gpu *gpu, int index, struct fault *fault)
{
    const struct gpu_kind *kind = &gpu->kind;
    struct mig_division division;
    int starts[MIG_COMPUTE_SLICES_MAX], numbers[MIG_COMPUTE_SLICES_MAX];
    int r = mig_division_parse(kind, list, fault, &division);

    if (r < 0)
        return r;
    if (!lay_out(kind, division.profiles, division.n_instances, 0, starts))
        return fault_set(
            fault, EINVAL, "%.*s: does not fit on one %s", (int)list.size, list.at, kind->name);
    for (int i = 0; i < division.n_instances; i++)
        numbers[i] = gpu_add_instance(gpu, division.profiles[i], starts[i]);
    for (int i = 0; i < division.n_computes; i++)
        gpu_add_compute(
            gpu, index, numbers[division.computes[i].instance], division.computes[i].slices);
    gpu->mig = division.n_computes > 0;
    return 0;
}

/* Removes "4x" from the front of `item`, if it is there. */
static int take_count(struct span *item, int64_t *ret_count, struct fault *fault)
{
    struct span rest = *item;
    struct span head = take_until(&rest, 'x');
    char digits[8];

    *ret_count = 1;
    if (!rest.size)
        return 0;
    if (!span_copy(head, digits, sizeof(digits)) || parse_int64(digits, 1, GPUS_MAX, ret_count) < 0)
        return fault_set(fault, EINVAL, "%.*s: the number of GPUs must be 1 to %d", (int)item->size,
            item->at, GPUS_MAX);
    *item = rest;
    return 0;
}

/* "4xA100-40GB", "A100-40GB:3g.20gb+2g.10gb": a number, a kind, and its instances. */
static int parse_item(
    const struct gpu_kinds *kinds, struct span item, struct world *world, struct fault *fault)
{
    char names[300];
    int64_t count;
    int r = take_count(&item, &count, fault);

    if (r < 0)
        return r;
    struct span name = take_until(&item, ':');
    const struct gpu_kind *kind = gpu_kinds_find(kinds, name);
    if (!kind)
        return fault_set(fault, EINVAL, "%.*s: unknown GPU; known: %s", (int)name.size, name.at,
            gpu_kinds_names(kinds, names, sizeof(names)));
    if (world->gpu_count + count > GPUS_MAX)
        return fault_set(fault, EINVAL, "more than %d GPUs", GPUS_MAX);
    for (int64_t i = 0; i < count && r == 0; i++) {
        int index = world->gpu_count++;
        struct gpu *gpu = &world->gpus[index];
        *gpu = (struct gpu){.kind = *kind};
        init_whole(gpu, index);
        r = parse_instances(item, gpu, index, fault);
    }
    return r;
}

/* Items are comma-separated: "2xH200,A100-40GB" is a machine of three GPUs of two kinds. */
int gpu_list_parse(
    const struct gpu_kinds *kinds, const char *text, struct world *world, struct fault *fault)
{
    struct span rest = span_of(text);

    world->gpu_count = 0;
    do {
        int r = parse_item(kinds, span_trim(take_until(&rest, ',')), world, fault);
        if (r < 0)
            return r;
    } while (rest.size);
    return 0;
}
