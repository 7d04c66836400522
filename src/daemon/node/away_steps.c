/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways of a job off its GPUs and back:
 *
 *     out    record -> ranks held at the same collective -> gates closed, no call in flight
 *            -> carriers take the blocks -> the driver takes the contexts, if it can -> record: out
 *     back   the driver puts back what it took -> carriers put the blocks back -> gates open
 *            -> no record
 *
 * A process without a carrier leaves by the driver alone; clients of MPS and ranks of NCCL by their
 * carriers alone. What fails on the way out comes back before the gates open: all or none.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/order_limits.h"
#include "daemon/node/away_state.h"
#include "preload/rank_text.h"

/* Chosen: as the daemon of a server (daemon/suspension/order_groups.c). */
enum { CALLS_LIMIT_MS = 30 * 1000 };

/* ---- pages of the processes ---- */

static struct preload_page *page_of(const struct away_jobs *away, size_t i)
{
    return job_waits_page(
        away->node, away->present->job, group_process_id(&away->present->record.processes[i]));
}

static bool is_alive(const struct away_jobs *away, size_t i)
{
    const struct group_process *process = &away->present->record.processes[i];
    return cuda_process_is(process->pid, process->born);
}

static uint64_t waited_ms(const struct away_jobs *away)
{
    return uv_now(away->node->parts.loop) - away->present->step_ms;
}

static void begin_step(struct away_jobs *away)
{
    away->present->step_ms = uv_now(away->node->parts.loop);
}

static void open_gates(struct away_jobs *away)
{
    struct preload_page *pages[PAGES_HELD_MAX];
    size_t n = job_waits_pages(away->node, away->present->job, pages, PAGES_HELD_MAX);
    for (size_t i = 0; i < n; i++)
        page_set_gate(pages[i], false);
}

static int64_t limit_of_carriers_ms(const struct away_jobs *away)
{
    double bytes = reading_or(suspension_record_bytes(&away->present->record), 0);
    return carry_limit_us(bytes) / MS_US;
}

/* The worst answer of all carriers. A living process without a page has not come to this agent yet,
 * which was started while the job was out. */
static enum preload_carry_answer ask_carriers(const struct away_jobs *away, bool is_away)
{
    enum preload_carry_answer worst = PRELOAD_CARRIES_DONE;
    for (size_t i = 0; i < away->present->record.n_processes; i++) {
        struct preload_page *page = page_of(away, i);
        enum preload_carry_answer answer = PRELOAD_CARRIES_NOT;
        if (page)
            answer = page_carry(page, is_away);
        else if (!is_away && is_alive(away, i))
            answer = PRELOAD_CARRIES_STILL;
        if (answer == PRELOAD_CARRIES_NOT && !is_away)
            answer = PRELOAD_CARRIES_DONE; /* it has nothing to bring back */
        worst = answer > worst ? answer : worst;
    }
    return worst;
}

/* Where each process stands: why its ranks were not stopped together. */
static void log_ranks(const struct away_jobs *away)
{
    char text[RANK_TEXT_SIZE];
    for (size_t i = 0; i < away->present->record.n_processes; i++) {
        const struct preload_page *page = page_of(away, i);
        if (!page)
            continue;
        rank_text_write(page, text, sizeof text);
        log_info("job %u: process %d: %s", away->present->job,
            (int)away->present->record.processes[i].pid, text);
    }
}

/* ---- the way back ---- */

static void finish_back(struct away_jobs *away)
{
    open_gates(away);
    away_finish(away, NODE_JOB_HERE);
}

/* It stays out, and is tried again. */
static void retry_back(struct away_jobs *away, const char *why)
{
    log_warning("job %u cannot come back yet: %s", away->present->job, why);
    away->present->must_return = true;
    away_finish(away, NODE_JOB_OUT);
}

