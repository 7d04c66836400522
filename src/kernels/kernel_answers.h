/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuDNN answered about convolutions: the bytes of the workspace of each question. The answers
 * of a table hold for one kind of GPU, one driver and one version of the library; a file keeps them
 * (kernel_file.h).
 */
#ifndef COLLOC_KERNELS_KERNEL_ANSWERS_H
#define COLLOC_KERNELS_KERNEL_ANSWERS_H

#include "kernels/conv_question.h"

enum { KERNEL_ANSWERS_MAX = 100000 }; /* of a table; chosen: 14 MB, some hundred networks */

#define KERNEL_NONE ((int64_t)-1) /* an answer: the library has no kernel for it */

/* Whose answers these are. */
struct kernel_origin {
    char gpu[96];    /* NVML's name: "NVIDIA H200" */
    char driver[80]; /* "580.159.04" */
    int64_t cudnn;   /* 91900 */
};

/* Each question has one answer; `answers` is in the order in which they came. */
struct kernel_answers {
    struct kernel_origin origin;
    struct kernel_answer {
        struct conv_question question;
        int64_t bytes; /* of the workspace; or KERNEL_NONE */
    } * answers;
    size_t count, capacity;
    uint32_t *slots; /* 1 + an index, by the question's hash; 0: empty */
    size_t n_slots;  /* a power of two */
};

/* Writes "cuDNN 9.19.0 on NVIDIA H200, driver 580.159.04". */
void kernel_origin_text(const struct kernel_origin *origin, char *text, size_t size);

/* Are both of the same GPU, driver and version? */
bool kernel_origin_equal(const struct kernel_origin *a, const struct kernel_origin *b);

/*
 * Adds an answer, or replaces it. Where there are KERNEL_ANSWERS_MAX, the older half is dropped.
 *
 * Returns 0 or -ENOMEM.
 */
int kernel_answers_put(
    struct kernel_answers *answers, const struct conv_question *question, int64_t bytes);

/* Finds the answer to a question. `answers`: NULL: there are none. Returns whether there is one. */
bool kernel_answers_find(
    const struct kernel_answers *answers, const struct conv_question *question, int64_t *ret_bytes);

/* Releases what the table has; the origin stays. */
void kernel_answers_clear(struct kernel_answers *answers);

#endif
