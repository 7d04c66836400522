/* SPDX-License-Identifier: Apache-2.0 */
/* What cuDNN is to be asked about the convolutions of an export. */
#ifndef COLLOC_MODEL_EXPORT_QUESTION_H
#define COLLOC_MODEL_EXPORT_QUESTION_H

#include <jansson.h>

#include "kernels/kernel_answers.h"
#include "model/export.h"

/* Reads what a question needs of an entry of `convs`. Where that is missing or out of range,
 * ret_shape->rank is 0: it cannot be asked. */
void conv_shape_read(const json_t *row, struct conv_shape *ret_shape);

/* Does PyTorch of this version ("2.6.0+cu124"; NULL: not known) ask cuDNN as colloc does? */
bool export_asks_by_graph(const char *version);

/* Whose kernel runs a pass of a convolution. */
enum kernel_of {
    KERNEL_OF_CUDNN,
    KERNEL_OF_PYTORCH, /* without a workspace */
    KERNEL_NOT_KNOWN,  /* by the file */
};

/*
 * Makes the question about a pass, as PyTorch asks cuDNN.
 *
 * batch:        one that the export allows
 * ret_question: set if cuDNN is to be asked
 *
 * Returns whose kernel it is.
 */
enum kernel_of export_question(const struct export *export, const struct export_conv *conv,
    int64_t batch, struct conv_question *ret_question);

/*
 * Collects the questions of an export that have no answer, each once.
 *
 * answers: NULL: none are known
 * most:    that fit into ret_questions
 *
 * Returns how many were collected.
 */
size_t export_questions_missing(const struct export *export, int64_t batch,
    const struct kernel_answers *answers, size_t most, struct conv_question *ret_questions);

#endif
