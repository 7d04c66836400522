/* SPDX-License-Identifier: Apache-2.0 */
/* What cuDNN is to be asked about the convolutions of an export. */
#ifndef COLLOC_MODEL_EXPORT_QUESTION_H
#define COLLOC_MODEL_EXPORT_QUESTION_H

#include "kernels/kernel_answers.h"
#include "model/export.h"

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
