/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds a record of a live core to a fresh one, and compares every decision with the recorded ones.
 */
#ifndef COLLOC_REPLAY_REPLAY_H
#define COLLOC_REPLAY_REPLAY_H

#include <stdio.h>

#include "replay/line.h"

struct replay_result {
    int64_t starts, inputs, samples, decisions; /* samples are inputs, too */
    bool is_cut; /* the last line, or one before a start, is not whole: whoever wrote it was killed
                  */
    char difference[1024]; /* "": none */
};

enum { REPLAY_DIFFERS = 1 };

/*
 * 0: identical. REPLAY_DIFFERS with the first difference in words. A fault that names the line:
 * what is not understood
 * (-EINVAL), -ENOMEM, -EIO.
 */
int replay_run(FILE *in, store_find_policy *find_policy, struct fault *fault,
    struct replay_result *ret_result);

#endif
