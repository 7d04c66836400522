/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places instances by trying all placements, the largest instances first: on an A100 at most seven
 * instances with at most eight placements each. "3g 3g 1g" has no placement there, since two 3g
 * take all memory slices. "1c.3g 1c.3g 1c.3g 2g 1g" has one: the first three are in one GPU
 * instance 3g.
 */
#include "gpu/mig_plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mig_slices.h"

/* "3" and "3g" name the slices. 0: the text is no such thing. */
static int slices_of(const char *text)
{
    char *end;
    long slices = strtol(text, &end, 10);
    bool whole = end != text && (*end == '\0' || strcmp(end, "g") == 0);
    return whole && slices > 0 && slices < 100 ? (int)slices : 0;
}

static bool is_better(const struct mig_profile *a, const struct mig_profile *than)
{
    return !than || a->mem_bytes < than->mem_bytes;
}

static const struct mig_profile *find_profile(
    const struct mig_profile *profiles, size_t count, const char *text)
{
    const struct mig_profile *best = NULL;
    int slices = slices_of(text);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(profiles[i].name, text) == 0)
            return &profiles[i];
        if (slices == profiles[i].slices && is_better(&profiles[i], best))
            best = &profiles[i];
    }
    return best;
}

static int no_such_profile(
    const struct mig_profile *profiles, size_t count, const char *text, struct fault *fault)
{
    char all[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof all; i++)
        used += (size_t)snprintf(
            all + used, sizeof all - used, "%s%s", i ? ", " : "", profiles[i].name);
    return fault_set(fault, EINVAL, "%.40s: no MIG profile of this GPU; it has %s", text, all);
}

static bool overlaps_placed(
    const struct mig_plan *plan, size_t placed, const struct mig_placement *at)
{
    for (size_t i = 0; i < placed; i++) {
        const struct mig_placement *other = &plan->instances[i].at;
        if (at->start < other->start + other->size && other->start < at->start + at->size)
            return true;
    }
    return false;
}

/* Every way to place the instances from number `placed` on, until one works. */
static bool place_rest(const struct mig_profile *profiles, struct mig_plan *plan, size_t placed)
{
    if (placed == plan->count)
        return true;
    const struct mig_profile *profile = &profiles[plan->instances[placed].profile];
    for (size_t i = 0; i < profile->n_placements; i++) {
        plan->instances[placed].at = profile->placements[i];
        if (!overlaps_placed(plan, placed, &profile->placements[i]) &&
            place_rest(profiles, plan, placed + 1))
            return true;
    }
    return false;
}

/* Takes "1c." off the front. Returns its slices, 0 when the name does not begin so. */
static int take_compute(const char **name)
{
    const char *text = *name;
    if (text[0] < '1' || text[0] > '9' || text[1] != 'c' || text[2] != '.')
        return 0;
    *name = text + 3;
    return text[0] - '0';
}

static int slices_left(const struct mig_profile *profiles, const struct mig_instance *instance)
{
    int left = profiles[instance->profile].slices;
    for (size_t i = 0; i < instance->n_computes; i++)
        left -= instance->computes[i];
    return left;
}

/* The GPU instance that the compute instance is in: one with slices left, or another one. */
static struct mig_instance *find_instance(
    const struct mig_profile *profiles, size_t profile, int slices, struct mig_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->instances[i].profile == profile &&
            slices_left(profiles, &plan->instances[i]) >= slices)
            return &plan->instances[i];
    struct mig_instance *instance = &plan->instances[plan->count++];
    bool has_placement = profiles[profile].n_placements > 0;
    *instance = (struct mig_instance){.profile = profile};
    instance->at.size = has_placement ? profiles[profile].placements[0].size : 0;
    return instance;
}

static int add_instance(const struct mig_profile *profiles, size_t count, const char *name,
    struct fault *fault, struct mig_plan *plan)
{
    const char *rest = name;
    int slices = take_compute(&rest);
    const struct mig_profile *profile = find_profile(profiles, count, rest);
    if (!profile)
        return no_such_profile(profiles, count, name, fault);
    if (slices > profile->slices)
        return fault_set(fault, EINVAL, "%.40s: a GPU instance %s has %d slices of compute", name,
            profile->name, profile->slices);
    if (slices && !mig_has_compute_size(slices))
        return fault_set(
            fault, EINVAL, "%.40s: there are no compute instances of %d slices", name, slices);
    slices = slices ? slices : profile->slices;
    struct mig_instance *instance = find_instance(
        profiles, (size_t)(profile - profiles), slices, plan);
    instance->computes[instance->n_computes++] = slices;
    return 0;
}

static int by_start(const void *a, const void *b)
{
    unsigned left = ((const struct mig_instance *)a)->at.start,
             right = ((const struct mig_instance *)b)->at.start;
    return (left > right) - (left < right);
}

static int by_size(const void *a, const void *b)
{
    unsigned left = ((const struct mig_instance *)a)->at.size,
             right = ((const struct mig_instance *)b)->at.size;
    return (left < right) - (left > right);
}

int mig_plan_make(const struct mig_profile *profiles, size_t count, const char *const *names,
    size_t n_names, struct fault *fault, struct mig_plan *ret_plan)
{
    *ret_plan = (struct mig_plan){0};
    if (n_names > MIG_INSTANCES_MAX)
        return fault_set(
            fault, EINVAL, "%zu instances: more than any GPU can be divided into", n_names);
    for (size_t i = 0; i < n_names; i++) {
        int r = add_instance(profiles, count, names[i], fault, ret_plan);
        if (r < 0)
            return r;
    }
    qsort(ret_plan->instances, ret_plan->count, sizeof *ret_plan->instances, by_size);
    if (!place_rest(profiles, ret_plan, 0))
        return fault_set(
            fault, EINVAL, "these %zu instances do not fit on one GPU together", ret_plan->count);
    mig_plan_sort(ret_plan);
    return 0;
}

const char *mig_plan_name(const struct mig_profile *profile, int slices, char buffer[MIG_NAME_SIZE])
{
    if (slices == profile->slices)
        snprintf(buffer, MIG_NAME_SIZE, "%s", profile->name);
    else
        snprintf(buffer, MIG_NAME_SIZE, "%dc.%s", slices, profile->name);
    return buffer;
}

void mig_plan_sort(struct mig_plan *plan)
{
    qsort(plan->instances, plan->count, sizeof *plan->instances, by_start);
}
