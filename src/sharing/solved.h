/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laws of sharing for who asks the same again and again: a scheduler, about the mixes on its
 * GPUs with each task that waits. What was solved lately is kept, for each thread by itself; the
 * answers are those of sharing_solve.
 */
#ifndef COLLOC_SHARING_SOLVED_H
#define COLLOC_SHARING_SOLVED_H

#include "sharing/sharing.h"

/* sharing_solve by the measured laws on a whole GPU, but for `turn`, which is not set. */
void sharing_solve_measured(struct sharer *sharers, int n);

#endif
