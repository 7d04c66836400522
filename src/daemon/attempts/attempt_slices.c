/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slices of attempts' containers (exec/container_slice.h), reviewed after each poll of the
 * GPUs. systemd makes a slice when the first container of an attempt starts, without a word to
 * collocd, and dockerd starts a container again that was to be restarted always:
 *
 *     the attempt runs       its slice gets the limits and the GPU filter of its cgroup, once
 *     it does not            its slice is ended: its shim was killed, or dockerd has put a
 *                            container there again
 *
 * A helper process does it, since systemd may take its time to answer.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/log.h"
#include "daemon/attempts/attempts_state.h"
#include "exec/container_slice.h"
#include "exec/device_filter.h"

#define LIMIT_MS 30000                 /* chosen: as attempt_sweep.c */
#define FILTERED "trusted.colloc.gpus" /* an attribute of a slice's cgroup that has its filter */

/* Calls `visit` for each slice of an attempt of this state folder, until it returns non-zero, which
 * is returned. */
static int visit_slices(struct attempts *attempts,
    int (*visit)(struct attempts *attempts, const char *path, uint64_t task, int attempt))
{
    char home[CGROUP_PATH_SIZE];
    DIR *entries = container_slice_find_home(home) ? opendir(home) : NULL;
    int r = 0;
    for (const struct dirent *entry; r == 0 && entries && (entry = readdir(entries));) {
        char path[CGROUP_PATH_SIZE + sizeof entry->d_name];
        uint64_t task;
        int attempt;
        snprintf(path, sizeof path, "%s/%s", home, entry->d_name);
        if (cgroup_parse_slice_name(
                entry->d_name, attempts->parts.config->state_dir, &task, &attempt))
            r = visit(attempts, path, task, attempt);
    }
    if (entries)
        closedir(entries);
    return r;
}

/* ---- what is to be done ---- */

enum slice_work { SLICE_IS_FINE, SLICE_TO_LIMIT, SLICE_TO_END };

static enum slice_work work_of(struct attempts *attempts, uint64_t task, int attempt)
{
    const struct live_attempt *live = live_attempt_find(attempts, task);
    if (!cgroups_attempt_runs(attempts, task, attempt))
        return SLICE_TO_END;
    return live && !live->has_limited_slice ? SLICE_TO_LIMIT : SLICE_IS_FINE;
}

static int find_work(struct attempts *attempts, const char *path, uint64_t task, int attempt)
{
    return work_of(attempts, task, attempt);
}

/* ---- in the helper ---- */

static int filter_slice(const struct attempts *attempts, const struct task *task, const char *path)
{
    struct gpu_minors minors;
    char *text = attempts_join_minors(attempts, task, task->run->share.sharing == SHARING_MPS);
    int r = 0;
    if (text && getxattr(path, FILTERED, NULL, 0) < 0) {
        r = gpu_minors_parse(text, &minors);
        if (r == 0)
            r = device_filter_set(path, &minors);
        if (r == 0)
            setxattr(path, FILTERED, text, strlen(text), 0); /* else a second one does no harm */
    }
    free(text);
    return r;
}

static int limit_slice(const struct attempts *attempts, const char *path, uint64_t id)
{
    const struct task *task = core_task(attempts->parts.core, id);
    const struct cgroup_limits limits = cgroups_limits_of(attempts, task);
    int filtered = filter_slice(attempts, task, path);
    int r = container_slice_limit(path, &limits);
    return filtered < 0 ? filtered : r;
}

/* Returns 0, the processes of a slice that was ended, or -errno. */
static int do_work(struct attempts *attempts, const char *path, uint64_t task, int attempt)
{
    switch (work_of(attempts, task, attempt)) {
    case SLICE_TO_END:
        return container_slice_end(path);
    case SLICE_TO_LIMIT:
        return limit_slice(attempts, path, task);
    case SLICE_IS_FINE:
        break;
    }
    return 0;
}

static int do_all(void *attempts, struct fault *fault)
{
    int r = visit_slices(attempts, do_work);
    return r < 0 ? fault_set(fault, -r, "%s", strerror(-r)) : r;
}

/* ---- in the daemon ---- */

/* A slice that is gone again, of a short container, is fine. */
static void on_reviewed(struct user_helper *helper, int answer, const struct fault *fault)
{
    if (answer > 0)
        log_warning("%d processes were killed in containers of tasks that have ended", answer);
    if (answer < 0 && answer != -ENOENT)
        log_warning("containers of tasks are not all limited or ended: %s", fault->text);
}

static int note_limits(struct attempts *attempts, const char *path, uint64_t task, int attempt)
{
    struct live_attempt *live = live_attempt_find(attempts, task);
    if (live && cgroups_attempt_runs(attempts, task, attempt))
        live->has_limited_slice = true;
    return 0;
}

void slices_review(struct attempts *attempts)
{
    const struct user_helper_order order = {
        .limit_ms = LIMIT_MS, .what = "limit and end the containers of tasks"};
    struct fault fault = {0};
    if (user_helper_is_under_way(&attempts->slices) || !attempts->cgroup_home[0] ||
        visit_slices(attempts, find_work) == SLICE_IS_FINE)
        return;
    attempts->slices.context = attempts;
    attempts->slices.on_done = on_reviewed;
    if (user_helper_run(&attempts->slices, attempts->parts.loop, &order, do_all, &fault) < 0)
        log_warning("containers of tasks are not limited: %s", fault.text);
    else
        visit_slices(attempts, note_limits);
}
