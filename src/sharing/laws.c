/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "sharing/sharing.h"

const struct sharing_laws sharing_laws_measured = {
#include "sharing/laws.inc"
};

double *sharing_law(struct sharing_laws *laws, const char *name)
{
    const struct {
        const char *name;
        double *value;
    } all[] = {{"switch_cost", &laws->switch_cost}, {"cold_cost", &laws->cold_cost},
        {"launch_cost", &laws->launch_cost}, {"grip", &laws->grip},
        {"cache_cost", &laws->cache_cost}, {"traffic_cost", &laws->traffic_cost}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, all[i].name) == 0)
            return all[i].value;
    return NULL;
}
