/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a training on several GPUs divides its model: what each process keeps whole, and what it
 * keeps a part of. The batch is always divided.
 */
#ifndef COLLOC_TRAINING_PARALLEL_H
#define COLLOC_TRAINING_PARALLEL_H

#include <stdbool.h>

enum parallel {
    PARALLEL_NOT_GIVEN,
    PARALLEL_NONE,  /* each process is a training for itself */
    PARALLEL_DDP,   /* torch.nn.parallel.DistributedDataParallel: all is whole */
    PARALLEL_ZERO1, /* torch.distributed.optim.ZeroRedundancyOptimizer: a part of the states */
    PARALLEL_ZERO2, /* and of the gradients */
    PARALLEL_FSDP,  /* FullyShardedDataParallel, ZeRO 3: and of the weights */
    PARALLEL_TP,    /* tensor parallelism: a part of each product of a block */
    PARALLEL_PP,    /* pipeline parallelism: some of the layers */
    PARALLELS
};

/* What is in the host's memory instead of the GPU's. */
enum offload {
    OFFLOAD_NONE,
    OFFLOAD_OPTIMIZER,  /* the optimizer's states; it runs on the host */
    OFFLOAD_PARAMETERS, /* and weights and gradients, but for the unit that computes */
    OFFLOADS
};

struct parallel_traits {
    bool communicates;  /* by NCCL */
    bool fills_buckets; /* gradients are copied into buckets, which live through the training */
    bool divides_states, divides_gradients, divides_weights;
};

/* The names, NULL-terminated: for help and completion. */
extern const char *const parallel_names[PARALLELS];

/* Returns the way of this name or alias ("zero3") in any case, tp and pp also with a number of
 * processes ("tp:4"); PARALLEL_NOT_GIVEN for NULL, "" and other names. */
enum parallel parallel_parse(const char *text);

/* Returns the number of processes in "tp:4" and "pp:4"; 0: it is not given. */
int parallel_degree(const char *text);

extern const char *const offload_names[OFFLOADS + 1];

/* Returns what a name of offload_names says; OFFLOAD_NONE for NULL and other names. */
enum offload offload_parse(const char *text);

/* Returns the name; "" for PARALLEL_NOT_GIVEN. */
const char *parallel_name(enum parallel parallel);

/* Returns the table's name for a name or an alias; a text with a number itself; or NULL. */
const char *parallel_canonical(const char *text);

/* Returns the way that an estimate assumes: without one, DDP on several GPUs. On one GPU: none. */
enum parallel parallel_assumed(enum parallel parallel, int gpus);

/* Returns its traits. Never NULL. */
const struct parallel_traits *parallel_traits(enum parallel parallel);

#endif
