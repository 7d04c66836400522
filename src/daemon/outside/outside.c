/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After each poll the filter is set, renewed or removed as the settings say, and the external
 * processes are reviewed for messages. A service that has just been started is thus filtered within
 * a sample-period.
 *
 * A message about a process of root in a container goes to the owner of the container
 * (container_owners.h).
 *
 * The names of outside-users are looked up before the filter is set, in the background. While a
 * directory of users does not answer, no filter is set: it would lock listed users out.
 */
#include "daemon/outside/outside.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/outside/container_owners.h"
#include "daemon/outside/outside_rule.h"
#include "exec/cgroup.h"
#include "exec/outside_filter.h"

/* Of users that the database lacks: the group of no user (Debian's nogroup). */
enum { NO_GROUP = 65534 };

struct outside {
    struct outside_options options;
    char names[sizeof((struct config *)NULL)->outside_users]; /* that `users` are */
    struct allowed_users users, found;                        /* known; of the look-ups under way */
    int n_asked;
    bool is_known, has_no_answer;

    struct outside_filter *filter; /* NULL: all GPUs are open */
    bool has_failed;               /* with these settings: it is in the log */
    int n_filtered;                /* cgroups; -1: not known yet */
    struct outside_rule rule;
    struct container_owners *owners;
};

/* ---- the users that may ---- */

static void add_user(struct allowed_users *users, uid_t uid)
{
    if (users->n < FILTER_USERS_MAX)
        users->list[users->n++] = uid;
    else
        log_warning("outside-users: only the first %d are taken", FILTER_USERS_MAX);
}

static void warn_of(const char *name)
{
    log_warning("outside-users: there is no user '%s'", name);
}

static void on_name(void *context, const struct name *name)
{
    struct outside *outside = context;
    outside->n_asked--;
    if (name->state == NAME_KNOWN)
        add_user(&outside->found, name->uid);
    else if (name->state == NAME_NONE)
        warn_of(name->name);
    else
        outside->has_no_answer = true;
}

/* Names are looked up one after the other, and this counts as one until all have been begun. */
static void ask_users(struct outside *outside)
{
    const char *at = outside->names;
    char name[sizeof outside->names];
    outside->found.n = 0;
    outside->has_no_answer = false;
    outside->n_asked = 1;
    while (config_next_name(&at, name, sizeof name)) {
        outside->n_asked++;
        names_ask_name(outside->options.names, name, on_name, outside);
    }
    outside->n_asked--;
}

/* Returns whether the users are known that the settings list now. */
static bool review_users(struct outside *outside)
{
    const char *wanted = outside->options.config->outside_users;
    if (outside->n_asked > 0)
        return false;
    if (strcmp(outside->names, wanted) != 0) {
        snprintf(outside->names, sizeof outside->names, "%s", wanted);
        outside->is_known = false;
        outside->has_failed = false;
        ask_users(outside);
    } else if (!outside->is_known && outside->has_no_answer) {
        ask_users(outside);
    }
    if (outside->is_known || outside->n_asked > 0 || outside->has_no_answer)
        return outside->is_known;
    outside->users = outside->found;
    outside_filter_destroy(outside->filter); /* made anew for these users */
    outside->filter = NULL;
    return outside->is_known = true;
}

/* ---- the filter ---- */

static struct outside_filter *make_filter(const struct allowed_users *users, struct fault *fault)
{
    char home[CGROUP_PATH_SIZE];
    struct cgroup_controllers enabled;
    return cgroup_open_home(home, &enabled, fault) == 0 ? outside_filter_create(home, users, fault)
                                                        : NULL;
}

static void report_failure(struct outside *outside, const struct fault *fault)
{
    if (!outside->has_failed)
        log_warning(
            "outside: limit: GPUs stay open to processes outside of tasks: %s", fault->text);
    outside->has_failed = true;
}

static void note_cgroups(struct outside *outside, int n)
{
    if (n == 0 && outside->n_filtered != 0)
        log_warning("outside: limit: there is no cgroup beside colloc's: logins have none of their "
                    "own without systemd");
    else if (n > 0 && outside->n_filtered <= 0)
        log_info("outside: limit: GPUs are closed to users' processes outside of tasks");
    outside->n_filtered = n;
}

static void review_filter(struct outside *outside)
{
    struct fault fault = {0};
    if (outside->options.config->outside != OUTSIDE_LIMIT) {
        outside_filter_destroy(outside->filter);
        outside->filter = NULL;
        outside->has_failed = false;
        return;
    }
    if (!outside->filter && !outside->has_failed) {
        outside->filter = make_filter(&outside->users, &fault);
        outside->n_filtered = -1;
    }
    int n = outside->filter ? outside_filter_review(outside->filter, &fault) : -EINVAL;
    if (n < 0)
        report_failure(outside, &fault);
    else
        note_cgroups(outside, n);
}

