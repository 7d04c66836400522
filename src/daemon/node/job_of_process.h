/* SPDX-License-Identifier: Apache-2.0 */
/* Which Slurm job a process belongs to, from /proc. */
#ifndef COLLOC_DAEMON_NODE_JOB_OF_PROCESS_H
#define COLLOC_DAEMON_NODE_JOB_OF_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A node of a cluster, by Slurm's names. */
struct slurm_identity {
    const char *node;
    const char *cluster; /* "": not known */
};

/*
 * Finds the job in the text of /proc/PID/cgroup: a folder job_N of Slurm's.
 *
 * node:    Slurm's name of this node
 * ret_job: 0: a job of another node on this machine
 *
 * Returns false: in no job's folder.
 */
bool job_in_cgroup(const char *text, const char *node, uint32_t *ret_job);

/*
 * Finds the job in an environment: SLURM_JOB_ID.
 *
 * environment: `size` bytes of NUL-terminated entries, and a NUL
 * node:        Slurm's name of this node; a SLURMD_NODENAME of another one is of no job here; NULL:
 *              any
 *
 * Returns 0: none.
 */
uint32_t job_in_environment(const char *environment, size_t size, const char *node);

/* Did slurmd of this node start the process of this environment for a job? A shell that salloc
 * started also has the variables of a job, but the job may run on other nodes. */
bool environment_is_of_node(
    const char *environment, size_t size, const struct slurm_identity *identity);

/* The same as job_in_cgroup for a process; false also where it cannot be read. Does not wait for
 * the process. */
bool job_by_cgroup(pid_t pid, const char *node, uint32_t *ret_job);

/* The job and user of a process. */
struct process_job {
    bool is_known;   /* false: what would tell it could not be read, or not in time */
    uint32_t job;    /* 0: of none */
    bool is_claimed; /* only from its environment, which its user can set; */
    uid_t uid;       /* then: that user */
    uint64_t born; /* of the answer of job_cache_find: the start of the process that has the pid */
};

/* Finds the job of a process: by its cgroup, which its user cannot change; else by the environment
 * that it was started with, which may take VISIT_READ_MS (exec/limited_visit.h). */
struct process_job job_of_process(pid_t pid, const char *node);

/* The answers for processes that live on. */
struct job_cache;
struct job_cache *job_cache_create(void); /* NULL: memory is out */
void job_cache_destroy(struct job_cache *cache);

/* The same as job_of_process, for a process whose job it does not know yet. Waits for few of many
 * processes that do not answer: the jobs of the others are then not known. `born` is set, too. */
struct process_job job_cache_find(struct job_cache *cache, pid_t pid, const char *node);

#endif
