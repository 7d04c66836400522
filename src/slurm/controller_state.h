/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the controller share. */
#ifndef COLLOC_SLURM_CONTROLLER_STATE_H
#define COLLOC_SLURM_CONTROLLER_STATE_H

#include "base/array.h"
#include "core/core.h"
#include "slurm/id_map.h"
#include "slurm/job_note.h"
#include "slurm/licence_table.h"
#include "slurm/node_table.h"
#include "slurm/slurm_controller_options.h"
#include "slurm/slurm_job.h"

/* Chosen: the waiting jobs of the highest priority that are in the core. It looks no deeper
 * into its queue (core/pass/schedule.c). */
enum { WINDOW_JOBS_MAX = 1024 };

/* Where a job is, as the controller sees it. */
enum job_phase {
    JOB_WAITING,  /* pending, and not placed */
    JOB_PLACED,   /* the core has placed it; its pin is requested until Slurm shows it */
    JOB_RUNNING,  /* Slurm has started it on its GPUs */
    JOB_EXAMINED, /* it has failed; its error file is read */
    JOB_DONE,     /* nothing is to be done, until Slurm forgets it */
};

enum request_state {
    REQUEST_UNKNOWN, /* its script is to be read */
    REQUEST_READING,
    REQUEST_KNOWN,
    REQUEST_REFUSED, /* `refusal` says why */
};

/* A job, or one task of an array. What each update reads of each job comes first: with many jobs
 * an update mostly waits for these cache lines. */
struct tracked_job {
    uint32_t base, index; /* the array's id and the task's index; or the id and SLURM_NO_INDEX */
    uint32_t restarts;
    uint32_t priority;
    const struct slurm_job *record; /* of this update; NULL: Slurm has it no more */
    int64_t submit_s;
    uint64_t task;         /* the core's; 0: it is not in the core */
    unsigned seen;         /* the update that saw it last */
    int64_t time_limit_us; /* of its task in the core */
    enum job_phase phase;
    enum request_state request_state;
    bool is_eligible; /* pending with nothing but its turn to wait for */
    bool is_pinned;   /* Slurm shows the pin */
    bool is_away;     /* in the run partition without a pin that counts */
    bool has_comment; /* Slurm shows one */
    bool is_log_wanted;
    bool lacks_licences;
    bool is_held_by_agent;      /* which has requeued it because it ran out of GPU memory */
    bool awaits_requeue;        /* it ran out of GPU memory: Slurm is to run it again */
    bool is_waiting_for_memory; /* by its agent's last report, as the next two */
    bool is_carried;            /* of a client of MPS: the carrier can take its memory */
    int64_t idle_us;            /* since it has last called CUDA; 0: not known */
    int nice;                   /* as its user or an operator set it */
    char why_stays[96];         /* the last time that it could not leave its GPUs; "": none */
    char *refusal;              /* on the heap; or NULL */
    char *rooms;                /* about host memory for its copy, likewise */
    int64_t room_bytes;         /* of that, what is ready */
    char *rules[3];             /* required and excluded nodes, features; on the heap, NULL: none */
    uint32_t slurm_id;          /* of a task that is not split off: the array's */
    uid_t uid;
    gid_t gid;
    int cpus;             /* on each of its nodes, as far as is known */
    int64_t memory_bytes; /* likewise; -1: all of it */
    int attempt, ooms;
    int nodes_shown; /* by Slurm, when it was last read how many GPUs and nodes the job wants */

    uint64_t indices; /* of its GPUs on each node; with a former pin: the former ones */
    int node;         /* number, of several the first; -1: none */
    char *node_list;  /* names of several, comma-separated; on the heap; NULL: it is one */
    int64_t shards;   /* of each of its GPUs; 0: not decided */
    int64_t pinned_us, retry_us, commented_us;
    int64_t renewed_us; /* when the jobs that depend on it were last made to wait again; 0: never */
    int64_t placed_s;   /* in Slurm's time, when the core placed its task */
    int failures;       /* of changes, since the last that was made */
    int failed_tries;   /* to read and estimate its summary */
    /* numbers of the open requests for its script and its log; 0: none, or it is another job's */
    uint64_t script_request, log_request;
    uint32_t examined; /* the number of restarts at which its log was read, plus 1 */
    uint32_t reported; /* that before the last crash that its agent reported, plus 1 */
    uint32_t crashed;  /* that of the run after it last ran out of GPU memory, plus 1; 0: never */
    struct task_request request;
};

/* A job that waits for a place in the window, with what orders it. */
struct candidate {
    uint32_t priority, base, index;
    struct tracked_job *job;
};

