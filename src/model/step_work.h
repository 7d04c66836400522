/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of one training step, as an export lists it beside its convolutions: matrix products by
 * shape, and what each other operator reads and writes (docs/export.md). The roofline turns it into
 * time.
 */
#ifndef COLLOC_MODEL_STEP_WORK_H
#define COLLOC_MODEL_STEP_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "model/linear_size.h"

struct json_t;

enum step_phase { STEP_FORWARD, STEP_BACKWARD, STEP_UPDATE, STEP_PHASES };

/* How an operator runs on a GPU. */
enum step_operator_kind {
    STEP_KERNEL,    /* one kernel, or a few */
    STEP_NORM,      /* normalisation or softmax: reads its input more than once */
    STEP_ATTENTION, /* in one kernel */
    STEP_VIEW,      /* none */
    STEP_LISTS,     /* of a foreach optimizer: kernels over lists of tensors */
    STEP_RECURRENT, /* a chain of kernels, each of which needs the one before it */
};

/* Calls of an operator that are alike. */
struct step_operator {
    enum step_phase phase;
    enum step_operator_kind kind;
    int64_t calls;
    int64_t tensors;                  /* that a call writes; of a recurrent layer: its steps */
    struct linear_size reads, writes; /* bytes of a call */
    struct linear_size macs;          /* multiply-adds of a call: attention, recurrent layers */
};

/* `count` products of m x k and k x n. */
struct step_product {
    enum step_phase phase;
    struct linear_size m, n, k, count;
    bool half; /* in 16 bit */
};

struct step_work {
    struct step_operator *operators; /* NULL: the exporter did not list them */
    size_t n_operators;
    struct step_product *products;
    size_t n_products;
};

/*
 * Reads the members "operators" and "matmuls" of an export.
 *
 * root:     the export
 * ret_work: for step_work_fini in any case
 *
 * Returns 0; or with a fault -EINVAL (a member is missing or out of range), -EFBIG (too many rows)
 * or -ENOMEM.
 */
int step_work_read(const struct json_t *root, struct fault *fault, struct step_work *ret_work);

/* Releases its lists. */
void step_work_fini(struct step_work *work);

#endif
