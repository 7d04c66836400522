/* SPDX-License-Identifier: Apache-2.0 */
/* One message for each user and hour: a user that starts a process each second gets no more. */
#include "daemon/outside/outside_rule.h"

#include <stdlib.h>

#include "base/array.h"

static bool user_may(uint32_t uid, const struct allowed_users *listed)
{
    for (int i = 0; i < listed->n; i++)
        if (listed->list[i] == uid)
            return true;
    return !user_is_person(uid);
}

/* Forgets the messages that are long past. Returns whether the user had one since. */
static bool had_message(struct outside_rule *rule, uint32_t uid, int64_t now_us)
{
    size_t kept = 0;
    bool had = false;
    for (size_t i = 0; i < rule->n; i++) {
        if (now_us - rule->notices[i].at_us >= OUTSIDE_EVERY_US)
            continue;
        had |= rule->notices[i].uid == uid;
        rule->notices[kept++] = rule->notices[i];
    }
    rule->n = kept;
    return had;
}

bool outside_rule_review(struct outside_rule *rule, uint32_t uid, bool is_young, int64_t now_us,
    const struct allowed_users *listed)
{
    const struct outside_notice notice = {uid, now_us};
    if (is_young || user_may(uid, listed) || had_message(rule, uid, now_us))
        return false;
    /* Without memory for the note there would be a message with each review. */
    return ARRAY_APPEND(rule->notices, rule->n, rule->capacity, notice) == 0;
}

void outside_rule_fini(struct outside_rule *rule)
{
    free(rule->notices);
    *rule = (struct outside_rule){0};
}
