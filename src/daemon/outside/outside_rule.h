/* SPDX-License-Identifier: Apache-2.0 */
/* Whose user gets a message about a process that uses a GPU outside of tasks, and when. Pure. */
#ifndef COLLOC_DAEMON_OUTSIDE_OUTSIDE_RULE_H
#define COLLOC_DAEMON_OUTSIDE_OUTSIDE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "exec/device_filter.h"

/* Between two messages to a user, however many processes there are. Chosen. */
#define OUTSIDE_EVERY_US (3600 * SECOND_US)

/* The users that got a message within OUTSIDE_EVERY_US. Starts as zero. */
struct outside_rule {
    struct outside_notice {
        uint32_t uid;
        int64_t at_us;
    } * notices;
    size_t n, capacity;
};

/*
 * Decides about one process, and notes the message.
 *
 * uid:      of the process
 * is_young: it was started less than the setting outside-after ago
 * now_us:   of a clock that does not go back
 * listed:   users that may
 *
 * Returns true when its user is to get a message now.
 */
bool outside_rule_review(struct outside_rule *rule, uint32_t uid, bool is_young, int64_t now_us,
    const struct allowed_users *listed);

void outside_rule_fini(struct outside_rule *rule);

#endif
