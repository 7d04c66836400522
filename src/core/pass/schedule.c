/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scheduling pass: its stages, in order. Each has a file in this folder.
 *
 *   1. Allocations that wait for memory are answered (memory_answer.c).
 *   2. Tasks give way to services that miss their latency targets, or continue (service_pass.c).
 *   3. Recovering tasks, by submission (recovery.c).
 *   4. Tasks on GPUs that fail are moved away (failing_gpus.c).
 *   5. Tasks of users that have GPUs reserved now (advance_pass.c).
 *   6. Suspended tasks and the main queue. With preemption by rank (preempt.c); otherwise suspended
 *      tasks first (suspended_pass.c), and while one waits, no task of the main queue starts; then
 *      tasks that take turns (slots.c), or the main queue (main_queue_pass.c).
 *   7. A running task is moved to make room for the head, if it still waits (make_room.c).
 *
 * A pass is bounded: each stage limits how many tasks of a queue it tries.
 */
#include "core/pass/schedule.h"

#include "core/pass/advance_pass.h"
#include "core/pass/failing_gpus.h"
#include "core/pass/main_queue_pass.h"
#include "core/pass/make_room.h"
#include "core/pass/memory_answer.h"
#include "core/pass/preempt.h"
#include "core/pass/recovery.h"
#include "core/pass/service_pass.h"
#include "core/pass/slots.h"
#include "core/pass/suspended_pass.h"
#include "core/state/state.h"

/* The suspended tasks, and the main queue if it does not wait for them. */
static int schedule_queues(struct core *core, int64_t now_us)
{
    bool suspended_waits = false;
    int r = core->suspended_queue.first ? core_schedule_suspended(core, now_us, &suspended_waits)
                                        : 0;
    if (r < 0 || suspended_waits)
        return r;
    return core_has_turns(core) ? core_schedule_turns(core, now_us)
                                : core_schedule_main(core, now_us);
}

int core_schedule(struct core *core, int64_t now_us)
{
    int r = core_settle_memory_waits(core, now_us);
    if (r == 0)
        r = core_schedule_services(core, now_us);
    if (r == 0)
        r = core_schedule_recovery(core, now_us);
    if (r == 0)
        r = core_empty_failing_gpus(core, now_us);
    if (r == 0)
        r = core_schedule_advances(core, now_us);
    if (r == 0)
        r = core->settings.preempt ? core_schedule_preempting(core, now_us)
                                   : schedule_queues(core, now_us);
    return r < 0 ? r : core_make_room(core, now_us);
}
