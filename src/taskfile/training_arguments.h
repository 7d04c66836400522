/* SPDX-License-Identifier: Apache-2.0 */
/* What the arguments of a training say about it, for the estimate of its memory. */
#ifndef COLLOC_TASKFILE_TRAINING_ARGUMENTS_H
#define COLLOC_TASKFILE_TRAINING_ARGUMENTS_H

#include <stddef.h>

#include "base/fault.h"
#include "taskfile/option.h"

/*
 * Sets options of a task that are not set from its command's arguments, as those of transformers'
 * Trainer, Lightning, timm and torchvision are called: batch, optimizer, precision, checkpointing,
 * sequence length, image size.
 *
 * script:    its text, NULL: none; lines that begin with # say nothing
 * arguments: of the task, NULL-terminated; NULL: none
 * values:    TASK_OPTION_MAX of them, by enum task_option
 * ret_taken: the options that were set, as they would be given, "--batch=8 --checkpointing"; cut
 *            where `size` is too small; "": none
 *
 * A batch that may be of all processes says nothing where the task has several GPUs. Nor does an
 * argument with several values in the script, with a variable, or with a value that its option
 * does not take.
 *
 * Returns 0, or -ENOMEM with a fault.
 */
int training_arguments_apply(const char *script, const char *const *arguments,
    struct option_value *values, struct fault *fault, char *ret_taken, size_t size);

#endif
