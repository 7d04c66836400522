/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What colloc-slurm knows of Slurm: its jobs and nodes as plain facts, and the calls that read and
 * change them. libslurm_calls.c makes the calls by libslurm; tests make them on lists in memory.
 */
#ifndef COLLOC_SLURM_SLURM_JOB_H
#define COLLOC_SLURM_SLURM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/fault.h"

#define SLURM_NO_INDEX UINT32_MAX /* the job is no task of an array */

enum slurm_state {
    SLURM_STATE_PENDING,
    SLURM_STATE_RUNNING,
    SLURM_STATE_SUSPENDED,
    SLURM_STATE_COMPLETED,
    SLURM_STATE_CANCELLED,
    SLURM_STATE_FAILED, /* it exited with an error */
    SLURM_STATE_TIMEOUT,
    SLURM_STATE_NODE_FAIL,
    SLURM_STATE_OUT_OF_MEMORY,
    SLURM_STATE_OTHER_END, /* preempted, not booted, ... */
};

static inline bool slurm_state_is_end(enum slurm_state state)
{
    return state >= SLURM_STATE_COMPLETED;
}

/* A job, or the tasks of an array that have not been split off. Texts: NULL is the same as "". */
struct slurm_job {
    uint32_t id;
    uint32_t array_id; /* 0: of no array */
    uint32_t array_index;
    const char *array_indices; /* "0-9,12%2": the record stands for all of these, still pending */
    uid_t uid;
    gid_t gid;
    enum slurm_state state;
    bool is_completing; /* it has ended, and its nodes still clean up */
    bool is_held;
    bool is_requeue_held; /* held since it was requeued so (scontrol requeuehold) */
    bool may_requeue;
    int64_t submit_s, begin_s, start_s;
    int64_t end_s;        /* when it ended, or will by its time limit */
    int64_t time_limit_s; /* 0: unlimited, or not known */
    uint32_t restarts;
    uint32_t priority;
    int nice;             /* above 0: its user, below 0: an operator has changed its priority */
    int cpus;             /* of all its nodes together */
    int nodes;            /* how many it wants or has */
    const int *node_cpus; /* of a running job over several: CPUs on each of node_list; or NULL */
    int64_t memory_bytes; /* on each node; 0: all of the node's */
    const char *name;
    const char *partition;
    const char *node_list; /* those it runs on, comma-separated */
    const char *required_nodes, *excluded_nodes, *features;
    const char *gres;       /* tres_per_node: "gres:shard:i2:12" */
    const char *other_gres; /* tres_per_job, tres_per_socket or tres_per_task */
    const char *licences;   /* "matlab:2,ansys" */
    const char *dependency; /* its open conditions: "afterok:12(unfulfilled),singleton(failed)" */
    const char *admin_comment, *comment, *work_dir;
};

/* A licence that Slurm counts. */
struct slurm_licence {
    const char *name;
    int64_t total, free; /* free: not in use, and kept for no reservation */
};

static inline bool slurm_job_has_dependency(const struct slurm_job *job)
{
    return job->dependency && *job->dependency;
}

static inline bool slurm_job_is_in(const struct slurm_job *job, const char *partition)
{
    const char *its = job->partition; /* often called: the first letter tells most of them apart */
    return its && *its == *partition && strcmp(its, partition) == 0;
}

/* Does the job occupy CPUs, memory and GPUs of its nodes? */
static inline bool slurm_job_holds_node(const struct slurm_job *job)
{
    return job->state == SLURM_STATE_RUNNING || job->state == SLURM_STATE_SUSPENDED ||
           job->is_completing;
}

struct slurm_node {
    const char *name;
    bool is_down;    /* or does not respond */
    bool is_drained; /* by an administrator: it takes no further job */
    int cpus;
    int64_t memory_bytes;
    const char *gres; /* "gpu:i0:1,shard:i0:80": what it has */
    const char *features;
};

/* All jobs, nodes and licences at one instant. */
struct slurm_snapshot {
    const struct slurm_job *jobs;
    size_t n_jobs;
    const struct slurm_node *nodes;
    size_t n_nodes;
    const struct slurm_licence *licences;
    size_t n_licences;
    bool counts_memory;   /* SelectTypeParameters has memory as a resource */
    bool hides_jobs;      /* PrivateData has jobs: a user sees only his own */
    bool can_change_gres; /* 23.02.6 and later: another request replaces the former one */
    const char *trouble;  /* with colloc's partitions; NULL or "": none */
};

/* A change of a job. */
enum slurm_change_kind {
    SLURM_PIN,     /* nodes, GPUs, run partition, note: it starts there */
    SLURM_RETURN,  /* back into the intake partition, without its pin counting any more */
    SLURM_REQUEUE, /* an ended job runs again, held at first */
    SLURM_COMMENT, /* only the text for its user */
    SLURM_DEPEND,  /* its dependency is judged anew, by the states that other jobs have now */
};

enum {
    JOB_NODES_MAX = 64, /* chosen: a job of more nodes gains little from shared GPUs */
    SLURM_TEXT_MAX = 256,
    SLURM_GRES_MAX = 1024,
    SLURM_DEPENDENCY_MAX = 4096, /* chosen: some hundred jobs; a longer one is left as it is */
    SLURM_NODES_MAX = JOB_NODES_MAX * 64, /* as many of the longest names (node_table.h) */
    SLURM_NOTE_MAX = SLURM_NODES_MAX + SLURM_TEXT_MAX,
};

struct slurm_change {
    enum slurm_change_kind kind;
    uint32_t job, index; /* of an array: its id, and the task's index; else SLURM_NO_INDEX */
    uint64_t task;       /* the core's, for the caller */
    bool moves;          /* SLURM_PIN, SLURM_DEPEND: the job is in the intake partition */
    bool releases;       /* SLURM_RETURN: also releases a job that was held for colloc */
    int64_t begin_s;     /* SLURM_PIN, SLURM_DEPEND: not before; 0: at once */
    int n_nodes;         /* SLURM_PIN: how many nodes */
    char nodes[SLURM_NODES_MAX]; /* their names, comma-separated */
    char gres[SLURM_GRES_MAX];   /* on each of them */
    char note[SLURM_NOTE_MAX];   /* admin_comment; "": unchanged */
    char comment[SLURM_TEXT_MAX];
    char dependency[SLURM_DEPENDENCY_MAX]; /* SLURM_DEPEND */
    int result;                            /* set by `change`: 0 or -errno */
};

/* The calls, each of which may wait for slurmctld: to be made in a thread, one at a time. */
struct slurm_calls {
    void *context;

    /* Reads all jobs and nodes. `ret_snapshot`: valid until the next call. Returns 0; or -errno
     * with a fault (-EAGAIN: slurmctld does not answer). */
    int (*load)(void *context, struct fault *fault, struct slurm_snapshot *ret_snapshot);

    /* Makes one change. Returns 0; -ENOENT: there is no such job, or it has ended; -EINVAL: Slurm
     * cannot do this to the job; or -errno; with a fault. */
    int (*change)(void *context, const struct slurm_change *change, struct fault *fault);

    /* Reads the script of a batch job. `ret_script`: the caller frees it. Returns 0; -ENOENT: it
     * has none; or -errno with a fault. */
    int (*read_script)(void *context, uint32_t job, struct fault *fault, char **ret_script);

    /* Writes the paths of the files that a job writes its errors and its output to, which may be
     * the same, into `size` bytes each. Returns 0; -ENOENT: there is no such job; or -errno. */
    int (*find_output_files)(
        void *context, uint32_t job, char *error_path, char *output_path, size_t size);
};

#endif
