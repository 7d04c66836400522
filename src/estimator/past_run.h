/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What earlier tasks took: the material of the estimator `history`. A run is told apart by its
 * network (a fingerprint of its layers), batch, sequence, optimizer, precision and kind of GPU.
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

struct past_run {
    uint64_t fingerprint;
    int64_t batch;
    int64_t sequence_length; /* 0: not said */
    enum optimizer optimizer;
    enum precision precision;
    char gpu_kind[64];  /* "": not known */
    int64_t peak_bytes; /* of the process on one GPU, context included */
    bool lower_bound;   /* it ran out of memory, or was stopped early: it needs at least that */
};

/* Of leaf types, shapes and parameters: equal for the same network whatever its text's form of
 * totals and notes. */
uint64_t model_fingerprint(const struct model *model);

/*
 * Runs from comma-separated values with the header
 *
 *     fingerprint,batch,seq,optimizer,precision,gpu,peak_mib,outcome
 *
 * fingerprint is in hex, outcome is "completed" or "oom"; seq, optimizer, precision and gpu may be
 * empty. The caller frees *ret_runs. 0, -EINVAL with the line, -ENOMEM.
 */
int past_runs_parse(
    const char *text, size_t size, struct fault *fault, struct past_run **ret_runs, size_t *ret_n);

#endif