static void bring_back(struct away_jobs *away)
{
    enum preload_carry_answer answer = ask_carriers(away, false);
    if (answer == PRELOAD_CARRIES_DONE)
        finish_back(away);
    else if (answer == PRELOAD_CARRIES_STILL &&
             (int64_t)waited_ms(away) < limit_of_carriers_ms(away))
        away_wait(away, bring_back);
    else if (answer == PRELOAD_CARRIES_LOST) {
        log_error("job %u: the copy of its memory was lost: its processes fail at their next call",
            away->present->job);
        finish_back(away);
    } else
        retry_back(away, "a carrier has not put its memory back");
}

static void begin_bring_back(struct away_jobs *away)
{
    begin_step(away);
    bring_back(away);
}

void away_begin_coming(struct away_jobs *away)
{
    if (away->present->record.are_clients)
        begin_bring_back(away);
    else
        away_run_group(away, GROUP_RUNNING, 0);
}

static void end_coming(struct away_jobs *away, enum group_answer answer, const char *error)
{
    if (answer == GROUP_DONE || answer == GROUP_EMPTY || answer == GROUP_BROKEN) {
        if (answer == GROUP_BROKEN)
            log_error("job %u: the driver has lost a process: %s", away->present->job, error);
        begin_bring_back(away);
    } else
        retry_back(away, answer == GROUP_NO_ROOM ? "its GPU has too little free memory"
                         : *error                ? error
                                                 : "the driver does not answer");
}

/* ---- the way out ---- */

void away_fail(struct away_jobs *away, enum node_job_failure failure, const char *why)
{
    struct away_job *job = away->present;
    log_info("job %u stays on its GPUs: %s", job->job, why);
    job->said.failure = failure;
    snprintf(job->said.why, sizeof job->said.why, "%.*s", NODE_JOB_WHY_SIZE - 1, why);
    if (!job->has_record) {
        away_finish(away, NODE_JOB_HERE);
        return;
    }
    job->must_return = true;
    job->where = NODE_JOB_COMING;
    away_begin_coming(away);
}

/* What its carriers do not take. */
static double left_bytes(const struct away_jobs *away)
{
    const struct suspension_record *record = &away->present->record;
    double bytes = reading_or(suspension_record_bytes(record), 0);
    for (size_t i = 0; record->is_carried && i < record->n_processes; i++) {
        const struct preload_page *page = page_of(away, i);
        bytes -= page ? (double)atomic_load(&page->carry_bytes) : 0;
    }
    return fmax(0, bytes); /* the record is older than what they took */
}

/* What stays on each GPU, as contexts: at least one byte, since the job comes back only there. */
static int64_t kept_bytes(const struct away_jobs *away)
{
    double bytes = away->present->record.are_clients ? left_bytes(away) : 0;
    return bytes > 1 ? (int64_t)bytes : 1;
}

static void finish_out(struct away_jobs *away)
{
    struct away_job *job = away->present;
    job->record.is_resuming = true; /* all of it is out */
    if (away_save_record(away, job) < 0) {
        job->record.is_resuming = false;
        away_fail(away, NODE_JOB_NOT_NOW, "the state folder cannot be written");
        return;
    }
    job->said.failure = NODE_JOB_NO_FAILURE;
    *job->said.why = '\0';
    job->said.kept_bytes = kept_bytes(away);
    away_finish(away, NODE_JOB_OUT);
}

static void end_going(struct away_jobs *away, enum group_answer answer, const char *error)
{
    if (answer == GROUP_DONE)
        finish_out(away);
    else if (answer == GROUP_UNDONE)
        away_fail(away, NODE_JOB_REFUSED, *error ? error : "the driver refuses to suspend it");
    else
        away_fail(away, NODE_JOB_NOT_NOW, *error ? error : "the driver does not answer");
}

void away_take_group(struct away_jobs *away)
{
    const struct pooled_group *group = &away->present->group;
    if (away->present->where == NODE_JOB_GOING)
        end_going(away, group->answer, group->runner.error);
    else
        end_coming(away, group->answer, group->runner.error);
}

/* What has been taken comes back. */
static void fail_carriers(struct away_jobs *away)
{
    char why[NODE_JOB_WHY_SIZE] = "its memory was not taken away";
    bool is_explained = false;
    for (size_t i = 0; i < away->present->record.n_processes && !is_explained; i++)
        is_explained = page_explain_carrier(
            page_of(away, i), away->present->record.processes[i].pid, why, sizeof why);
    log_ranks(away);
    away_fail(away, NODE_JOB_NOT_NOW, why);
}

