/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimators: how much GPU memory a training task will take, from what is known before it starts.
 *
 * An estimator is one file that exports one `struct estimator`, and one line in the table in
 * estimator.c; help texts, man page and completion walk the table.
 */
#ifndef COLLOC_ESTIMATOR_ESTIMATOR_H
#define COLLOC_ESTIMATOR_ESTIMATOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/reading.h"
#include "estimator/past_run.h"
#include "model/export.h"
#include "model/model.h"
#include "training/optimizer.h"
#include "training/precision.h"

enum { ESTIMATE_UNKNOWN = 1 }; /* an answer: this estimator cannot say, and its note says why */

#define ESTIMATE_NOT_SAID                                                                          \
    INT64_MIN /* for a request's numbers where 0 would be somebody's mistake */
#define ESTIMATE_BATCH_MAX ((int64_t)1000000000) /* a larger batch is a mistake */

/* All that may be known about a task. Only `batch` has to be set: zero and NULL elsewhere mean "not
 * said". */
struct estimate_request {
    const struct model *model;   /* parsed summary, or the layers of the export */
    const struct export *export; /* what the exporter wrote; its model is the one above */
    int64_t
        batch; /* samples in one step on one GPU; ESTIMATE_NOT_SAID: as printed in the summary */
    int64_t declared_bytes; /* what the user says the task takes on one GPU */
    int64_t sequence_length;
    enum optimizer optimizer;
    const char *optimizer_text; /* OPTIMIZER_OTHER as the user calls it, for notes; or NULL */
    enum precision precision;
    const char *gpu_kind; /* "NVIDIA A100-SXM4-40GB" */
    const struct past_run *history;
    size_t n_history;
};

/* What an answer rests on: its quantiles are calibrated for each kind of its own. */
enum evidence {
    EVIDENCE_NONE,
    EVIDENCE_DOUBTFUL, /* a summary that contradicts itself, or of which a part is hidden, without
                          shapes or of unknown types */
    EVIDENCE_SUMMARY,  /* a summary and a batch */
    EVIDENCE_DECLARED, /* and the optimizer and the precision */
    EVIDENCE_EXPORT,
    EVIDENCE_KERNELS,  /* an export that says what its convolutions take on this GPU */
    EVIDENCE_ONE_RUN,  /* the network ran at one other batch */
    EVIDENCE_RUNS,     /* at two or more */
    EVIDENCE_SAME_RUN, /* at this one */
    EVIDENCE_KINDS,
};

const char *evidence_name(enum evidence evidence); /* "summary" */

/* Per GPU, as nvidia-smi shows it for the process: CUDA context included. */
struct estimate {
    const char *estimator;
    struct reading bytes;
    struct reading p50_bytes, p90_bytes, p99_bytes; /* where the estimator knows its own error */
    struct reading floor_bytes;                     /* the least the task can run with */
    struct reading step_us, smact,
        dram_active; /* of one training step alone on the GPU; activities 0..1 */
    enum evidence evidence;
    char note[512]; /* what a person should know: why there is no answer, or what it leaves out; ""
                       when nothing */
};

struct estimator {
    const char *name;
    const char *help; /* half a line, lower case, without a full stop */

    /*
     * Fills *ret_estimate, which comes zeroed but for its name. 0, ESTIMATE_UNKNOWN, or a fault.
     * The request was checked: a batch is said and within its limits, or ESTIMATE_NOT_SAID.
     */
    int (*run)(
        const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate);
};

/* The table in its order: estimator_at(0), (1), ... until NULL. */
const struct estimator *estimator_at(size_t i);

/* NULL when there is none of this name. */
const struct estimator *estimator_find(const char *name);

/* Asked where nobody says which. */
#define ESTIMATOR_USUAL "graph"

/* Which one to ask: the one named, or else the user's own word when he gave it, or else `usual`
 * when there is a summary. */
const char *estimator_choose(
    const char *named, const struct estimate_request *request, const char *usual);

/* Batch of the request or else of the summary; not known when neither says. */
struct count estimate_batch(const struct estimate_request *request);

/* The quantiles of an estimate: enough memory for 50, 90 and 99 of 100 such trainings. */
enum quantile { QUANTILE_P50, QUANTILE_P90, QUANTILE_P99, QUANTILES };

/* Parses "0.9" or "p90". 0 or -EINVAL. */
int quantile_parse(const char *text, enum quantile *ret_quantile);

/* In per cent: 50, 90 or 99. */
int quantile_percent(enum quantile quantile);

/* The calibrated quantile of an estimate; not valid when it has none. */
struct reading estimate_quantile(const struct estimate *estimate, enum quantile quantile);

/* The quantile that is kept free for a task where nobody says another: what is left to chance is
 * what recovery is for.
 */
#define ESTIMATE_RESERVED_QUANTILE QUANTILE_P90

/* What is kept free for the task: that quantile, or the estimate where it does not know its own
 * error. */
struct reading estimate_reserved(const struct estimate *estimate, enum quantile quantile);

/*
 * Checks the request and asks the estimator of this name. 0 (ret_estimate->bytes is valid),
 * ESTIMATE_UNKNOWN, or with a fault: -ENOENT (no such estimator; the fault lists them), -EINVAL (a
 * batch of 0, negative or absurd; a negative declaration), -ERANGE (beyond 64 bits, or no number).
 */
int estimate_run(const char *name, const struct estimate_request *request, struct fault *fault,
    struct estimate *ret_estimate);

#endif
