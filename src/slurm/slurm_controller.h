/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third driver of the core, beside the daemon and the simulator: it follows Slurm's jobs and
 * decides which of them to pin to which GPUs. Pure: the caller reads Slurm, makes the changes and
 * reports their results (slurm_loop.c; tests do so with lists in memory).
 *
 *     loop:  read all jobs and nodes from Slurm
 *            slurm_controller_update    -> the core places what fits
 *            make the changes           pin, requeue, return, comment
 *            slurm_controller_changed   what came of each
 *            read the scripts of slurm_controller_wanted_script, and the error files of
 *            slurm_controller_wanted_log; again
 *
 * Contract:
 *   1. Slurm is the truth. The controller stores nothing on disk: a new one reads Slurm's own
 *      fields and the notes in admin_comment (job_note.h), and places no job twice.
 *   2. A change is requested until Slurm shows it; each change may be repeated.
 *   3. A job is known by its id, the time of its submission and its restarts: Slurm uses an id
 *      again after a crash of slurmctld.
 */
#ifndef COLLOC_SLURM_SLURM_CONTROLLER_H
#define COLLOC_SLURM_SLURM_CONTROLLER_H

#include "core/core.h"
#include "slurm/slurm_controller_options.h"
#include "slurm/slurm_job.h"

struct slurm_controller;
struct cluster_node;

/* Returns the controller, for slurm_controller_destroy; NULL without memory. */
struct slurm_controller *slurm_controller_create(const struct slurm_controller_options *options);
void slurm_controller_destroy(struct slurm_controller *controller);

/*
 * Takes over what Slurm shows, and lets the core decide.
 *
 * snapshot:    borrowed until the next update
 * now_us:      the core's time: clock_monotonic_us
 * wall_s:      Slurm's time
 * ret_changes: what to change, in this order; valid until the next call
 *
 * Returns 0, or -ENOMEM: the controller has to be created anew.
 */
int slurm_controller_update(struct slurm_controller *controller,
    const struct slurm_snapshot *snapshot, int64_t now_us, int64_t wall_s,
    struct slurm_change **ret_changes, size_t *ret_n);

/* A change was made (`change->result` is 0), or was not (-errno, with the reason). */
void slurm_controller_changed(struct slurm_controller *controller,
    const struct slurm_change *change, const char *reason, int64_t now_us);

/* A job whose files the controller needs. */
struct slurm_job_key {
    uint32_t id;          /* for Slurm's calls */
    uint32_t base, index; /* as in slurm_change */
    uid_t uid;
    gid_t gid;
    const char *work_dir; /* valid until the next update */
    int attempt;
    uint64_t request; /* its number: the id may be another job's when the answer comes */
};

/* The next job whose script has to be read; from then on it counts as being read. Returns false
 * when there is none. */
bool slurm_controller_wanted_script(
    struct slurm_controller *controller, struct slurm_job_key *ret_key);

/*
 * The requirements in a job's script (job_script.h). Sizes, policies and so on are the core's; the
 * number of GPUs is not taken from it.
 *
 * refusal: why the job cannot be placed; or NULL
 */
void slurm_controller_set_request(struct slurm_controller *controller,
    const struct slurm_job_key *key, const struct task_request *request, const char *refusal);

/* The script, or the place of the error file, could not be read now: it will be wanted again. */
void slurm_controller_want_again(
    struct slurm_controller *controller, const struct slurm_job_key *key);

/* The summary could not be estimated, but perhaps can another time. Returns whether it will be
 * wanted again; else it has failed too often, and the job is to be refused. */
bool slurm_controller_try_again(
    struct slurm_controller *controller, const struct slurm_job_key *key);

/* The next job that failed on shared GPUs: did it run out of GPU memory? Returns false when there
 * is none. */
bool slurm_controller_wanted_log(
    struct slurm_controller *controller, struct slurm_job_key *ret_key);
void slurm_controller_log_examined(
    struct slurm_controller *controller, const struct slurm_job_key *key, bool is_gpu_oom);

/* One GPU of a node, as its agent reports it. */
struct slurm_gpu_reading {
    int index;
    const char *uuid; /* "": not known */
    struct reading mem_total_bytes, mem_used_bytes, smact, power_w;
    bool is_faulty;
    bool processes_known;
    uint32_t external_at_least; /* where not: how many certainly are of no job */
    const struct slurm_gpu_process {
        uint32_t job;    /* Slurm's id; 0: of no job */
        bool is_claimed; /* its user says so, */
        uid_t uid;       /* this one: of another user's job it is not believed */
        struct reading mem_used_bytes;
    } * processes;
    size_t n_processes;
};

/* Takes over the report of a node's agent. The next update decides; core_wants_pass says whether it
 * might place a job. Returns 0; -ENOENT: no such node; or -ENOMEM. */
int slurm_controller_report(struct slurm_controller *controller, const char *node,
    const struct slurm_gpu_reading *gpus, size_t n, int64_t now_us);

/* What a node's agent says of a job that runs there (nodelink/node_job.h). */
struct slurm_job_report {
    uint32_t job; /* Slurm's id */
    enum slurm_job_where { SLURM_JOB_HERE, SLURM_JOB_ON_ITS_WAY, SLURM_JOB_OUT } where;
    int64_t waits_bytes; /* that an allocation waits for; 0: none does */
    int64_t idle_us;     /* since it has last called CUDA; 0: not known */
    int64_t held_bytes, kept_bytes, took_us;
    bool is_called;  /* it is out, and calls CUDA */
    bool is_carried; /* of a client of MPS: the carrier can take its memory */
    bool has_ranks;  /* it is out, and its processes are ranks of NCCL */
    bool has_failed, may_later;
    const char *why;    /* it has failed */
    int64_t room_bytes; /* host memory of the agent's that is ready for its copy */
    const char *rooms;  /* about that, for users; NULL or "": it has none, and could have none */
};

/*
 * Takes over where the jobs of a node are.
 *
 * suspends: the agent takes jobs off their GPUs
 * reports:  only jobs that are elsewhere, or do something; of the others nothing is to say
 */
void slurm_controller_report_jobs(struct slurm_controller *controller, const char *node,
    bool suspends, const struct slurm_job_report *reports, size_t n, int64_t now_us);

/* Lists Slurm's ids of the jobs that the core wants off the node's GPUs. Returns how many, at most
 * `max`. */
size_t slurm_controller_list_away(
    struct slurm_controller *controller, const char *node, uint32_t *ret_jobs, size_t max);

/* An agent saw a job run out of GPU memory and requeued it, held. `restarts`: before that. */
void slurm_controller_crashed(
    struct slurm_controller *controller, uint32_t job, uint32_t restarts, int64_t now_us);

/* Is the next update wanted before Slurm changes? Something else that counts has come since. */
bool slurm_controller_has_news(const struct slurm_controller *controller);

/* Is it a node with GPUs that Slurm lists? */
bool slurm_controller_has_node(const struct slurm_controller *controller, const char *node);

/* Return the node of this name, or the one with this number; NULL: there is none. */
struct cluster_node *slurm_controller_node(
    const struct slurm_controller *controller, const char *name);
struct cluster_node *slurm_controller_node_at(
    const struct slurm_controller *controller, size_t number);

/* The core, for reading. */
const struct core *slurm_controller_core(const struct slurm_controller *controller);

/* Writes Slurm's name of the core's task: "17" or "12_3". Returns `text`. */
const char *slurm_controller_job_name(
    const struct slurm_controller *controller, uint64_t task, char *text, size_t size);

#endif
