/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a user's PyTorch model: `python3 -m colloc_export` (docs/export.md) runs it on fake
 * tensors. The user's code runs as the caller. */
#ifndef COLLOC_CLI_PYTORCH_H
#define COLLOC_CLI_PYTORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

struct pytorch_model {
    const char *source; /* FILE.py:FUNCTION, MODULE:FUNCTION, timm:NAME, ... */
    const char *inputs; /* shape of one sample, comma-separated if there are several; NULL: the
                           function returns it */
    int64_t classes;    /* of the target; -1: not given */
    bool labels;        /* the model takes its labels and returns its loss */
    bool kernels;       /* measure the workspace of convolutions on a GPU of this machine */
    int64_t batch;
    const char *optimizer, *precision; /* NULL: not given */
    int64_t sequence_length;           /* 0: not given */
    bool with_fake;                    /* also calculate the value of the estimator faketensor */
    const char *interpreter;           /* NULL: python3 */
    int64_t limit_us;
};

/*
 * Exports the model.
 *
 * ret_text: the export, `ret_size` bytes and a NUL, for the caller to free.
 *
 * Returns as python_ask.
 */
int pytorch_export(
    const struct pytorch_model *model, struct fault *fault, char **ret_text, size_t *ret_size);

#endif
