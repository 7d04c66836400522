/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `simulate` and `sweep` share: policies by name, the catalogue, GPU models, the scheduler's
 * knowledge of tasks.
 */
#include "cli/simulating.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/print.h"
#include "taskfile/option.h"

enum { KINDS_FILE_MAX = 1 << 20 }; /* bytes; chosen: far above the built-in list */

int simulating_kinds(const char *path, struct fault *fault, struct gpu_kinds *ret_kinds)
{
    char *data;
    size_t size;
    int r = gpu_kinds_init(ret_kinds, fault);
    if (r < 0 || !path)
        return r;
    r = file_read(path, KINDS_FILE_MAX, fault, &data, &size);
    if (r < 0)
        return r;
    r = gpu_kinds_read(ret_kinds, (struct span){data, size}, path, fault);
    free(data);
    return r;
}

/* Policies of the daemon, and policies that only a simulation can have, such as an oracle's. */
int simulating_policy(const char *name, struct fault *fault, struct sim_policy *ret_policy)
{
    struct near_name near = {0};
    char known[256] = "";
    size_t n = 0;
    if (sim_policy_find(name, ret_policy))
        return 0;
    const char *choice;
    for (size_t i = 0; (choice = sim_policy_name_at(i)); i++) {
        near_name_try(&near, name, choice);
        if (n < sizeof known)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", choice);
    }
    return fault_set(fault, EINVAL, "--policy=%.60s: no such policy%s%s; give one of %s", name,
        near.best ? "; did you mean " : "", near.best ? near.best : "", known);
}

const char *const simulating_knowns[] = {"none", "activity", "time", "all", NULL};

int simulating_known(const char *name, struct fault *fault, struct simulation *simulation)
{
    bool all = strcmp(name, "all") == 0;
    simulation->knows_activity = all || strcmp(name, "activity") == 0;
    simulation->knows_time = all || strcmp(name, "time") == 0;
    if (simulation->knows_activity || simulation->knows_time || strcmp(name, "none") == 0)
        return 0;
    return fault_set(
        fault, EINVAL, "--known: invalid value \"%.60s\": give none, activity, time or all", name);
}

int simulating_catalogue(const char *path, const struct catalogue_settings *settings,
    struct fault *fault, struct catalogue *ret_catalogue)
{
    int r = catalogue_read(path, settings, fault, ret_catalogue);
    if (r == 0 && ret_catalogue->n_smact_assumed)
        print_error("%d tasks of the catalogue have no SM activity: assuming %g (--smact)",
            ret_catalogue->n_smact_assumed, settings->smact);
    return r;
}
