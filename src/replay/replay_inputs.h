/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds a record of a live core to a new one, and compares every decision with the recorded one. */
#ifndef COLLOC_REPLAY_REPLAY_INPUTS_H
#define COLLOC_REPLAY_REPLAY_INPUTS_H

#include <stdio.h>

#include "replay/input_line.h"

struct replay_result {
    int64_t starts; /* of the daemon */
    int64_t inputs; /* samples among them */
    int64_t samples;
    int64_t decisions;     /* that were the same */
    bool is_cut;           /* a line is cut because the daemon was killed; it does not count */
    char difference[1024]; /* the first difference, for people; "": none */
};

enum { REPLAY_DIFFERS = 1 };

/*
 * Replays a record of either form (input_line.h).
 *
 * in:         read to its end or to the first difference; stays the caller's.
 * ret_result: filled in each case.
 *
 * Returns 0: all decisions are the same; REPLAY_DIFFERS; -EINVAL with the line in the fault if the
 * record is not understood; -ENOMEM; -EIO.
 */
int replay_inputs(FILE *in, store_find_policy *find_policy, struct fault *fault,
    struct replay_result *ret_result);

#endif