/* ---- the messages ---- */

/* A process of which a message may be sent. */
struct external_use {
    pid_t pid;
    const struct process_facts *facts;
    uid_t uid;                           /* of its user, or of its container's owner */
    const struct container_owner *owner; /* NULL: it is its user's own */
};

/* "python (pid 47)", "python (pid 47, docker container 4f2c1ab83c1d)" */
static void format_process(const struct external_use *of, char *text, size_t size)
{
    int n = snprintf(text, size, "%s (pid %d", of->facts->name, (int)of->pid);
    snprintf(text + n, size - (size_t)n, "%s%s%s%s)", of->owner ? ", " : "",
        of->owner ? of->owner->program : "", of->owner ? " container " : "",
        of->owner ? of->owner->id : "");
}

static void send_message(
    struct outside *outside, const struct gpu_report *gpu, const struct external_use *of)
{
    char process[PROCESS_NAME_SIZE + 80];
    const struct name *user = names_of_uid(outside->options.names, of->uid);
    bool is_known = user->state == NAME_KNOWN;
    format_process(of, process, sizeof process);
    const struct outside_use use = {.uid = of->uid,
        .gid = is_known ? user->gid : NO_GROUP,
        .user = is_known ? user->name : "",
        .process = process,
        .gpu = gpu->info->index};
    log_info("outside: %s of user %u uses GPU %s: its user gets a message", process,
        (unsigned)of->uid, gpu->info->index);
    messages_note_outside(outside->options.messages, &use);
}

/* The pid of a process that has left memory behind may be another one's. */
static bool is_left(const struct gpu_report *gpu, pid_t pid)
{
    for (size_t i = 0; i < gpu->n_left; i++)
        if (gpu->left[i].pid == pid)
            return true;
    return false;
}

/* A helper of the daemon (kernels/kernel_asker.h), which is neither root's nor a task's. */
static bool is_own_child(pid_t pid)
{
    struct process_stat stat;
    return process_read_stat(pid, &stat) == 0 && stat.parent == getpid();
}

static void review_process(struct outside *outside, const struct gpu_report *gpu, pid_t pid)
{
    struct process_facts facts;
    if (is_own_child(pid) || process_read(pid, &facts) < 0)
        return;
    struct external_use use = {.pid = pid, .facts = &facts, .uid = facts.uid};
    if (!user_is_person(facts.uid))
        use.owner = container_owners_find(outside->owners, pid);
    if (use.owner)
        use.uid = use.owner->uid;
    bool is_young = facts.age_us < outside->options.config->outside_after_us;
    if (outside_rule_review(
            &outside->rule, use.uid, is_young, clock_monotonic_us(), &outside->users))
        send_message(outside, gpu, &use);
}

static void review_processes(struct outside *outside, const struct gpu_report *gpu)
{
    for (size_t i = 0; i < gpu->n_external; i++)
        if (!is_left(gpu, gpu->external[i].pid))
            review_process(outside, gpu, gpu->external[i].pid);
}

void outside_polled(struct outside *outside)
{
    struct gpu_report gpu;
    if (outside->options.config->outside == OUTSIDE_SHOW && !outside->filter)
        return;
    if (!review_users(outside))
        return;
    review_filter(outside);
    if (outside->options.config->outside == OUTSIDE_SHOW)
        return;
    for (size_t i = 0; gpus_report(outside->options.gpus, i, &gpu); i++)
        if (gpu.view >= 0)
            review_processes(outside, &gpu);
    container_owners_end_review(outside->owners);
}

/* ---- life ---- */

struct outside *outside_create(const struct outside_options *options)
{
    struct outside *outside = calloc(1, sizeof *outside);
    if (!outside)
        return NULL;
    outside->options = *options;
    outside->owners = container_owners_create(options->names);
    if (outside->owners)
        return outside;
    free(outside);
    return NULL;
}

void outside_check(const struct config *config)
{
    const char *at = config->outside_users;
    char name[sizeof config->outside_users];
    struct fault fault = {0};
    while (config_next_name(&at, name, sizeof name))
        if (!getpwnam(name))
            warn_of(name);
    if (config->outside != OUTSIDE_LIMIT)
        return;
    if (outside_filter_try(&fault) < 0)
        log_warning(
            "outside: limit: GPUs would stay open to processes outside of tasks: %s", fault.text);
}

void outside_destroy(struct outside *outside)
{
    if (!outside)
        return;
    outside_filter_destroy(outside->filter);
    outside_rule_fini(&outside->rule);
    container_owners_destroy(outside->owners);
    free(outside);
}
