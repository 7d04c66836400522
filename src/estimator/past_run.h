/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run history: the GPU memory that finished tasks took, for the estimator `history`. A run is
 * identified by its network (a fingerprint of its layers), batch, sequence length, optimizer,
 * precision and kind of GPU.
 */
#ifndef COLLOC_ESTIMATOR_PAST_RUN_H
#define COLLOC_ESTIMATOR_PAST_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "model/model.h"
#include "training/optimizer.h"
#include "training/precision.h"

/* A run whose user is not known. No user has this id. */
#define PAST_RUN_NO_UID ((uint32_t)-1)

struct past_run {
    uint32_t uid; /* whose run it was */
    uint64_t fingerprint;
    int64_t batch;
    int64_t sequence_length; /* 0: the task did not give it */
    enum optimizer optimizer;
    enum precision precision;
    int gpus;           /* of the task, one process on each; 0: not known */
    char gpu_kind[64];  /* "": not known */
    int64_t peak_bytes; /* of the process on one GPU, context included */
    bool lower_bound;   /* it ran out of memory, or was ended early: it needs at least this */
};

/* Returns a hash of the types, shapes and parameters of all leaf layers: equal for the same
 * network, however its text shows totals and notes. */
uint64_t model_fingerprint(const struct model *model);

/*
 * Parses runs from comma-separated values with the header
 *
 *     fingerprint,batch,seq,optimizer,precision,gpu,peak_mib,outcome
 *
 * fingerprint is in hex, outcome is "completed" or "oom"; seq, optimizer, precision and gpu may be
 * empty.
 *
 * ret_runs: for the caller to free.
 *
 * Returns 0; -EINVAL with the line in the fault; or -ENOMEM.
 */
int past_runs_parse(
    const char *text, size_t size, struct fault *fault, struct past_run **ret_runs, size_t *ret_n);

#endif
