/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills the processes that a killed shim has left: their GPUs count as free once the end of the
 * attempt is reported. A helper process does it, because some are found only by their environment,
 * and reading that may take long (exec/limited_visit.h). Until it has ended, the attempt counts as
 * running. A daemon that ends meanwhile leaves the helper to itself, and the next one sweeps again.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"
#include "exec/attempt.h"

#define LIMIT_MS 30000 /* chosen: above what processes that do not answer can take */

/* In the helper. Returns how many there were, or -errno when that is not known. */
static int kill_left(void *context, struct fault *fault)
{
    const struct live_attempt *live = context;
    const struct attempts *attempts = live->attempts;
    const struct task *task = core_task(attempts->parts.core, live->task);
    char folder[STATE_PATH_SIZE];
    attempts_folder(attempts, task, folder, sizeof folder);
    int in_cgroup = cgroups_sweep(attempts, folder), marked = attempt_sweep(folder, task->uid);
    int r = in_cgroup > 0 && in_cgroup > marked ? in_cgroup : marked;
    return r < 0 ? fault_set(fault, -r, "%s", strerror(-r)) : r;
}

static void on_swept(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct live_attempt *live = helper->context;
    struct attempts *attempts = live->attempts;
    const struct task *task = core_task(attempts->parts.core, live->task);
    char why[sizeof live->sweep.why];
    memcpy(why, live->sweep.why, sizeof why); /* the report releases `live` */
    if (answer > 0)
        log_warning("task %llu: its shim was killed; %d processes that it left were killed too",
            (unsigned long long)live->task, answer);
    if (answer < 0)
        log_warning("task %llu: its shim was killed; whether all processes that it left were "
                    "killed is not known: %s",
            (unsigned long long)live->task, fault->text);
    if (live->sweep.may_be_unstarted && answer == 0)
        attempts_report_unstarted(attempts, task);
    else
        attempts_report_lost(attempts, task, why);
}

void attempts_sweep(struct live_attempt *live, const char *why, bool may_be_unstarted)
{
    const struct user_helper_order order = {
        .limit_ms = LIMIT_MS, .what = "end the processes of a killed shim"};
    struct fault fault = {0};
    live->to_adopt = true;
    live->sweep.may_be_unstarted = may_be_unstarted;
    snprintf(live->sweep.why, sizeof live->sweep.why, "%s", why);
    live->sweep.helper.context = live;
    live->sweep.helper.on_done = on_swept;
    if (user_helper_run(
            &live->sweep.helper, live->attempts->parts.loop, &order, kill_left, &fault) < 0)
        live_attempt_defer(live, fault.text);
}
