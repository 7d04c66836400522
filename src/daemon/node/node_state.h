/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the agent share. */
#ifndef COLLOC_DAEMON_NODE_NODE_STATE_H
#define COLLOC_DAEMON_NODE_NODE_STATE_H

#include "checkpoint/suspension_record.h"
#include "daemon/node/node_options.h"
#include "daemon/rooms/room_pool.h"
#include "gpu/gpu.h"
#include "nodelink/node_uplink.h"
#include "preload/page.h"
#include "preload/preload_listener.h"
#include "service/user_helper.h"

enum {
    PINS_KEPT = 256,
    CRASHES_KEPT = 16,
    STEP_BATCH = -5, /* Slurm's SLURM_BATCH_SCRIPT as a signed number */
    NODE_STEP_RECORD_SIZE = sizeof "2147483647-18446744073709551615",
};

/* A step that Slurm runs on the node, from its slurmstepd's request to that process's end. */
struct node_step {
    struct node *node;
    struct node_step *next, **link;
    uint32_t job;
    uint32_t array_job, array_task; /* what scontrol calls the job; array_job 0: of no array */
    int32_t step;
    uid_t uid;
    gid_t gid;
    pid_t stepd;
    uint64_t gpus; /* a bit for the number of each; 0: none */
    bool is_mps;
    bool is_pinned;    /* by the controller, as far as this agent knows */
    bool is_of_before; /* it began under an earlier agent */
    bool was_shared; /* another job or program was on one of its GPUs meanwhile, or may have been */
    char record[NODE_STEP_RECORD_SIZE]; /* name of its file; "": not written */
    uv_poll_t end;                      /* of a pidfd of slurmstepd */
    int pidfd;
};

struct node_crash_kept {
    struct node_crash crash;
    int64_t at_us; /* monotonic */
};

static inline struct process_id node_process_id(const struct node_process *process)
{
    return (struct process_id){process->pid, process->born};
}

/* node_sampler.c: one poll; the pool thread's while `is_polling`. */
struct node_poll {
    uv_work_t work;
    bool is_polling;
    void (*on_done)(struct node *node);
    int64_t begun_us; /* monotonic */
    struct gpu_set *set;
    struct gpu_sample *samples; /* one for each GPU of the set */
    char why_none[512], why_logged[512];
    int64_t next_open_us;
    char gres_fault[NODE_TEXT_SIZE], gres_logged[NODE_TEXT_SIZE]; /* what is wrong in gres.conf */
    int64_t next_gres_us;
    uint64_t gres_numbers; /* of the node's GPUs there; 0: not known */
    struct node_gpu *gpus; /* the result, one for each whole card; owned */
    size_t n_gpus;
    struct job_cache *jobs;
};

struct node {
    struct node_options parts;
    bool is_open, is_closing;
    char name[NODE_NAME_SIZE], boot[NODE_BOOT_SIZE];
    struct node_uplink *uplink;
    uv_timer_t period;

    struct node_poll poll;
    struct node_gpu *gpus; /* of the last poll */
    size_t n_gpus;
    uint64_t gres_numbers; /* as of the last poll */
    int64_t sampled_us;    /* monotonic; 0: not yet */

    struct node_step *steps;
    struct node_pin pins[PINS_KEPT]; /* a ring */
    size_t n_pins;
    struct node_crash_kept crashes[CRASHES_KEPT]; /* a ring */
    size_t n_crashes;

    struct step_server *server;  /* node_socket.c */
    struct slurmd_watch *slurmd; /* slurmd_watch.c */
    struct job_waits *waits;     /* job_waits.c; NULL: jobs run without the preloaded library */
    struct away_jobs *away;      /* away_jobs.c; NULL: memory was out */
    struct room_pool *rooms;     /* job_rooms.c; NULL: memory was out, or without the library */
};

/* ---- node_sampler.c ---- */

/* Begins a poll, unless one is under way. When it is complete, its GPUs are in `node`, and
 * `on_done` is called. */
void node_poll_begin(struct node *node, void (*on_done)(struct node *node));
void node_poll_fini(struct node *node);
void node_gpus_free(struct node_gpu *gpus, size_t n);

/* ---- node_crashes.c ---- */

/* Keeps a crash, to be reported for some minutes. */
void node_crash_note(struct node *node, const struct node_crash *crash);

/* Lists those that are to be reported. Returns how many. */
size_t node_crashes_list(const struct node *node, struct node_crash ret_list[CRASHES_KEPT]);

/* ---- node_steps.c ---- */

