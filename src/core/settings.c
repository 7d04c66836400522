/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults of the core's settings, the names of their values, and which of them contradict each
 * other. Those that decide which GPU a task may get are `conditions` (view.h), which policies read.
 */
#include "core/settings.h"

#include <errno.h>

#include "base/clock.h"
#include "base/units.h"

struct core_settings core_settings_default(void)
{
    struct core_settings settings = {0};
#define CORE_SETTING(id, member, kind, otherwise, ...) settings.member = otherwise;
#include "core/settings.def"
    return settings;
}

const char *const recovery_rule_names[RECOVERY_RULES] = {
    [RECOVERY_DRAIN] = "drain", [RECOVERY_STOP_QUEUE] = "stop-queue"};

static int check_stop_queue(const struct core_settings *settings, struct fault *fault)
{
    if (settings->policy && settings->policy->exclusive_gpus)
        return fault_set(fault, EINVAL,
            "recovery: stop-queue: the policy %s shares no GPU, so no task recovers: use another "
            "policy, or drain",
            settings->policy->name);
    if (settings->recoveries_max == 0)
        return fault_set(fault, EINVAL,
            "recovery: stop-queue: with recoveries 0 no task recovers: allow some, or use drain");
    if (settings->preempt)
        return fault_set(fault, EINVAL,
            "recovery: stop-queue: with preempt, a task of the queue starts in place of a running "
            "one: use one of the two");
    return 0;
}

int core_settings_check(const struct core_settings *settings, struct fault *fault)
{
    if (settings->decision_delay_us && settings->preempt)
        return fault_set(fault, EINVAL,
            "decision-delay: with preempt, a task starts in place of a running one, without a "
            "delay: use one of the two");
    return settings->recovery == RECOVERY_STOP_QUEUE ? check_stop_queue(settings, fault) : 0;
}

const char *const queue_order_names[QUEUE_ORDERS] = {[ORDER_FAIR] = "fair", [ORDER_FIFO] = "fifo"};

const char *queue_order_name(enum queue_order order)
{
    return queue_order_names[order];
}
