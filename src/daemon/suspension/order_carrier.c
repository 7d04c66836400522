/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carriers of a task's processes (docs/carrier.md), in an order: all of them take the memory of
 * their process away, or bring it back, and then the order goes on. Their answers are in pages, so
 * they are asked every few milliseconds.
 */
#include "base/clock.h"
#include "base/units.h"
#include "daemon/suspension/suspension_state.h"

static const uint64_t CARRY_POLL_MS = 2; /* chosen: a carrier needs 60 ms for a GiB */
/* Chosen: as long as calls of the task may be in flight, and 30 times what a copy takes. */
static const int64_t CARRY_LIMIT_US = 35 * SECOND_US;
static const int64_t CARRY_LIMIT_US_PER_GIB = 2 * SECOND_US;

static int64_t limit_us(const struct suspension *s)
{
    double bytes = reading_or(suspension_record_bytes(&s->record), 0);
    return CARRY_LIMIT_US + (int64_t)(bytes / GIB * (double)CARRY_LIMIT_US_PER_GIB);
}

/* The worst answer; one that cannot be carried has nothing to bring back. */
static enum suspension_carry ask_all(const struct suspension *s)
{
    const struct suspension_hooks *hooks = &s->parts.hooks;
    enum suspension_carry worst = SUSPENSION_CARRY_DONE;
    for (size_t i = 0; i < s->record.n_processes; i++) {
        enum suspension_carry answer = hooks->carry(
            hooks->context, s->orders->task, s->record.processes[i].pid, s->carry.is_away);
        if (answer == SUSPENSION_CARRY_NOT && !s->carry.is_away)
            answer = SUSPENSION_CARRY_DONE;
        worst = answer > worst ? answer : worst;
    }
    return worst;
}

static void on_carry_timer(uv_timer_t *timer);

static void ask_again(struct suspension *s)
{
    enum suspension_carry answer = ask_all(s);
    if (answer == SUSPENSION_CARRY_STILL &&
        clock_monotonic_us() - s->carry.begun_us < limit_us(s)) {
        uv_timer_start(&s->timer, on_carry_timer, CARRY_POLL_MS, 0);
        return;
    }
    s->carry.next(s, answer);
}

static void on_carry_timer(uv_timer_t *timer)
{
    struct suspension *s = timer->data;
    if (suspension_find_task(s, s->orders->task))
        ask_again(s);
    else
        suspension_drop_order(s);
}

void suspension_carry(struct suspension *s, bool is_away, suspension_carried *next)
{
    s->carry.is_away = is_away;
    s->carry.next = next;
    s->carry.begun_us = clock_monotonic_us();
    ask_again(s);
}
