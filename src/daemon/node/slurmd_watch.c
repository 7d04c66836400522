/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fencing: when slurmd has ended, slurmctld declares the node lost after SlurmdTimeout and runs its
 * jobs again elsewhere. But their processes here continue until slurmd runs again. So that no job
 * runs twice, the agent ends them before that.
 *
 *     slurmd's last answer          gone                 fence               node DOWN
 *     |--- up to a third of SlurmdTimeout ---|---- two thirds ----|    (at the earliest)
 *
 * slurmctld counts from slurmd's last answer, which is up to a ping before slurmd's end, and it
 * pings each third of SlurmdTimeout: hence two thirds. SlurmdTimeout=0 means never.
 *
 * slurmd is found among the node's processes, and a pidfd shows its end. From then on a search each
 * second finds the next one, so that a restart of slurmd ends no job. The settings are read again
 * while it does not run: they may have been changed for a longer stop. As long as a search has not
 * answered, it is not known that slurmd is gone, and nothing is ended.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/node/node_fence.h"
#include "daemon/node/node_state.h"
#include "daemon/node/slurm_client.h"
#include "daemon/node/slurmd_search.h"

enum {
    PERIOD_MS = 1000,
    HELPER_MS = 30 * 1000, /* chosen: slurmctld may be busy */
    CONFIG_MAX = 256 * 1024,
};
#define ASK_AGAIN_US (30 * SECOND_US) /* chosen: slurmctld may be away */

struct slurmd_watch {
    struct node *node;
    uv_timer_t timer;
    struct user_helper helper, search;
    char cluster[512];                  /* Slurm's name; "": not known yet */
    int pidfd;                          /* of slurmd; -1: none is known */
    int64_t timeout_us;                 /* SlurmdTimeout; 0: never; -1: not known yet */
    int64_t next_ask_us, gone_since_us; /* monotonic; gone_since_us 0: not known to be gone */
    bool is_warning_logged;
};

/* ---- Slurm's settings ---- */

/* In the helper. Returns SlurmdTimeout in seconds and 1, with ClusterName in `report`. */
static int read_settings(void *watch, struct fault *report)
{
    static char text[CONFIG_MAX];
    const char *argv[] = {"scontrol", "show", "config", NULL};
    char number[32];
    int64_t seconds;
    if (slurm_client_run(argv, text, sizeof text) != 0 ||
        !slurm_client_field(text, "SlurmdTimeout", NULL, number, sizeof number) ||
        parse_int64(number, 0, 1000000, &seconds) < 0 ||
        !slurm_client_field(text, "ClusterName", NULL, report->text, sizeof report->text))
        return fault_set(report, EAGAIN, "scontrol show config does not answer");
    return (int)seconds + 1;
}

static void on_settings(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct slurmd_watch *watch = helper->context;
    if (answer <= 0 && watch->timeout_us >= 0)
        return; /* the last that are known hold */
    if (answer <= 0) {
        if (!watch->is_warning_logged)
            log_warning("SlurmdTimeout is not known yet, so the node's jobs are not ended when "
                        "slurmd is lost: %s",
                fault->text);
        watch->is_warning_logged = true;
        return;
    }
    int64_t timeout_us = (answer - 1) * SECOND_US;
    snprintf(watch->cluster, sizeof watch->cluster, "%s", fault->text);
    if (timeout_us == watch->timeout_us)
        return;
    watch->timeout_us = timeout_us;
    log_info("SlurmdTimeout is %d s", answer - 1);
}

static void ask_settings(struct slurmd_watch *watch, int64_t now_us)
{
    const struct user_helper_order order = {.limit_ms = HELPER_MS, .what = "read Slurm's settings"};
    if (now_us < watch->next_ask_us || user_helper_is_under_way(&watch->helper))
        return;
    watch->next_ask_us = now_us + ASK_AGAIN_US;
    watch->helper.context = watch;
    watch->helper.on_done = on_settings;
    user_helper_run(&watch->helper, watch->node->parts.loop, &order, read_settings, NULL);
}

/* ---- is slurmd there? ---- */

static struct slurm_identity identity_of(const struct slurmd_watch *watch)
{
    return (struct slurm_identity){.node = watch->node->name, .cluster = watch->cluster};
}

