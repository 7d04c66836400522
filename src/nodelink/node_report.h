/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent of a Slurm node reports of its GPUs, and its form as JSON. A report describes the
 * whole node: it repeats what still holds. On a connection it may be sent as what has changed since
 * the one before (node_changes.h).
 *
 *     {"v": 1, "node": "n1", "boot": "...", "sequence": 81, "time_us": ..., "gpus": [{"index": 0,
 *      "uuid": "GPU-...", "memory_total": 85899345920, "memory_used": 1073741824, "smact": 0.53,
 *      "power": 310.5, "processes": [{"pid": 71, "memory": 1073741824, "job": 12}]}],
 *      "crashes": [{"job": 9, "restarts": 0, "evidence": "CUDA out of memory"}],
 *      "suspends": true, "jobs": [{"job": 12, "where": "out", "held": 1073741824}]}
 */
#ifndef COLLOC_NODELINK_NODE_REPORT_H
#define COLLOC_NODELINK_NODE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/reading.h"
#include "nodelink/node_job.h"

/* Bounds of a report; chosen: the largest servers with room to spare. REPORT_SIZE_MAX holds a
 * report that reaches all others. */
enum {
    NODE_NAME_SIZE = 64,
    NODE_BOOT_SIZE = 40,
    NODE_GPUS_MAX = 32,
    NODE_PROCESSES_MAX = 128, /* on one GPU */
    NODE_CRASHES_MAX = 64,
    NODE_TEXT_SIZE = 200,
    REPORT_SIZE_MAX = 768 * 1024,
};

struct node_process {
    pid_t pid;
    uint64_t born; /* as of struct process_id; the agent's own: no part of the report */
    struct reading memory_bytes;
    uint32_t job;    /* Slurm's id; 0: of no job, or not known */
    bool is_claimed; /* only its environment names the job, which its user can set; */
    uid_t uid;       /* then: that user, "claimed_by" */
};

/* Is it a process of this job of this user? A claim of another user is not believed. */
static inline bool node_process_is_of(const struct node_process *process, uint32_t job, uid_t uid)
{
    return process->job == job && (!process->is_claimed || process->uid == uid);
}

struct node_gpu {
    int index;     /* N of its /dev/nvidiaN, as its type in gres.conf */
    char uuid[96]; /* "": not known */
    struct reading memory_total_bytes, memory_used_bytes;
    struct reading smact; /* 0 to 1 */
    struct reading power_w;
    struct reading numa_node;     /* the agent's own: no part of the report */
    char trouble[NODE_TEXT_SIZE]; /* why no job should start on it; "": nothing is wrong */
    bool processes_known;         /* are these all of them, and the job of each is known? */
    uint32_t external_at_least;   /* where not: how many certainly are of no job */
    struct node_process *processes;
    size_t n_processes;
};

/* A job that ran out of GPU memory beside others and was requeued and held by the agent. */
struct node_crash {
    uint32_t job;
    uint32_t restarts;             /* Slurm's count of restarts before this end */
    char evidence[NODE_TEXT_SIZE]; /* the line of its output that proves it */
};

struct node_report {
    char node[NODE_NAME_SIZE]; /* Slurm's NodeName */
    char boot[NODE_BOOT_SIZE]; /* the kernel's boot_id: another one is a restarted node */
    int64_t sequence;          /* grows with each report of one boot, also over agents' restarts */
    int64_t time_us;           /* the node's wall time */
    struct node_gpu *gpus;
    size_t n_gpus;
    struct node_crash *crashes;
    size_t n_crashes;
    bool suspends; /* the agent takes jobs off their GPUs at the controller's word */
    struct node_job *jobs;
    size_t n_jobs;
};

/* Has it no more of anything than the bounds above? */
bool node_report_is_bounded(const struct node_report *report);

/*
 * Writes a report as JSON.
 *
 * ret_text: `ret_size` bytes and a NUL; the caller frees it
 *
 * Returns 0; -EMSGSIZE beyond the bounds; or -ENOMEM.
 */
int node_report_encode(const struct node_report *report, char **ret_text, size_t *ret_size);

/*
 * Reads a report from any bytes. Keys that are not known are ignored.
 *
 * ret_report: to be released with node_report_fini, also after an error
 *
 * Returns 0; -EPROTO: of another version; -EINVAL: not a report; -EMSGSIZE: beyond the bounds; or
 * -ENOMEM; with a fault.
 */
int node_report_decode(
    const char *text, size_t size, struct fault *fault, struct node_report *ret_report);

/*
 * Copies a report.
 *
 * ret_copy: to be released with node_report_fini, also after an error
 *
 * Returns 0; -EMSGSIZE beyond the bounds; or -ENOMEM.
 */
int node_report_copy(const struct node_report *report, struct node_report *ret_copy);

/* Gives `known` the values of `gpu`, whose list of processes is taken over; its own is freed. */
void node_gpu_replace(struct node_gpu *known, const struct node_gpu *gpu);

/* Releases what the report holds. All zero is fine. */
void node_report_fini(struct node_report *report);

/* Is it a name that Slurm can give a node: letters, digits, '.', '_', '-'? */
bool node_name_is_valid(const char *name);

#endif