/*
 * Adds a step; it is removed when its slurmstepd has ended.
 *
 * step: copied; `stepd` is its process
 *
 * Returns NULL when that process has ended, or memory is out.
 */
struct node_step *node_step_add(struct node *node, const struct node_step *step);

/* Adds the steps of an earlier agent whose slurmstepd still runs. */
void node_steps_load(struct node *node);

/* Returns the step of this slurmstepd; NULL: not known. */
struct node_step *node_step_find(const struct node *node, pid_t stepd);

/* Returns a step of the job, all of which are of one user; NULL: none is known. */
const struct node_step *node_step_of_job(const struct node *node, uint64_t job);

/* Notes which steps share their GPUs with processes of others, by the last poll. */
void node_steps_note_sharing(struct node *node);

/* Stops watching all steps; they continue. */
void node_steps_close(struct node *node);

/* ---- step_records.c ---- */

/* Writes the step for the next agent. A failure is logged: it is then not known there. */
void step_record_save(struct node_step *step);

/* The step has ended. */
void step_record_remove(const struct node_step *step);

/* Passes each step of an earlier agent whose slurmstepd still runs to `visit`, which returns NULL
 * when it does not take the step, and removes all other records. */
typedef struct node_step *step_record_visit(struct node *node, const struct node_step *step);
void step_records_read(struct node *node, step_record_visit *visit);

/* ---- node_socket.c ---- */

/* Listens on the socket of the configuration. Returns 0, or -errno with a fault. */
int step_server_open(struct node *node, struct fault *fault);
void step_server_mps_ready(struct node *node, uid_t uid);
void step_server_close(struct node *node);
void step_server_destroy(struct node *node);

/* ---- job_waits.c ---- */

/* Listens for the preloaded library in jobs, if the settings say so. */
void job_waits_open(struct node *node);
void job_waits_close(struct node *node);
void job_waits_destroy(struct node *node);

/* Returns the socket for processes of jobs; NULL: they run without the library. */
const char *job_waits_socket(const struct node *node);

/* A poll is complete: answers the threads that wait for GPU memory. */
void job_waits_poll(struct node *node);

/* Returns the page of this process of the job; NULL: it has not called CUDA with the library since
 * this agent was started. */
struct preload_page *job_waits_page(const struct node *node, uint32_t job, struct process_id id);

/* Returns the first process of the job with a page, or the one after `process`; NULL: no more. */
struct preload_process *job_waits_next_process(
    const struct node *node, uint32_t job, struct preload_process *process);

/* Lists the pages of all processes of the job. Returns how many, at most `max`. */
size_t job_waits_pages(
    const struct node *node, uint32_t job, struct preload_page **ret_pages, size_t max);

/* Lists the jobs whose allocations wait, that do not call CUDA, that can be carried, or that are
 * out and call CUDA. Returns how many, at most `max`. */
size_t job_waits_report(const struct node *node, struct node_job *ret_jobs, size_t max);

/* Returns the listener of the library in jobs; NULL: they run without it. */
struct preload_listener *job_waits_listener(const struct node *node);

/* Is it certainly a process of the job that it names? */
bool job_waits_is_certain(const struct node *node, const struct preload_peer *peer);

/* ---- job_rooms.c ---- */

/* Begins to make host memory for the copies of jobs, if they have the library. */
void job_rooms_open(struct node *node);
void job_rooms_close(struct node *node);
void job_rooms_destroy(struct node *node);

/* A poll is complete: notes what the jobs have on the GPUs. out_bytes: host memory of jobs that are
 * out */
void job_rooms_poll(struct node *node, int64_t out_bytes);

/* Adds what is ready for the copies of each job to a report that has `n` jobs. Returns how many it
 * has then, at most `max`. */
size_t job_rooms_report(const struct node *node, struct node_job *jobs, size_t n, size_t max);

/* Returns how much of the copies of these processes would lie in host memory of the agent's. */
uint64_t job_rooms_bytes(
    const struct node *node, uint32_t job, const struct suspension_record *record);

/* Has the next copies of these processes go there, where it is large enough, and otherwise to
 * memory of the job. */
void job_rooms_lend(const struct node *node, uint32_t job, const struct suspension_record *record);

/* ---- slurmd_watch.c ---- */

/* Begins to watch for the end of slurmd. Returns 0 or -ENOMEM. */
int slurmd_watch_open(struct node *node);
void slurmd_watch_close(struct node *node);
void slurmd_watch_destroy(struct node *node);

#endif
