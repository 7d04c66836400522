/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Slurm in memory: lists of jobs and nodes behind `struct slurm_calls`, and the few things that
 * slurmctld does with them. It starts pinned jobs whose shards are free, as Slurm counts them.
 */
#ifndef COLLOC_TESTS_FAKE_SLURM_H
#define COLLOC_TESTS_FAKE_SLURM_H

#include "slurm/slurm_job.h"

enum { FAKE_INDICES = 8 };

struct fake_job {
    struct slurm_job job;
    char partition[16], nodes[SLURM_NODES_MAX], gres[SLURM_GRES_MAX], note[SLURM_NOTE_MAX],
        comment[SLURM_TEXT_MAX], dependency[SLURM_DEPENDENCY_MAX];
    bool is_gone;
    int starts, renewals; /* of its dependency, which is then what was asked for */
};

struct fake_slurm {
    struct fake_job **jobs;
    size_t n_jobs, capacity;
    struct slurm_node *nodes;
    size_t n_nodes;
    int64_t (*held)[FAKE_INDICES]; /* shards in use, by node and index */
    struct slurm_job *listed;
    size_t listed_capacity;
    struct slurm_licence *licences; /* borrowed */
    size_t n_licences;
    uint32_t next_id;
    int64_t now_s;
    bool can_change_gres, counts_memory, hides_jobs;
    int n_changes;
    int failing; /* this number of changes fail first, */
    int failure; /* with this result */
};

/* `gpus` of 80 shards on each of `nodes` nodes n0, n1, ... with 64 CPUs and 64,000 MiB. */
void fake_slurm_init(struct fake_slurm *fake, int nodes, int gpus);
void fake_slurm_fini(struct fake_slurm *fake);

/* Adds a pending job of the intake partition with one CPU and 100 MiB. It may be changed. */
struct fake_job *fake_slurm_submit(struct fake_slurm *fake, uint32_t priority);

/* What the controller sees. */
struct slurm_snapshot fake_slurm_list(struct fake_slurm *fake);

/* Makes a change as slurmctld does. Returns 0 or -errno. */
int fake_slurm_change(struct fake_slurm *fake, const struct slurm_change *change);

/* Starts what may start. Returns how many. */
int fake_slurm_start(struct fake_slurm *fake);

/* As `scontrol update TimeLimit` does; 0: UNLIMITED, for which Slurm expects an end in a year. */
void fake_slurm_set_limit(struct fake_job *job, int64_t limit_s);

/* The job ends; a running one frees its shards. */
void fake_slurm_end(struct fake_slurm *fake, struct fake_job *job, enum slurm_state state);

/* As `scontrol requeue` and a failed node do: pending again, with its old pin. */
void fake_slurm_requeue(struct fake_slurm *fake, struct fake_job *job, bool is_held);

#endif
