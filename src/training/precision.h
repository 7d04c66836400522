/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numeric precisions of a training. One table: names, aliases, what each means for memory.
 *
 * Contract:
 *   1. bf16, fp16 and fp8 mean mixed precision, as in training scripts (`--bf16`, `--fp16` of
 *      Hugging Face's Trainer, "bf16-mixed" of Lightning): torch.autocast over weights, gradients
 *      and optimizer states in 32 bit.
 *   2. bf16-true and fp16-true mean weights, gradients, states and activations in 16 bit, without
 *      autocast (Lightning's "bf16-true"; `model.to(torch.bfloat16)`).
 *   3. tf32 is a way to multiply: it takes the memory of fp32.
 */
#ifndef COLLOC_TRAINING_PRECISION_H
#define COLLOC_TRAINING_PRECISION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

enum precision {
    PRECISION_NOT_GIVEN,
    PRECISION_FP32,
    PRECISION_TF32,
    PRECISION_BF16,
    PRECISION_FP16,
    PRECISION_AMP,
    PRECISION_FP8,
    PRECISION_BF16_TRUE,
    PRECISION_FP16_TRUE,
    PRECISIONS
};

/* The names in the table's order, NULL-terminated: for help and completion. */
extern const char *const precision_names[PRECISIONS];

/*
 * Parses a name or an alias ("bfloat16", "half") in any case.
 *
 * field: the value's name in messages: "--precision", "precision"
 * text:  NULL and "" are PRECISION_NOT_GIVEN
 *
 * Returns 0, or -EINVAL with a fault that lists the names.
 */
int precision_parse(
    const char *field, const char *text, struct fault *fault, enum precision *ret_precision);

/* Returns the name; "" for PRECISION_NOT_GIVEN. */
const char *precision_name(enum precision precision);

/* Returns the table's name for a name or an alias, or NULL. */
const char *precision_canonical(const char *text);

/* Are activations in 16 bit, by torch.autocast? */
bool precision_is_autocast(enum precision precision);

/* Are the weights in 16 bit, and with them gradients, states and activations? */
bool precision_has_half_weights(enum precision precision);

/* Returns a note for estimates at this precision, or NULL. */
const char *precision_note(enum precision precision);

#endif