/* A pidfd is readable once its process has ended. */
static bool is_slurmd_alive(struct slurmd_watch *watch)
{
    struct pollfd end = {.fd = watch->pidfd, .events = POLLIN};
    if (watch->pidfd < 0)
        return false;
    if (poll(&end, 1, 0) == 0)
        return true;
    close(watch->pidfd);
    watch->pidfd = -1;
    return false;
}

static void on_searched(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct slurmd_watch *watch = helper->context;
    int64_t now_us = clock_monotonic_us();
    bool was_gone = watch->gone_since_us > 0, is_gone = answer == 0;
    if (answer < 0) { /* not known */
        log_warning("%s; no job is ended meanwhile", fault->text);
        return;
    }
    if (answer > 0) {
        log_info("slurmd is process %d", answer);
        watch->pidfd = pidfd_open(answer, 0);
    }
    if (was_gone == is_gone)
        return;
    if (is_gone)
        log_info("no slurmd of this node runs");
    watch->gone_since_us = is_gone ? now_us : 0;
    watch->next_ask_us = now_us; /* it was stopped or restarted, perhaps with other settings */
    ask_settings(watch, now_us);
}

static int search_slurmd(void *watch, struct fault *fault)
{
    const struct slurm_identity identity = identity_of(watch);
    return slurmd_search(&identity, fault);
}

static void begin_search(struct slurmd_watch *watch)
{
    const struct user_helper_order order = {.limit_ms = HELPER_MS, .what = "look for slurmd"};
    if (user_helper_is_under_way(&watch->search))
        return;
    watch->search.context = watch;
    watch->search.on_done = on_searched;
    user_helper_run(&watch->search, watch->node->parts.loop, &order, search_slurmd, NULL);
}

/* ---- fencing ---- */

static void on_fenced(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct slurmd_watch *watch = helper->context;
    if (answer > 0)
        log_warning("slurmd is lost: %d processes of jobs were ended, because Slurm runs the jobs "
                    "again elsewhere",
            answer);
    else if (answer == -EEXIST)
        watch->gone_since_us = 0; /* the next search finds it */
    else if (answer < 0)
        log_warning("%s", fault->text);
}

static int fence_jobs(void *watch, struct fault *fault)
{
    const struct slurm_identity identity = identity_of(watch);
    return node_fence(&identity, fault);
}

static void begin_fence(struct slurmd_watch *watch)
{
    const struct user_helper_order order = {.limit_ms = HELPER_MS, .what = "end the node's jobs"};
    if (user_helper_is_under_way(&watch->helper))
        return;
    watch->helper.context = watch;
    watch->helper.on_done = on_fenced;
    user_helper_run(&watch->helper, watch->node->parts.loop, &order, fence_jobs, NULL);
}

/* Asks for the settings from time to time, but not so late that an answer which does not come would
 * delay the fence. */
static void miss_slurmd(struct slurmd_watch *watch, int64_t now_us)
{
    int64_t fence_us = watch->gone_since_us + watch->timeout_us / 3 * 2;
    bool is_gone = watch->gone_since_us > 0;
    if (is_gone && watch->timeout_us > 0 && now_us >= fence_us) {
        begin_fence(watch);
        return;
    }
    begin_search(watch);
    if (is_gone && (watch->timeout_us == 0 || now_us + HELPER_MS * MS_US < fence_us))
        ask_settings(watch, now_us);
}

static void on_period(uv_timer_t *timer)
{
    struct slurmd_watch *watch = timer->data;
    int64_t now_us = clock_monotonic_us();
    if (watch->timeout_us < 0)
        ask_settings(watch, now_us);
    else if (!is_slurmd_alive(watch))
        miss_slurmd(watch, now_us);
}

int slurmd_watch_open(struct node *node)
{
    struct slurmd_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return -ENOMEM;
    *watch = (struct slurmd_watch){.node = node, .pidfd = -1, .timeout_us = -1};
    uv_timer_init(node->parts.loop, &watch->timer);
    watch->timer.data = watch;
    uv_timer_start(&watch->timer, on_period, 0, PERIOD_MS);
    node->slurmd = watch;
    return 0;
}

void slurmd_watch_close(struct node *node)
{
    if (!node->slurmd)
        return;
    user_helper_leave(&node->slurmd->helper);
    user_helper_leave(&node->slurmd->search);
    uv_close((uv_handle_t *)&node->slurmd->timer, NULL);
}

void slurmd_watch_destroy(struct node *node)
{
    if (node->slurmd && node->slurmd->pidfd >= 0)
        close(node->slurmd->pidfd);
    free(node->slurmd);
}
