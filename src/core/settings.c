/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the core: the defaults, and the names of the orders of the main queue. Those that
 * decide which GPU a task may get are `conditions` (view.h), which policies read.
 */
#include "core/settings.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

/* core.h and view.h have the source of each. */
struct core_settings core_settings_default(void)
{
    return (struct core_settings){
        .conditions = {.smact_max = 0.80,
            .min_free_bytes = 5 * GIB,
            .margin_bytes = 2 * GIB,
            .sample_valid_us = 3 * SECOND_US,
            .tasks_per_gpu_max = 0,
            .slowdown_max = 3},
        .window_us = 90 * SECOND_US,
        .settle_us = 10 * SECOND_US,
        .settle_max_us = 60 * SECOND_US,
        .recoveries_max = 3,
        .requeues_max = 3,
        .filler_smact = 0.80,
        .filler_percent = 70,
        .mps_mem_limit = true,
        .backfill = true,
        .suspension_cost = suspension_cost_default(),
        .order = ORDER_FAIR,
        .usage_half_life_us = 7 * 86400 * SECOND_US,
        .service_hold_us = 60 * SECOND_US,
        .slot_us = 600 * SECOND_US, /* chosen: a task of 20 GiB is suspended in a fifth of 5 % */
    };
}

static const char *const order_names[QUEUE_ORDERS] = {[ORDER_FAIR] = "fair", [ORDER_FIFO] = "fifo"};

const char *queue_order_name(enum queue_order order)
{
    return order_names[order];
}

int queue_order_parse(const char *name, enum queue_order *ret_order)
{
    for (int i = 0; i < QUEUE_ORDERS; i++) {
        if (strcmp(order_names[i], name) == 0) {
            *ret_order = (enum queue_order)i;
            return 0;
        }
    }
    return -EINVAL;
}
