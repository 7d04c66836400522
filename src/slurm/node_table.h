/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of the cluster and their GPUs. Slurm names a GPU by its node and its index there (the
 * type iK of gres.conf); the core numbers the GPUs from 0 on. A number is never used again for
 * another GPU: a node that returns has its former numbers.
 */
#ifndef COLLOC_SLURM_NODE_TABLE_H
#define COLLOC_SLURM_NODE_TABLE_H

#include "base/array.h"
#include "core/view.h"
#include "slurm/slurm_job.h"
#include "slurmconf/gres_text.h"

enum { NODE_NAME_MAX = 64 };

struct cluster_node {
    char name[NODE_NAME_MAX];
    char *features; /* comma-separated; or NULL */
    char *gres;     /* in Slurm's last record, with shards of its GPUs */
    bool is_listed; /* Slurm still has it */
    bool is_down, is_drained;
    int cpus;
    int64_t memory_bytes;
    int gpus[GRES_INDEX_MAX]; /* the core's numbers by index; -1: none */
    int n_gpus;
    int other_cpus;         /* taken by jobs that colloc has not placed */
    int other_gpus;         /* whole ones, of such jobs that do not say which */
    bool is_overlap_logged; /* overlaps.c */
    int64_t other_memory_bytes;
    int64_t reported_us; /* when its agent last reported; 0: never */
    bool suspends;       /* its agent takes jobs off their GPUs, */
    bool has_orders;     /* and was given some (slurm_agents.c) */
    struct {             /* resources of the residents of its GPUs (node_rules.c) */
        unsigned update; /* in which that was counted; 0: never */
        int n_residents; /* of all its GPUs, then */
        int cpus;
        int64_t memory_bytes;
    } held;
};

struct cluster_gpu {
    int node; /* index into nodes */
    int index;
    int64_t shards;                /* that Slurm can give of it */
    int64_t other_shards;          /* held by jobs that colloc has not placed; all: the GPU is */
    bool is_other_whole;           /* certainly: such a job names the GPU */
    int64_t mem_total_bytes;       /* as its agent reports it; 0: not known */
    char uuid[96];                 /* likewise; "": not known */
    struct reading smact, power_w; /* likewise, of the last report */
};

struct node_table {
    struct cluster_node **nodes; /* by number */
    int *by_name;                /* their numbers, by rising name */
    size_t n_nodes, nodes_capacity, by_name_capacity;
    struct cluster_gpu *gpus; /* by the core's number */
    size_t n_gpus, gpus_capacity;
    int64_t mem_usual_bytes; /* of a GPU without a report of the agent */
};

/*
 * Takes over Slurm's list of nodes. Nodes without shards have no GPUs here.
 *
 * ret_changed: the list of GPUs is another: node_table_list_gpus
 *
 * Returns 0 or -ENOMEM.
 */
int node_table_update(
    struct node_table *table, const struct slurm_node *nodes, size_t n, bool *ret_changed);

/* Returns the number of the node of this name, or -1. */
int node_table_find(const struct node_table *table, struct span name);

/*
 * The GPUs as the core has them, for EVENT_GPUS.
 *
 * ret_list: room for table->n_gpus
 *
 * Returns how many: those of nodes that Slurm still has.
 */
int node_table_list_gpus(const struct node_table *table, struct gpu_identity *ret_list);

/* Returns the memory of one shard of the GPU, in bytes. */
int64_t node_table_shard_bytes(const struct node_table *table, int gpu);

/* Returns the number of CPUs of a job on the node of this name, or its part if all of its nodes had
 * the same number. */
int node_cpus_of_job(const struct slurm_job *job, const char *node);

/* Forgets what jobs that colloc has not placed occupy; then each such job is added again. */
void node_table_clear_others(struct node_table *table);
void node_table_add_other(struct node_table *table, const struct slurm_job *job);

/* Removes the next name from the front of a comma-separated list. Returns false at its end. */
bool node_list_next(struct span *list, struct span *ret_name);

/* Is the name in the comma-separated list? */
bool node_list_has(const char *list, const char *name);

/* Releases the table and its nodes. */
void node_table_fini(struct node_table *table);

#endif
