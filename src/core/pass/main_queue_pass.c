/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main queue, by class of priority and in the order of ask/main_queue.c: its head is placed,
 * and the next head, until one has to wait. All others then wait behind it, so that no task
 * starves. With the setting `backfill`, GPUs are reserved for the head (head_reservation.c), and
 * others may start where their policy sees that this does not delay it (behind_head.c).
 *
 * All of it may be paused, by the settings `recovery` and `decision-delay` (ask/queue_pause.c).
 */
#include "core/pass/main_queue_pass.h"

#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/queue_pause.h"
#include "core/decide/place.h"
#include "core/pass/advance_pass.h"
#include "core/pass/behind_head.h"
#include "core/pass/head_reservation.h"
#include "core/state/claims.h"
#include "core/state/state.h"

/* Would the head, which was tried last, start but for its server's power, which tasks draw?
 * Backfilled tasks would take of it, on whatever GPU they run: no GPU can be reserved for that. */
static bool lacks_power(const struct core *core, const struct task *head)
{
    int n_open = 0;
    bool waits = false, may_fall = false;
    if (!core->settings.conditions.server_power_max_w)
        return false;
    for (int i = 0; i < core->view.n_gpus; i++) {
        enum verdict_kind kind = core->placement.verdicts[i].kind;
        n_open += kind == VERDICT_FITS || kind == VERDICT_SERVER_POWER;
        waits |= kind == VERDICT_SERVER_POWER;
        may_fall |= gpu_view_draws_for_tasks(&core->view.gpus[i], core->settings.settle_us);
    }
    return waits && may_fall && n_open >= head->request.gpus;
}

/* GPUs are kept for reservations in advance by where the head is to start: that is chosen first, or
 * the head would be tried, and tasks behind it, by an older choice. */
static void choose_before_advances(struct core *core, const struct task *head, int64_t now_us)
{
    if (core->n_advances > 0 && core_backfills(core, head))
        core_reserve_gpus(core, head, now_us);
}

/* As core_try_gpus. In a cluster most tries place the head, and the reasons of a full one are many:
 * they are found when it has to wait. */
static enum placement_answer try_head(struct core *core, const struct task *head, int64_t now_us)
{
    bool is_found = core->view.has_nodes &&
                    core_finds_gpus(core, head, NULL, now_us, &core->placement);
    return is_found ? PLACE_NOW : core_try_gpus(core, head, now_us, &core->placement);
}

/* Is the decision about the head delayed? Until the time for GPUs in use, idle ones are tried. */
static bool is_delayed(struct core *core, const struct task *head, int64_t now_us)
{
    struct decision_times times = core_decision_times(core, head);
    if (now_us >= times.other_us)
        return false;
    return now_us < times.idle_us ||
           core_try_idle_gpus(core, head, now_us, &core->placement) != PLACE_NOW;
}

int core_schedule_main(struct core *core, int64_t now_us)
{
    struct task *head;
    int r = 0;
    core->head_lacks_power = false;
    if (core_queue_stopper(core)) {
        core_release_reservation(core);
        return 0;
    }
    while (r == 0 && (head = core_head_of_queue(core))) {
        if (head->queue->first->request.need.kind == NEED_PENDING)
            return 0;
        if (core->reserved_for != head->id)
            core_release_reservation(core);
        if (is_delayed(core, head, now_us))
            return 0;
        choose_before_advances(core, head, now_us);
        if (try_head(core, head, now_us) != PLACE_NOW) {
            r = core_report_wait(core, &core->main_wait, head, core->placement.verdicts);
            core->head_lacks_power = lacks_power(core, head);
            if (r < 0 || core->head_lacks_power)
                return r;
            r = core_fill_kept(core, head, now_us);
            return r < 0 ? r : core_backfill_behind(core, head, now_us);
        }
        r = core_place_task(core, head, core->placement.gpus, now_us);
    }
    core_release_reservation(core);
    return r;
}
