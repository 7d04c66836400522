/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a training PyTorch's profiler records: "torch:step=100,steps=5". */
#ifndef COLLOC_TASKFILE_TORCH_STEPS_H
#define COLLOC_TASKFILE_TORCH_STEPS_H

#include <stdint.h>

enum { TORCH_STEPS_MAX = 1000 }; /* chosen: a trace of a step has some MiB */

struct torch_steps {
    int64_t step;  /* the first one */
    int64_t steps; /* how many; 0: none until `colloc profile` asks for some */
};

/*
 * Parses "torch", or "torch:step=N,steps=M" with either or both: from step 10 on and 5 steps where
 * they are not given.
 *
 * Returns 0, or -EINVAL for any other text.
 */
int torch_steps_parse(const char *text, struct torch_steps *ret_steps);

/* For the table of options. Returns `text` if torch_steps_parse accepts it, else NULL. */
const char *torch_steps_canonical(const char *text);

/* For the table of options. Returns what is wrong with a text that begins with "torch:", and what
 * is allowed; or NULL. */
const char *torch_steps_wrong_part(const char *text);

#endif
