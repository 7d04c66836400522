/* SPDX-License-Identifier: Apache-2.0 */
/* A user's PyTorch model, run among fake tensors by `python3 -m colloc_export` (docs/export.md):
 * its code runs as the caller. */
#ifndef COLLOC_CLI_PYTORCH_H
#define COLLOC_CLI_PYTORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

struct pytorch_model {
    const char *source; /* FILE.py:FUNCTION, MODULE:FUNCTION, timm:NAME, ... */
    const char *inputs; /* what one sample looks like, with commas between several; NULL: the
                           function says it */
    int64_t classes;    /* of the target; -1: not said */
    bool labels;        /* the model takes its labels and returns its loss */
    bool kernels;       /* a GPU of this machine is asked for its convolutions */
    int64_t batch;
    const char *optimizer, *precision; /* NULL: not said */
    int64_t sequence_length;           /* 0: not said */
    bool with_fake;                    /* also the figure of the estimator faketensor */
    const char *interpreter;           /* NULL: python3 */
    int64_t limit_us;
};

/* The text of the export, freed by the caller. 0 or -errno with the reason in the fault, as
 * python_ask. */
int pytorch_export(
    const struct pytorch_model *model, struct fault *fault, char **ret_text, size_t *ret_size);

#endif
