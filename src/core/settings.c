/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults of the core's settings, and the names of the orders of the main queue. Those that
 * decide which GPU a task may get are `conditions` (view.h), which policies read.
 */
#include "core/settings.h"

#include "base/clock.h"
#include "base/units.h"

struct core_settings core_settings_default(void)
{
    struct core_settings settings = {0};
#define CORE_SETTING(id, member, kind, otherwise, ...) settings.member = otherwise;
#include "core/settings.def"
    return settings;
}

const char *const queue_order_names[QUEUE_ORDERS] = {[ORDER_FAIR] = "fair", [ORDER_FIFO] = "fifo"};

const char *queue_order_name(enum queue_order order)
{
    return queue_order_names[order];
}
