/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration is read again while the daemon runs (SIGHUP, `systemctl reload`).
 *
 * It is read as at the start: defaults, then the file, then the command line. With a mistake
 * nothing changes. Otherwise each changed setting is logged with its old and new value; a setting
 * that cannot change while the daemon runs keeps its value, which is logged too.
 *
 * Contract: the scheduler's settings change between two of its steps, and a recording (inputs.c)
 * has them at that place, so that `colloc replay` decides as the daemon did.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/operators.h"

struct changes {
    int taken, refused;
};

static void on_change(
    void *context, const char *setting, const char *from, const char *to, bool is_taken)
{
    struct changes *changes = context;
    if (is_taken) {
        changes->taken++;
        log_info("configuration: %s changed from %s to %s", setting, from, to);
    } else {
        changes->refused++;
        log_warning("configuration: %s stays %s; %s takes effect when collocd is restarted",
            setting, from, to);
    }
}

/* The tick makes the core try its queue at once: a task may be allowed to start now. */
static void configure_core(struct daemon *daemon)
{
    struct event tick = driver_event(daemon->driver, EVENT_TICK, 0);
    core_configure(daemon->core, &daemon->config.core);
    inputs_note_settings(daemon->inputs);
    driver_feed_logged(daemon->driver, &tick);
}

static void apply_settings(struct daemon *daemon, int64_t old_period_us, bool drains_others)
{
    config_complete(&daemon->config);
    if (daemon->config.sample_period_us != old_period_us)
        gpus_start(daemon->gpus);
    if (drains_others && gpus_review_use(daemon->gpus) < 0)
        driver_die_of_memory();
    mps_review(daemon->mps);
    attempts_limit_all(daemon->attempts);
    configure_core(daemon);
}

/* ---- the file of shares, whose users are looked up in the background ---- */

struct share_reload {
    struct daemon *daemon;
    int number; /* of the reload */
};

static void on_shares(void *context, const struct share_table *table, const struct fault *fault)
{
    struct share_reload *reload = context;
    struct daemon *daemon = reload->daemon;
    bool is_last = reload->number == daemon->n_reloads;
    free(reload);
    if (!is_last)
        return;
    if (!table) {
        log_error("configuration: the shares stay as they are: %s", fault->text);
        return;
    }
    if (share_table_equal(table, &daemon->config.share_table))
        return;
    daemon->config.share_table = *table;
    log_info("configuration: shares: %d projects and %d users are read from %s",
        table->n_projects - 1, table->n_users,
        *daemon->config.shares ? daemon->config.shares : "no file");
    configure_core(daemon);
}

static void reload_shares(struct daemon *daemon)
{
    struct share_reload *reload = malloc(sizeof *reload);
    if (!reload)
        driver_die_of_memory();
    *reload = (struct share_reload){daemon, ++daemon->n_reloads};
    share_file_read_again(daemon->config.shares, daemon->names, on_shares, reload);
}

/* A task gets its sharing with its submission. */
static void log_waiting_sharing(const struct daemon *daemon)
{
    int n = 0;
    const struct task *task = core_next_task(daemon->core, 0);
    for (; task; task = core_next_task(daemon->core, task->id))
        n += (task->queue || task->state == TASK_HELD) &&
             task->request.sharing != daemon->config.sharing;
    if (n)
        log_info(
            "configuration: sharing: %d waiting task%s another mode, which was chosen with the "
            "submission; tasks that are submitted from now on get %s",
            n, n > 1 ? "s keep" : " keeps", sharing_name(daemon->config.sharing));
}

static void log_mistake(const char *text)
{
    log_error("configuration: %s", text);
}

void configuration_reload(struct daemon *daemon)
{
    struct config wanted;
    struct fault fault = {0};
    struct changes changes = {0};
    int64_t old_period_us = daemon->config.sample_period_us;
    config_defaults(&wanted);
    if (config_read_arguments(&wanted, daemon->argc, daemon->argv, log_mistake, &fault) < 0) {
        log_error("configuration: nothing is changed: %s", fault.text);
        return;
    }
    if (wanted.log_level > daemon->config.log_level) /* changes are logged at either level */
        log_set_level((enum log_level)wanted.log_level);
    bool drains_others = strcmp(wanted.drain, daemon->config.drain) != 0;
    bool has_new_operators = strcmp(wanted.operators, daemon->config.operators) != 0;
    bool has_new_sharing = wanted.sharing != daemon->config.sharing;
    config_change(&daemon->config, &wanted, on_change, &changes);
    if (has_new_sharing)
        log_waiting_sharing(daemon);
    if (changes.taken)
        apply_settings(daemon, old_period_us, drains_others);
    else if (!changes.refused)
        log_info("configuration: read again, nothing has changed");
    log_set_level((enum log_level)daemon->config.log_level);
    reload_shares(daemon);
    if (has_new_operators)
        operators_check_later(&daemon->config, daemon->names);
}
