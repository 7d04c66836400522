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
static enum preload_carry_answer ask_all(const struct suspension *s)
{
    enum preload_carry_answer worst = PRELOAD_CARRIES_DONE;
    for (size_t i = 0; i < s->record.n_processes; i++) {
        enum preload_carry_answer answer = preload_manager_carry(
            s->parts.preload, s->orders->task, s->record.processes[i].pid, s->carry.is_away);
        if (answer == PRELOAD_CARRIES_NOT && !s->carry.is_away)
            answer = PRELOAD_CARRIES_DONE;
        worst = answer > worst ? answer : worst;
    }
    return worst;
}

static void on_carry_timer(uv_timer_t *timer);

static void ask_again(struct suspension *s)
{
    enum preload_carry_answer answer = ask_all(s);
    if (answer == PRELOAD_CARRIES_STILL && clock_monotonic_us() - s->carry.begun_us < limit_us(s)) {
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
