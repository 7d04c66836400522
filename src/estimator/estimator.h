/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimators predict the GPU memory of a training task from what is known before it starts.
 *
 * An estimator is one file that exports one `struct estimator`, and one line in the table in
 * estimator_table.c. Help, man page and completion take it from there.
 */
#ifndef COLLOC_ESTIMATOR_ESTIMATOR_H
#define COLLOC_ESTIMATOR_ESTIMATOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/reading.h"
#include "estimator/past_run.h"
#include "kernels/kernel_answers.h"
#include "model/export.h"
#include "model/model.h"
#include "training/optimizer.h"
#include "training/parallel.h"
#include "training/precision.h"

enum { ESTIMATE_UNKNOWN = 1 }; /* no error: the estimator has no answer, and its note says why */

/* "Not given", for those numbers of a request where 0 would be a user's mistake. */
#define ESTIMATE_NOT_GIVEN INT64_MIN
#define ESTIMATE_BATCH_MAX ((int64_t)1000000000) /* chosen: a larger batch is a mistake */

/* Pictures that a host decodes a second: one process, and all processors. 0: not known. */
struct host_decoding {
    double rate, most;
};

/* The known facts of a task. Only `batch` has to be set; in the other members zero and NULL mean
 * "not given". */
struct estimate_request {
    const struct model *model;   /* parsed summary, or the layers of the export */
    const struct export *export; /* its model is the one above */
    int64_t batch; /* samples in one step on one GPU; ESTIMATE_NOT_GIVEN: that of the summary */
    int64_t declared_bytes; /* on one GPU, as the user declared it */
    int64_t sequence_length;
    enum optimizer optimizer;
    const char *optimizer_text; /* the user's name for OPTIMIZER_OTHER, for notes; or NULL */
    enum precision precision;
    bool checkpointing;     /* the repeated blocks run again in the backward pass */
    int gpus;               /* of the task: one process on each; 0 and 1 are the same */
    enum parallel parallel; /* how they divide the model */
    int parallel_degree;    /* of tensor or pipeline parallelism; 0: all GPUs */
    int micro_batches;      /* of a pipeline, in one step; 0: as many as stages */
    enum offload offload;   /* to the host's memory */
    double loader_rate;     /* samples a second that one process loads; 0: see loading_rate */
    struct host_decoding decoding;        /* of the host that the training is for */
    const char *gpu_kind;                 /* "NVIDIA A100-SXM4-40GB" */
    const struct kernel_answers *kernels; /* of this kind of GPU; NULL: none are kept */
    uint32_t uid;                         /* whose task it is: see past_runs_of */
    const struct past_run *history;
    size_t n_history;
};

/* What an answer is based on. Quantiles are calibrated separately for each kind. */
enum evidence {
    EVIDENCE_NONE,
    EVIDENCE_DOUBTFUL, /* a summary that contradicts itself, or with a part that is hidden, has no
                          shapes or is of unknown types */
    EVIDENCE_SUMMARY,  /* a summary and a batch */
    EVIDENCE_DECLARED, /* a summary, a batch, the optimizer and the precision */
    EVIDENCE_EXPORT,
    EVIDENCE_SCRIPT,   /* an export of the training script itself, as its loop ran */
    EVIDENCE_KERNELS,  /* an export with the measured workspaces of its convolutions on this GPU */
    EVIDENCE_ONE_RUN,  /* a run of the network with another batch, optimizer or precision */
    EVIDENCE_RUNS,     /* runs at two other batches or more, with this optimizer and precision */
    EVIDENCE_SAME_RUN, /* a run at this batch */
    EVIDENCE_OTHER_OPTIMIZER, /* a run at this batch with another optimizer */
    EVIDENCE_COMPILED,        /* a training step that JAX compiled */
    EVIDENCE_OTHER_RUNS,      /* several runs with other batches, optimizers or precisions */
    EVIDENCE_KINDS,
};

