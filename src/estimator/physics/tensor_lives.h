/* SPDX-License-Identifier: Apache-2.0 */
/* When a training step needs the memory of each tensor of a tape. */
#ifndef COLLOC_PHYSICS_TENSOR_LIVES_H
#define COLLOC_PHYSICS_TENSOR_LIVES_H

#include "estimator/physics/tape.h"

enum { LIFE_NONE = -1 };

struct tensor_life {
    int root;       /* the tensor whose memory it is */
    int last_use;   /* of a root: last operation of the forward pass that reads or writes it */
    int first_keep; /* of a root: first operation whose gradient needs it; LIFE_NONE */
    int block;      /* of a root, while the tape is replayed; LIFE_NONE */
    int gradient;   /* likewise */
};

/* Writes the lives of the tape's tensors, without blocks. `lives`: tape->n_tensors of them. */
void tensor_lives_find(const struct tape *tape, struct tensor_life *lives);

#endif