/* The carriers take the blocks; what they do not take the driver takes, unless it takes no part. */
static void take_away(struct away_jobs *away)
{
    enum preload_carry_answer answer = ask_carriers(away, true);
    bool is_alone = away->present->record.are_clients;
    if (answer == PRELOAD_CARRIES_STILL && (int64_t)waited_ms(away) < limit_of_carriers_ms(away))
        away_wait(away, take_away);
    else if (answer == PRELOAD_CARRIES_DONE && is_alone)
        finish_out(away);
    else if (is_alone || answer == PRELOAD_CARRIES_LOST || answer == PRELOAD_CARRIES_STILL)
        fail_carriers(away);
    else
        away_run_group(away, GROUP_SUSPENDED, left_bytes(away));
}

/* Returns the number of processes without a page, and whether a call of the others is in flight. */
static size_t close_pages(struct away_jobs *away, bool *ret_is_busy)
{
    size_t n = 0;
    *ret_is_busy = false;
    for (size_t i = 0; i < away->present->record.n_processes; i++) {
        struct preload_page *page = page_of(away, i);
        n += !page;
        if (!page)
            continue;
        page_set_gate(page, true);
        *ret_is_busy |= atomic_load(&page->in_flight) > 0;
    }
    return n;
}

/* Did a step of the job, which may have the library, begin under an earlier agent? Then its pages
 * come with its next calls of CUDA. */
static bool is_of_before(const struct away_jobs *away)
{
    for (const struct node_step *step = away->node->steps; step; step = step->next)
        if (step->job == away->present->job && step->is_of_before && step->is_pinned)
            return true;
    return false;
}

static void close_gates(struct away_jobs *away)
{
    bool is_busy;
    size_t n_without = close_pages(away, &is_busy);
    if (n_without > 0 && is_of_before(away))
        away_fail(away, NODE_JOB_NOT_NOW,
            "a process of it has not called CUDA since the agent was started, as far as its "
            "preloaded library can see");
    else if (n_without > 0)
        away_fail(away, NODE_JOB_REFUSED,
            "a process of it runs without the preloaded library: a call that synchronizes would "
            "crash it");
    else if (is_busy && waited_ms(away) < CALLS_LIMIT_MS)
        away_wait(away, close_gates);
    else if (is_busy) {
        log_ranks(away);
        away_fail(away, NODE_JOB_NOT_NOW, "one of its CUDA calls does not return");
    } else {
        begin_step(away);
        if (away->present->record.is_carried) {
            job_rooms_lend(away->node, away->present->job, &away->present->record);
            take_away(away);
        } else
            away_run_group(away, GROUP_SUSPENDED, left_bytes(away));
    }
}

static void hold_ranks(struct away_jobs *away)
{
    struct preload_page *pages[PAGES_HELD_MAX];
    size_t n = job_waits_pages(away->node, away->present->job, pages, PAGES_HELD_MAX);
    enum preload_hold_answer answer = pages_hold(pages, n);
    if (answer == PRELOAD_HOLD_REACHED) {
        begin_step(away);
        close_gates(away);
    } else if (answer != PRELOAD_HOLD_CANNOT && waited_ms(away) < CALLS_LIMIT_MS)
        away_wait(away, hold_ranks);
    else {
        log_ranks(away);
        away_fail(away, NODE_JOB_NOT_NOW,
            "its ranks have not come to the same collective, or use NCCL in a way that is not "
            "counted");
    }
}

void away_begin_going(struct away_jobs *away)
{
    struct suspension_record *record = &away->present->record;
    record->is_carried = away->node->parts.config->carrier;
    record->are_clients = suspend_is_by_carrier_alone(&away->facts);
    if (away_save_record(away, away->present) < 0) {
        away_fail(away, NODE_JOB_NOT_NOW, "the state folder cannot be written");
        return;
    }
    begin_step(away);
    if (suspend_has_ranks(&away->facts))
        hold_ranks(away);
    else
        close_gates(away);
}
