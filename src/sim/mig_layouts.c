/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory slices of a GPU are filled from the first on: at each slice begins one of the profiles
 * that may begin there and fit, or none if no profile can. Two orders of the same profiles are the
 * same set; a set is written with the largest profile first, so that equal sets have equal texts.
 *
 * An A100-40GB at slice 0: 4g.20gb may begin there and takes slices 0 to 3. At slice 4: 3g.20gb
 * takes the rest, "4g.20gb+3g.20gb"; or 2g.10gb takes two, and 1g.5gb one, "4g.20gb+2g.10gb+1g.5gb".
 */
#include "sim/mig_layouts.h"

#include <stdio.h>
#include <string.h>

struct filling {
    const struct gpu_kind *kind;
    struct mig_layout *layouts;
    int n_layouts;
    int counts[MIG_PROFILES_MAX]; /* instances so far, by profile */
};

/* Profiles are listed from the smallest to the largest. */
static void write_layout(const struct filling *filling, struct mig_layout *layout)
{
    size_t used = 0;
    layout->text[0] = '\0';
    for (int i = filling->kind->n_profiles - 1; i >= 0; i--)
        for (int k = 0; k < filling->counts[i] && used < sizeof layout->text; k++)
            used += (size_t)snprintf(layout->text + used, sizeof layout->text - used, "%s%s",
                used ? "+" : "", filling->kind->profiles[i].name);
}

static void add_layout(struct filling *filling)
{
    struct mig_layout layout;
    write_layout(filling, &layout);
    for (int i = 0; i < filling->n_layouts; i++)
        if (strcmp(filling->layouts[i].text, layout.text) == 0)
            return;
    if (*layout.text && filling->n_layouts < MIG_LAYOUTS_MAX)
        filling->layouts[filling->n_layouts++] = layout;
}

static bool may_begin(const struct gpu_kind *kind, const struct mig_profile *profile, int slice)
{
    int starts[MIG_MEMORY_SLICES_MAX], n = mig_profile_starts(kind, profile, starts);
    for (int i = 0; i < n; i++)
        if (starts[i] == slice)
            return true;
    return false;
}

static void fill_from(struct filling *filling, int slice)
{
    bool any = false;
    if (slice >= filling->kind->memory_slices) {
        add_layout(filling);
        return;
    }
    for (int i = 0; i < filling->kind->n_profiles; i++) {
        const struct mig_profile *profile = &filling->kind->profiles[i];
        if (!may_begin(filling->kind, profile, slice))
            continue;
        any = true;
        filling->counts[i]++;
        fill_from(filling, slice + profile->memory_slices);
        filling->counts[i]--;
    }
    if (!any)
        fill_from(filling, slice + 1);
}

int mig_layouts_list(const struct gpu_kind *kind, struct mig_layout ret_layouts[MIG_LAYOUTS_MAX])
{
    struct filling filling = {.kind = kind, .layouts = ret_layouts};
    if (kind->n_profiles > 0)
        fill_from(&filling, 0);
    return filling.n_layouts;
}
