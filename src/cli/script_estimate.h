/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports a training task from its unmodified command: `python train.py` runs in a sandbox without
 * a GPU, on fake tensors, until its second optimizer step (docs/script-estimate.md). The user's
 * code runs as the caller.
 */
#ifndef COLLOC_CLI_SCRIPT_ESTIMATE_H
#define COLLOC_CLI_SCRIPT_ESTIMATE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum { SCRIPT_NOT_FOLLOWED = 1 };

struct script_command {
    const char *const *words; /* the command and its arguments, ended by NULL */
    const char *script;      /* text of a script to run with `words` as its arguments; NULL: none */
    const char *interpreter; /* in place of words[0], which must be a Python; NULL: words[0] */
    int64_t limit_us;        /* 0: the default */
};

/*
 * Runs the command and returns what it would allocate.
 *
 * fault:    of SCRIPT_NOT_FOLLOWED: the reason
 * ret_text: the export, `ret_size` bytes and a NUL, for the caller to free
 *
 * Returns 0; SCRIPT_NOT_FOLLOWED: it ran, but shows no training; or with a fault: -ENOENT (colloc's
 * Python modules are not installed), -EINVAL, or -errno.
 */
int script_export(
    const struct script_command *command, struct fault *fault, char **ret_text, size_t *ret_size);

/*
 * Returns what an export of a script says that its loop does, for people: an object with batch,
 * optimizer, precision, accumulation and others; or NULL. The caller owns it.
 */
json_t *script_seen(const char *text, size_t size);

#endif
