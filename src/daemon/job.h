/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's data about a task that has not ended, beside the core's: names and texts of its
 * submission, its attempts, and its usage. A daemon may have
 * tens of thousands of jobs: members are in an order without holes.
 */
#ifndef COLLOC_DAEMON_JOB_H
#define COLLOC_DAEMON_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure_class.h"
#include "base/fault.h"
#include "base/reading.h"
#include "daemon/preallocation.h"
#include "store/store.h"

/* A task's use of its GPUs so far, all attempts together. */
struct usage {
    struct reading energy_j;
    double smact_s, span_s; /* its part of SMACT over time, and that time: GPU-seconds of which
                               SMACT was known */
    bool is_estimated;      /* at some time the driver did not report which task was active */
};

/* What the task's time on its GPUs would be without others there (alone_time.h); all attempts. */
struct alone_time {
    double held_s;    /* with its GPUs, paused or not */
    double shared_s;  /* of them: others computed there */
    double unknown_s; /* of them: how fast it was is not predicted */
    double own_s;     /* of the rest: no other computed there, and it was not paused */
    double steps;     /* made while others computed there */
    double steps_s;   /* the time these took, and below what it is predicted to take alone */
    double steps_work_s, steps_unknown_s;
    double rest_s, rest_work_s; /* the same of the rest of the shared time: start, breaks */
    double price_s;   /* of own_s and shared_s: what being a client of MPS is predicted to take */
    int64_t noted_us; /* of the core's clock; 0: it has no GPUs */
    double noted_steps, noted_steps_s;
    uint32_t noted_units; /* as those of struct speed_alone */
};

/* Chosen: the windows that count in a speed alone; older ones fade, since speeds drift. */
enum { SPEED_ALONE_WINDOWS = 8 };

/* How fast the training is while it has its GPUs to itself, and the present window. */
struct speed_alone {
    struct reading per_s;
    int windows;           /* that it is the mean of; 0: it is that of an earlier run */
    double spread;         /* the mean deviation of these from it, as a part of it */
    uint32_t units;        /* how often what a step is may have changed */
    double steps, timed_s; /* in all when the window began */
    int64_t begun_us;      /* when that was, of the core's clock; 0: there is none */
    uint32_t begun_units;
    bool is_alone; /* since then */
};

/* The steps of the task's training (docs/steps.md); written by the part preload. */
struct job_steps {
    struct reading per_s;  /* now, in the mean of its processes that make steps */
    double total, timed_s; /* all attempts: steps, and what they took */
    double sum_per_s;      /* of this poll, over `processes` */
    double sum_steps, sum_s;
    short processes;
    short source;              /* enum preload_step_source */
    short left;                /* processes that this poll has not come to again */
    double command_step_us;    /* of steps that `colloc step` reported, in the mean; 0: unknown */
    int64_t command_us;        /* when it last did, of the monotonic clock; 0: never */
    struct speed_alone *alone; /* promised_speed.c; NULL: no step was found yet */
};

enum { JOB_GPU_UNKNOWN = -1 };
#define JOB_UID_NONE ((uid_t)-1) /* no user has this number: chown(2) means by it "unchanged" */

struct job {
    uint64_t id;
    uid_t uid;
    enum preallocation preallocation; /* as its environment sets it */

    /* from the submission; the texts are in `texts` */
    const char *name; /* or `new_name` */
    const char *user;
    const char *command;           /* the command line as people read it; "": not known */
    const char *estimator;         /* "" when nothing was estimated */
    const char *estimate_evidence; /* what it is based on: a name of estimator.h; "": not known */
    const char *estimate_kernels;  /* where the workspaces of convolutions come from; "": none */
    struct reading estimate_bytes; /* memory reserved for it */
    struct reading predicted_bytes, p99_bytes; /* the estimate itself, and its P99 */
    int64_t text_bytes;                        /* of its submission and its changes in the log */
    int changes;                               /* by its user: as jobs_note_change counts them */
    uid_t cancelled_by;                        /* or JOB_UID_NONE: not cancelled, or not known */
    char *cancelling_operator;                 /* its name, if `cancelled_by` is one; or NULL */
    char
        *subject; /* JSON by which the next run of this network or command is recognised; or NULL */

    char *new_name;         /* of an UPDATE; or NULL */
    const char *probe_path; /* of a service: the path to request there; "": "/" */
    int port;               /* of a service that is probed; 0: none */

    /* its attempts */
    int started_attempt;        /* the last whose start is in the log; 0: none */
    json_t *attempts;           /* attempt_list.h; NULL before the first */
    json_t *srun_steps;         /* step_list.h; NULL before the first */
    char *evidence;             /* of the last failure, or NULL */
    json_t *overruns;           /* overruns_beside at the last GPU OOM; or NULL */
    enum failure_class failure; /* the last */

    /* its usage; written by the part gpus */
    int peak_gpu; /* index in the core's view of a GPU where `mem_peak_bytes` was seen, or
                     JOB_GPU_UNKNOWN */
    struct reading mem_used_bytes, mem_peak_bytes; /* on all its GPUs together */
    double counted_peak_bytes; /* of its processes with the preloaded library, at the last poll */
    int idle_reports;          /* since it last used its GPUs; idle_holders.c */
    bool is_inactive;          /* it has not used its GPUs for the setting unused-after */
    bool peak_whole;           /* it had its GPUs to itself at that peak */
    struct usage usage;
    struct job_steps steps;
    struct alone_time *alone_time; /* NULL: it has not had a GPU */

    char texts[]; /* each with its NUL */
};

/* Creates a job of no table. `detail`: of its SUBMIT; borrowed, may be NULL. Returns NULL when
 * memory is out. */
struct job *job_create(uint64_t id, uid_t uid, const json_t *detail);

/* Releases a job that is in no table. */
void job_free(struct job *job);

/* Notes how an attempt ended. `detail`: of its EXITED; borrowed, may be NULL. */
void job_note_exit(struct job *job, enum failure_class failure, const json_t *detail);

/* Notes a change of the task's name. `job`: may be NULL. `detail`: of its UPDATE; borrowed, may be
 * NULL. */
void job_note_update(struct job *job, const json_t *detail);

/* Notes an estimate of the task's memory that was made while it waited. `detail`: of its ESTIMATE;
 * borrowed, may be NULL. */
void job_note_estimate(struct job *job, const json_t *detail);

/* Notes by which user the task was cancelled. `detail`: of its CANCEL; borrowed, may be NULL. */
void job_note_cancel(struct job *job, const json_t *detail);

/* Returns the name of the user that cancelled the task, borrowed from the job; NULL: it was not
 * cancelled, or the log names no user. */
const char *job_canceller(const struct job *job);

/*
 * Returns the name of the user that changed the task: its owner's, "root", or an operator's.
 *
 * uid:    of that user
 * detail: of the event; borrowed, may be NULL
 *
 * Returns "?" for another number. Borrowed from the job or the detail.
 */
const char *job_author(const struct job *job, uid_t uid, const json_t *detail);

/* Returns the task's mean part of SMACT (0 to 1) on each of its GPUs. */
struct reading job_mean_smact(const struct job *job);

/*
 * Reads the detail of a task's SUBMIT from the log.
 *
 * ret_detail: to be released by the caller; NULL when the log has none
 *
 * Returns 0 or a fault.
 */
int job_read_detail(struct store *store, uint64_t id, struct fault *fault, json_t **ret_detail);

#endif
