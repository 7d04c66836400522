/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of the interference model, by name. The build makes their values from
 * data/sharing/interference.txt. */
#include "sharing/interference_constants.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

const struct interference_constants interference_measured = {
#include "sharing/interference_constants.inc"
};

double *interference_constant(struct interference_constants *constants, const char *name)
{
    const struct {
        const char *name;
        double *value;
    } all[] = {{"switch_cost", &constants->switch_cost}, {"cold_cost", &constants->cold_cost},
        {"launch_cost", &constants->launch_cost}, {"weight_power", &constants->weight_power},
        {"grip", &constants->weight_power}, /* its name before: check-words: alias */
        {"cache_cost", &constants->cache_cost}, {"traffic_cost", &constants->traffic_cost}};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        if (strcmp(name, all[i].name) == 0)
            return all[i].value;
    return NULL;
}
