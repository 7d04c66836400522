/* SPDX-License-Identifier: Apache-2.0 */
/* Names of instances are those of nvidia-smi. */
#include "sharing/mig_division.h"

#include "base/span_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Takes "1c." off the front. Returns its slices, or 0 when the name does not begin so. */
static int take_slices(struct span *name)
{
    bool has_prefix = name->size > 3 && name->at[0] >= '1' && name->at[0] <= '9' &&
                      name->at[1] == 'c' && name->at[2] == '.';
    if (!has_prefix)
        return 0;
    int slices = name->at[0] - '0';
    *name = (struct span){name->at + 3, name->size - 3};
    return slices;
}

/* Returns the slices of the GPU instance that are not in a compute instance yet. */
static int slices_left(
    const struct gpu_kind *kind, const struct mig_division *division, int instance)
{
    int left = kind->profiles[division->profiles[instance]].compute_slices;
    for (int i = 0; i < division->n_computes; i++)
        if (division->computes[i].instance == instance)
            left -= division->computes[i].slices;
    return left;
}

/* Returns the number of a GPU instance of the profile that has at least `slices` left, or -1. */
static int find_room(
    const struct gpu_kind *kind, const struct mig_division *division, int profile, int slices)
{
    for (int i = division->first_open; i < division->n_instances; i++)
        if (division->profiles[i] == profile && slices_left(kind, division, i) >= slices)
            return i;
    return -1;
}

static int add_compute(const struct gpu_kind *kind, struct span name, struct fault *fault,
    struct mig_division *division)
{
    struct span whole = name;
    int slices = take_slices(&name), found = gpu_kind_find_profile(kind, name);
    if (found < 0)
        return fault_set(fault, EINVAL, "%s has no MIG profile \"%.*s\"", kind->name,
            (int)(whole.size < 20 ? whole.size : 20), whole.at);
    int most = kind->profiles[found].compute_slices;
    if (slices > most)
        return fault_set(fault, EINVAL, "%.*s: a GPU instance %s has %d slices of compute",
            (int)whole.size, whole.at, kind->profiles[found].name, most);
    if (slices && !mig_has_compute_size(slices))
        return fault_set(fault, EINVAL, "%.*s: there are no compute instances of %d slices",
            (int)whole.size, whole.at, slices);
    if (division->n_computes == kind->compute_slices)
        return fault_set(fault, EINVAL, "more than %d MIG instances do not fit on one %s",
            kind->compute_slices, kind->name);
    if (slices == 0)
        slices = most;
    int instance = find_room(kind, division, found, slices);
    if (instance < 0) {
        instance = division->n_instances++;
        division->profiles[instance] = found;
    }
    division->computes[division->n_computes++] = (struct mig_compute){instance, slices};
    return 0;
}

int mig_division_parse(const struct gpu_kind *kind, struct span text, struct fault *fault,
    struct mig_division *ret_division)
{
    int r = 0;
    *ret_division = (struct mig_division){.n_instances = 0};
    for (bool is_last = text.size == 0; !is_last && r == 0;) {
        is_last = !memchr(text.at, '+', text.size);
        r = add_compute(kind, span_take_until(&text, '+'), fault, ret_division);
        if (span_starts(text, "+")) {
            ret_division->first_open = ret_division->n_instances;
            text = (struct span){text.at + 1, text.size - 1};
        }
    }
    return r;
}

double mig_compute_part(const struct mig_profile *profile, int slices)
{
    return (double)slices / profile->compute_slices;
}

const char *mig_compute_name(
    const struct mig_profile *profile, int slices, char buffer[MIG_COMPUTE_NAME_SIZE])
{
    if (slices == profile->compute_slices)
        snprintf(buffer, MIG_COMPUTE_NAME_SIZE, "%s", profile->name);
    else
        snprintf(buffer, MIG_COMPUTE_NAME_SIZE, "%dc.%s", slices, profile->name);
    return buffer;
}
