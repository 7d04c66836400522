/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numeric precisions of a training. One table: names, aliases, what each means for memory.
 *
 * Contract:
 *   1. bf16, fp16 and fp8 mean mixed precision, as in training scripts (`--bf16`, `--fp16` of
 *      Hugging Face's Trainer, "bf16-mixed" of Lightning): torch.autocast over weights, gradients
 *      and optimizer states in 32 bit. Training whose weights are in 16 bit takes less.
 *   2. tf32 is a way to multiply: it takes the memory of fp32.
 */
#ifndef COLLOC_TRAINING_PRECISION_H
#define COLLOC_TRAINING_PRECISION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

enum precision {
    PRECISION_UNSAID,
    PRECISION_FP32,
    PRECISION_TF32,
    PRECISION_BF16,
    PRECISION_FP16,
    PRECISION_AMP,
    PRECISION_FP8,
    PRECISIONS
};

/* The names in the table's order, NULL-terminated: for help and completion. */
extern const char *const precision_names[PRECISIONS];

/*
 * Parses a name or an alias ("bfloat16", "half") in any case.
 *   text   NULL and "" are PRECISION_UNSAID
 *   field  what the fault calls the value: "--precision", "precision"
 * Returns 0, or -EINVAL with a fault that lists the names.
 */
int precision_parse(
    const char *field, const char *text, struct fault *fault, enum precision *ret_precision);

/* The name; "" for PRECISION_UNSAID. */
const char *precision_name(enum precision precision);

/* The table's name for a name or an alias; NULL when there is none. */
const char *precision_canonical(const char *text);

/* Whether activations are in 16 bit, by torch.autocast. */
bool precision_is_autocast(enum precision precision);

/* What a person should know of an estimate at this precision; NULL: nothing. */
const char *precision_note(enum precision precision);

#endif
