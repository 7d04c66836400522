/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about jobs that give way share (away_jobs.h). */
#ifndef COLLOC_DAEMON_NODE_AWAY_STATE_H
#define COLLOC_DAEMON_NODE_AWAY_STATE_H

#include "checkpoint/helper_pool.h"
#include "checkpoint/suspend_rules.h"
#include "checkpoint/suspension_record.h"
#include "daemon/node/node_state.h"
#include "preload/page_orders.h"

struct away_job {
    struct away_job *next, **link;
    uint32_t job;
    enum node_job_where where;
    bool has_record;  /* on disk: its processes may be off their GPUs */
    bool must_return; /* its way out has failed, or was found half done: it comes back first */
    bool is_lost;     /* its record is damaged: its processes say what was in it (away_lost.c) */
    struct suspension_record record;
    struct node_job said; /* failure, why, took_us */

    /* in the loop's time */
    uint64_t retry_ms;          /* not tried before */
    uint64_t began_ms, step_ms; /* its way, the present step of it */

    struct pooled_group group; /* its processes, while they are with the driver */
};

struct away_jobs {
    struct node *node;
    struct helper_pool helpers;
    struct copy_speed speed;
    uv_timer_t timer;
    bool is_taking; /* the settings and the library allow it */
    bool is_closed;
    struct away_job *first;

    uint32_t wanted[NODE_JOBS_MAX];
    size_t n_wanted;
    uint64_t lease_until_ms; /* in the loop's time */
    uint64_t loaded_ms;      /* when the records were read */

    bool is_driver_known, may_hang_host;
    int cuda_version;
    size_t n_gpus;
    char driver_fault[128]; /* why the driver cannot be used; "": it can */

    /* of the job whose turn it is */
    struct away_job *present; /* NULL: none; not while it is with the driver */
    struct helper_client *client;
    struct suspend_facts facts;
    size_t inspected;
    void (*next_step)(struct away_jobs *away);

    void (*try_jobs)(struct away_jobs *away); /* it is no job's turn: the next goes on, or begins */
};

/* ---- away_list.c ---- */

/* Returns the job; NULL: it was not ordered out. */
struct away_job *away_find(const struct away_jobs *away, uint32_t number);

/* Adds a job that is on its GPUs. Returns NULL when memory is out. */
struct away_job *away_add(struct away_jobs *away, uint32_t number);

/* Is the process of the job: by its cgroup; or it says so, and is its user's? */
bool away_is_process(const struct node *node, const struct node_process *process, uint32_t job);

/* Is a process of the job on the GPU, by the last poll? */
bool away_is_on(const struct node *node, uint32_t job, const struct node_gpu *gpu);

/* The GPU memory that the record of the job has. */
int64_t away_out_bytes(const struct away_job *job);

/* Removes and releases the job, and its record. */
void away_forget(struct away_jobs *away, struct away_job *job);

/* Writes the record of the job. Returns 0 or -errno. */
int away_save_record(struct away_jobs *away, struct away_job *job);
void away_remove_record(struct away_jobs *away, struct away_job *job);

/* Adds the jobs that an earlier agent has left out: for a lease they count as ordered out. */
void away_load_records(struct away_jobs *away);

/* ---- away_lost.c ---- */

/* Makes the record of a lost job again, from its processes. Returns false: they may not all have
 * come to this agent; or the job has ended, and is forgotten. */
bool away_find_lost(struct away_jobs *away, struct away_job *job);

/* ---- away_share.c ---- */

/* Sets the facts about the host memory that jobs which are out have, and that the present job's
 * user may have. */
void away_take_share(struct away_jobs *away);

/* ---- away_driver.c ---- */

/* The present job's processes go to the driver, and it is the next job's turn.
 *   host_bytes: that the driver copies to the host */
void away_run_group(struct away_jobs *away, enum group_goal goal, double host_bytes);

/* It is the turn of a job for which the driver has answered: away_take_group goes on with it.
 * Returns false: there is none. */
bool away_take_answer(struct away_jobs *away);

/* Returns which of the node's GPUs jobs with the driver have; the caller frees it. NULL: memory is
 * out. */
bool *away_claims(const struct away_jobs *away);

/* Has the job none of the claimed GPUs? If it has, it claims its own: it goes on before those
 * behind it. */
bool away_may_begin(const struct away_jobs *away, const struct away_job *job, bool *claims);

/* ---- away_way.c ---- */

/* The job is the present one from now on: it is on the way that begins with `begin`. */
void away_begin(struct away_jobs *away, struct away_job *job, enum node_job_where where,
    void (*begin)(struct away_jobs *away));

/* Calls `step` again after some milliseconds. */
void away_wait(struct away_jobs *away, void (*step)(struct away_jobs *away));

/* Ends the present way; the job is where it says by now. */
void away_finish(struct away_jobs *away, enum node_job_where where);

/* It is the next job's turn, soon: not from within the call, as many may be tried. */
void away_try_soon(struct away_jobs *away);

/* ---- away_facts.c ---- */

/* Collects the present job's processes and facts; then away_begin_going, or a refusal. */
void away_gather_facts(struct away_jobs *away);

/* ---- away_steps.c ---- */

/* All facts are known, and permit it: the job leaves. */
void away_begin_going(struct away_jobs *away);

/* The job comes back. */
void away_begin_coming(struct away_jobs *away);

/* The present job stays, or comes back first if something of it may be away. */
void away_fail(struct away_jobs *away, enum node_job_failure failure, const char *why);

/* The driver has answered for the present job. */
void away_take_group(struct away_jobs *away);

#endif