struct slurm_controller {
    struct slurm_controller_options options;
    struct core *core;
    struct node_table nodes;
    struct tracked_job **all; /* in no certain order */
    size_t n_all, all_capacity;
    struct id_map jobs;         /* the same by base and index */
    struct id_map by_task;      /* by the core's id */
    struct id_map by_id;        /* by Slurm's id: of those placed and running */
    struct id_map array_active; /* by array id: its tasks placed or running, plus 1 */
    uint64_t next_task;
    uint64_t n_requests; /* for scripts and logs so far */
    unsigned update;     /* number of the present one */
    int64_t now_us, wall_s;
    bool counts_memory, can_change_gres;
    struct slurm_snapshot snapshot; /* of the last update */
    struct licence_table licences;
    bool is_gpu_changed;         /* an agent reported another size of a GPU */
    bool has_news, is_broken;    /* broken: memory was out */
    struct tracked_job **window; /* what is in the core, in order */
    size_t n_window, window_capacity;
    struct candidate *candidates; /* the first waiting jobs, in order */
    size_t n_candidates, candidates_capacity;
    size_t n_seen;          /* jobs that this update saw */
    bool is_active_counted; /* array_active is of this update */
    /* the job of each record at the last update: Slurm lists jobs in the same order again */
    struct tracked_job **hints;
    size_t n_hints, hints_capacity;
    struct slurm_change *changes;
    size_t n_changes, changes_capacity;
    const struct slurm_job **broken_dependents; /* whose dependency has failed by Slurm's record */
    size_t n_broken_dependents, broken_dependents_capacity;
    struct id_map ids;    /* of all jobs, or their arrays, that Slurm lists; filled when needed */
    struct id_map causes; /* by id, or the array's: what ran out of GPU memory and is run again */
    int *found_gpus;      /* scratch: one for each GPU */
    size_t found_capacity;
    int n_logs_wanted;
    const struct tracked_job *asked; /* the last that the node check was asked about */
    uint64_t asked_task;
};

/* Feeds an event without decisions; these come with the TICK that ends the update. */
void controller_apply(struct slurm_controller *controller, struct event event);

/* Adds a change of the job. Returns NULL where it has to wait, or without memory. */
struct slurm_change *controller_add_change(struct slurm_controller *controller,
    enum slurm_change_kind kind, uint32_t base, uint32_t index);

/* The job with this id; or, of an array, the array's id and the task's index. NULL: not tracked. */
static inline struct tracked_job *controller_find_job(
    const struct slurm_controller *controller, uint32_t base, uint32_t index)
{
    return id_map_get(&controller->jobs, (uint64_t)base << 32 | index);
}

/* ---- job_follow.c ---- */

/* Takes over a record of Slurm. `place`: its index in the list of all. */
void controller_follow(
    struct slurm_controller *controller, const struct slurm_job *record, size_t place);

/* Ends the jobs that Slurm has no more. */
void controller_sweep(struct slurm_controller *controller);

/* Is there nothing to report or change for the job? It only waits, or has ended. */
static inline bool tracked_job_is_quiet(const struct tracked_job *job)
{
    return (job->phase == JOB_WAITING || job->phase == JOB_DONE) && !job->task && !job->is_away &&
           !job->is_held_by_agent && !job->awaits_requeue && !job->has_comment && !job->refusal;
}

/* How many nodes the job wants, or has. */
static inline int tracked_job_nodes(const struct tracked_job *job)
{
    return job->request.nodes > 1 ? job->request.nodes : 1;
}

/* ---- job_window.c ---- */

/* Makes the window of jobs in the core that of the highest priorities. */
void controller_order_window(struct slurm_controller *controller);

/* ---- node_rules.c ---- */

/* Answers the core's node check; `context` is the controller. */
enum node_admission controller_check_node(void *context, const struct task *task, int gpu);

/* Does the GPU's node have what the job requests, if nothing else runs there and the node is up? */
bool controller_can_ever_run(
    const struct slurm_controller *controller, const struct tracked_job *job, int gpu);

/* How many shards of the GPU no job but `job` has. */
int64_t controller_shards_left(
    const struct slurm_controller *controller, int gpu, const struct tracked_job *job);

/* How many shards the job wants of the GPU. */
int64_t controller_shards_wanted(
    const struct slurm_controller *controller, const struct tracked_job *job, int gpu);

/* ---- job_away.c ---- */

/* Feeds how long jobs have not called CUDA, where they may be suspended for that. */
void controller_note_idle(struct slurm_controller *controller);

/* Why the running job was not, or never is, suspended; "": it was, or nothing has asked for it. */
const char *controller_why_stays(
    const struct slurm_controller *controller, const struct tracked_job *job);

/* ---- gpu_readings.c ---- */

/* Has the agent of the node reported lately? */
bool controller_hears_agent(
    const struct slurm_controller *controller, const struct cluster_node *node);

/* Logs, once, that Slurm has put a job with a whole GPU on one that a job of colloc has. */
void controller_watch_overlaps(struct slurm_controller *controller);

/* Feeds samples of the GPUs without an agent: what their jobs are expected to use. */
void controller_sample_silent_gpus(struct slurm_controller *controller);

/* ---- job_names.c ---- */

/* Writes `text` with the core's "task 5" as Slurm's "job 17". */
void controller_name_jobs(
    const struct slurm_controller *controller, const char *text, char *out, size_t size);

/* ---- job_changes.c ---- */

/* Writes why a job that is in the core waits, with Slurm's names of jobs. Returns `text`. */
const char *controller_explain_waiting(const struct slurm_controller *controller,
    const struct tracked_job *job, char *text, size_t size);

/* Compares the core with Slurm, and lists what to change. */
void controller_list_changes(struct slurm_controller *controller);

/* ---- job_dependents.c ---- */

/* Notes a record whose dependency has failed by Slurm's record; ignores all others. */
void controller_note_dependent(struct slurm_controller *controller, const struct slurm_job *record);

/* Lists the changes of the records noted that wait for a job that is run again. */
void controller_list_dependents(struct slurm_controller *controller);

/* slurmctld could not renew a dependency: it is tried again soon. */
void controller_retry_renewals(struct slurm_controller *controller);

#endif
