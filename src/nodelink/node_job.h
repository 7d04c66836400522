/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the jobs of a node give way: what the agent reports of them, and its form as JSON. Only jobs
 * with something to say are listed.
 *
 *     {"job": 12, "where": "here", "waits": 2147483648}      an allocation waits
 *     {"job": 15, "where": "out", "held": 8589934592, "kept": 912680550, "ranks": true}
 *     {"job": 17, "where": "here", "idle_us": 1900000000}    no process has called CUDA since
 *     {"job": 19, "where": "here", "failed": "refused", "why": "it runs under a debugger"}
 *     {"job": 21, "where": "here", "room": 2147483648, "rooms": "2.0 GiB are ready; its user has..."}
 */
#ifndef COLLOC_NODELINK_NODE_JOB_H
#define COLLOC_NODELINK_NODE_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum { NODE_JOBS_MAX = 128, NODE_JOB_WHY_SIZE = 200 };

/* Where the memory of the job's processes is. */
enum node_job_where { NODE_JOB_HERE, NODE_JOB_GOING, NODE_JOB_OUT, NODE_JOB_COMING };

/* Why the job was not taken off its GPUs. */
enum node_job_failure {
    NODE_JOB_NO_FAILURE,
    NODE_JOB_REFUSED, /* it cannot be, in this run */
    NODE_JOB_NOT_NOW, /* it may be later */
};

struct node_job {
    uint32_t job; /* Slurm's id */
    enum node_job_where where;
    int64_t waits_bytes; /* that an allocation of it waits for; 0: none waits */
    int64_t idle_us;     /* none of its processes has called CUDA for so long; 0: one has, or it is
                            not known */
    bool is_called;      /* it is out, and one of its threads calls CUDA, which waits */
    bool is_carried;     /* the carriers can take the memory of all its processes */
    bool has_ranks;      /* while it is out: its processes are ranks of NCCL */
    int64_t held_bytes;  /* while it is out or on its way: on each GPU, before; 0: not known */
    int64_t kept_bytes;  /* of that, what stays on the GPU */
    int64_t took_us;     /* its last way out or back; 0: none */
    enum node_job_failure failure;
    char why[NODE_JOB_WHY_SIZE];   /* of the failure, for users; "": none */
    int64_t room_bytes;            /* host memory of the agent's that is ready for its copy */
    char rooms[NODE_JOB_WHY_SIZE]; /* about that and its user's share, for users; "": it has none,
                                      and could have none */
};

/* Finds the job's entry in a list, or adds one that says nothing. n: how many there are; updated.
 * Returns NULL: the list is full, or it is no id of Slurm's. */
struct node_job *node_job_entry(struct node_job *jobs, size_t *n, size_t max, uint64_t job);

/* Returns a new object, or NULL when memory is out or a text is no UTF-8. */
json_t *node_job_json(const struct node_job *job);

/* Reads any object. Returns 0, or -EINVAL with a fault. */
int node_job_read(const json_t *object, struct fault *fault, struct node_job *ret_job);

/* Would the two be written alike? */
bool node_job_is_same(const struct node_job *a, const struct node_job *b);

#endif
