/* SPDX-License-Identifier: Apache-2.0 */
/* The first form of recorded inputs, which is only read any more. */
#ifndef COLLOC_REPLAY_INPUT_LINE_V1_H
#define COLLOC_REPLAY_INPUT_LINE_V1_H

#include "base/text.h"
#include "replay/recorded_line.h"
#include "store/store.h"

#define INPUT_LINE_V1_BEGIN "colloc-inputs 1 "

/* Reads a line. Parameters and results are those of input_line_read; `ret_line` is all zero. */
int input_line_v1_read(struct span text, store_find_policy *find_policy, struct fault *fault,
    struct input_line *ret_line);

#endif
