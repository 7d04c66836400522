/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a short program for its output. The limit is for file systems that do not answer, which must
 * not stop a bench. */
#include "bench/program_output.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu/program.h"

#define LIMIT_US (60 * SECOND_US) /* chosen: conda takes several seconds */

int program_output_read(
    const char *const *argv, struct fault *fault, char **ret_text, int *ret_status)
{
    char path[PATH_MAX];
    *ret_text = NULL;
    if (!program_find(argv[0], path, sizeof path))
        return fault_set(fault, ENOENT, "%s: no such program", argv[0]);
    char *text = malloc(PROGRAM_OUTPUT_MAX);
    if (!text)
        return fault_set(fault, ENOMEM, "out of memory");
    const struct program program = {.path = path,
        .argv = (char *const *)(uintptr_t)argv,
        .envp = environ,
        .limit_us = LIMIT_US};
    int r = program_run(&program, text, PROGRAM_OUTPUT_MAX, ret_status, fault);
    if (r == 0)
        *ret_text = text;
    else
        free(text);
    return r;
}