/* Returns the name of a kind: "summary". */
const char *evidence_name(enum evidence evidence);

enum { ESTIMATE_KERNELS_SIZE = 256 };

/* Per GPU, as nvidia-smi shows it for the process: CUDA context included. */
struct estimate {
    const char *estimator;
    struct reading bytes;
    struct reading p50_bytes, p90_bytes, p99_bytes; /* valid if the estimator is calibrated */
    struct reading untried_p99_bytes; /* p99 without the kernels that cuDNN tries (cudnn.benchmark),
                                       * which take what is free; valid if p99 is with them */
    struct reading floor_bytes;       /* the least memory that it can run with */
    struct reading step_us, smact,
        dram_active; /* of one training step alone on the GPU; activities 0..1, over the step with
                      * its wait for data (estimate_request.loader_rate) */
    enum evidence evidence;
    char kernels[ESTIMATE_KERNELS_SIZE]; /* where the workspaces of convolutions come from; "":
                                          * there are none, or not of an export */
    char note[512]; /* for the user: why there is no estimate, or what it does not include; "":
                     * nothing */
};

struct estimator {
    const char *name;
    const char *help; /* half a line, lower case, without a full stop */

    /*
     * Makes an estimate.
     *
     * `request`: checked: the batch is ESTIMATE_NOT_GIVEN or within its limits.
     * `ret_estimate`: zeroed except for its name.
     *
     * Returns 0; ESTIMATE_UNKNOWN; or -errno with a fault.
     */
    int (*run)(
        const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate);
};

/* Returns estimator number `i` (from 0) in the order in which help lists them; NULL after the
 * last. */
const struct estimator *estimator_at(size_t i);

/* Returns the estimator of this name, or NULL. */
const struct estimator *estimator_find(const char *name);

/* The default estimator for a task with a summary or an export. */
#define ESTIMATOR_USUAL "graph"

/*
 * Chooses an estimator.
 *
 * named: the user's choice, or NULL.
 * usual: the estimator for a request with a summary.
 *
 * Returns `named`; else "declared" for a declared memory; else `usual`; else "none".
 */
const char *estimator_choose(
    const char *named, const struct estimate_request *request, const char *usual);

/* Returns the batch of the request, else of the summary; not known if neither has one. */
struct count estimate_batch(const struct estimate_request *request);

/* The quantiles of an estimate: memory that was enough for 50, 90 and 99 % of comparable training
 * runs. */
enum quantile { QUANTILE_P50, QUANTILE_P90, QUANTILE_P99, QUANTILES };

/* Parses "0.9" or "p90". Returns 0 or -EINVAL. */
int quantile_parse(const char *text, enum quantile *ret_quantile);

/* Returns the quantile in per cent: 50, 90 or 99. */
int quantile_percent(enum quantile quantile);

/* Returns the calibrated quantile of an estimate; not valid if it has none. */
struct reading estimate_quantile(const struct estimate *estimate, enum quantile quantile);

/* The quantile that is reserved by default. Chosen: a task that needs more is recovered. */
#define ESTIMATE_RESERVED_QUANTILE QUANTILE_P90

/* Returns the memory to reserve: the quantile, or the estimate itself if it is not calibrated. */
struct reading estimate_reserved(const struct estimate *estimate, enum quantile quantile);

/*
 * Checks the request and runs the estimator of this name.
 *
 * Returns 0, and ret_estimate->bytes is valid; ESTIMATE_UNKNOWN, with a note; or with a fault:
 * -ENOENT (no such estimator; the fault lists them), -EINVAL (a batch below 1 or above the limit, a
 * negative declaration), -ERANGE (the result is beyond 64 bits, or not a number).
 */
int estimate_run(const char *name, const struct estimate_request *request, struct fault *fault,
    struct estimate *ret_estimate);

/* The note of an estimator that needs the batch size. */
#define ESTIMATE_NO_BATCH "neither the task nor the summary says the batch size: give --batch"

#endif
