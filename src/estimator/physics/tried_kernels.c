/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch tries kernels once for each question that cuDNN could be asked: the same pass over maps
 * of the same sizes, wherever in the network; but each thread does so (Conv_v8.cpp), and the
 * backward pass runs in another one. A generator's transposed convolution asks forward what a
 * discriminator's asks for the gradient of its input: both are tried. After each try it empties the
 * cache of its allocator, so that the first iteration takes fresh segments where it
 * would have taken cached ones: the memory of a training is another one then, also without the
 * workspaces of the tries.
 *
 * The largest kernels that cuDNN tries transform maps and weights by Fourier's transform, at the
 * next power of two of a map's side with its margin; each is there twice. So weights between 1,024
 * and 2,048 channels for maps of 7 x 7 take
 *
 *     2 x 1,024 x 2,048 x (16 x 9 complex numbers of 8 bytes) = 4,608 MiB
 *
 * at any batch, and its maps 7 MiB a sample. On an H200 16 trainings in 32 bit took 0.6 to 1.0 of
 * their estimate with this, in 16 bit none of seven took any of it (docs/measured/timm.md).
 */
#include "estimator/physics/tried_kernels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/export_question.h"

enum { RANK_OF_IMAGES = 4 };         /* a batch with channels */
enum { FORWARD, BACKWARD, THREADS }; /* of a training */

static int mark_first(const struct export *export, int64_t batch, bool *tries)
{
    struct kernel_answers seen[THREADS] = {{.count = 0}};
    int r = 0;
    for (size_t i = 0; i < export->n_convs && r == 0; i++) {
        struct kernel_answers *of_thread =
            &seen[export->convs[i].pass == EXPORT_FORWARD ? FORWARD : BACKWARD];
        struct conv_question question;
        int64_t bytes;
        if (export_question(export, &export->convs[i], batch, &question) != KERNEL_OF_CUDNN ||
            kernel_answers_find(of_thread, &question, &bytes))
            continue;
        tries[i] = true;
        r = kernel_answers_put(of_thread, &question, 0);
    }
    for (int thread = 0; thread < THREADS; thread++)
        kernel_answers_clear(&seen[thread]);
    return r;
}

int tried_kernels_find(
    const struct estimate_request *request, struct fault *fault, bool **ret_tries)
{
    const struct export *export = request->export;
    *ret_tries = NULL;
    if (!export->tries_kernels || export->n_convs == 0)
        return 0;
    bool *tries = calloc(export->n_convs, sizeof *tries);
    int r = tries ? mark_first(export, estimate_batch(request).value, tries) : -ENOMEM;
    if (r == 0)
        *ret_tries = tries;
    else
        free(tries);
    return r < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}

/* ---- what they take ---- */

/* Measured: cuDNN 9.19 on an H200 transforms maps under single weights at 16, others at 32. */
enum { SIDE_MIN = 16, SIDE_MIN_OF_WINDOWS = 32, SIDE_MAX = 256 };
enum { TIMES = 2, COMPLEX_BYTES = 8 };

/* Of images; 0: these kernels do not serve. */
static double transformed_bytes(const struct conv_question *q)
{
    double taps = fmax(q->weight[2], q->weight[3]),
           size = taps > 1 ? SIDE_MIN_OF_WINDOWS : SIDE_MIN;
    double side = fmax(fmax(q->input[2], q->input[3]), fmax(q->output[2], q->output[3]));
    while (size < side + taps - 1)
        size *= 2;
    if (size > SIDE_MAX || q->dilation[0] > 1 || q->dilation[1] > 1)
        return 0;
    double weights = (double)q->weight[0] * q->weight[1];
    double maps = (double)q->input[0] * ((double)q->input[1] + q->output[1]);
    return TIMES * COMPLEX_BYTES * size * (size / 2 + 1) * (weights + maps);
}

static bool is_seen(const struct conv_question *question)
{
    return question->type == CONV_FLOAT32 && !question->channels_last;
}

struct tried_workspace tried_workspace_of(const struct export *export, int64_t batch)
{
    double most = 0;
    bool all_seen = true;
    for (size_t i = 0; i < export->n_convs; i++) {
        struct conv_question question;
        enum kernel_of of = export_question(export, &export->convs[i], batch, &question);
        if (of == KERNEL_OF_PYTORCH)
            continue;
        if (of == KERNEL_NOT_KNOWN || question.rank != RANK_OF_IMAGES)
            return (struct tried_workspace){0};
        most = fmax(most, transformed_bytes(&question));
        all_seen &= is_seen(&question);
    }
    return (struct tried_workspace){reading_of(most), all_seen};
}
