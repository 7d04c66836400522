/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor that an operation computes in place is its input's memory: the input is its root. A root
 * lives until its last reader in the forward pass, or, if a gradient needs it, until the backward
 * pass has passed the first operation that keeps it:
 *
 *     0 conv -> a    1 relu in place -> b, which it keeps    2 linear reads b -> c
 *
 *     a is the root of b; its last use is 2, its first keep is 1
 */
#include "estimator/physics/tensor_lives.h"

static void note_keep(struct tensor_life *lives, int tensor, int op)
{
    struct tensor_life *root = &lives[lives[tensor].root];
    if (root->first_keep == LIFE_NONE)
        root->first_keep = op;
}

static void note_use(struct tensor_life *lives, int tensor, int op)
{
    lives[lives[tensor].root].last_use = op;
}

/* A block that is computed again keeps what it reads and does not make, for its second run. */
static void keep_inputs_of_repeated(const struct tape *tape, struct tensor_life *lives)
{
    for (size_t n = 0; n < tape->n_recomputed; n++) {
        const struct block_range *range = &tape->recomputed[n];
        int first_made = tape->ops[range->begin].output;
        for (size_t i = range->begin; i < range->end; i++)
            for (int k = 0; k < OP_INPUTS; k++) {
                int tensor = tape->ops[i].inputs[k];
                if (tensor == TAPE_NONE || lives[tensor].root >= first_made)
                    continue;
                struct tensor_life *root = &lives[lives[tensor].root];
                if (root->first_keep == LIFE_NONE || root->first_keep > (int)range->begin)
                    root->first_keep = (int)range->begin;
            }
    }
}

void tensor_lives_find(const struct tape *tape, struct tensor_life *lives)
{
    for (size_t t = 0; t < tape->n_tensors; t++)
        lives[t] = (struct tensor_life){(int)t, LIFE_NONE, LIFE_NONE, LIFE_NONE, LIFE_NONE};
    for (size_t i = 0; i < tape->n_ops; i++) {
        const struct op *op = &tape->ops[i];
        if (op->in_place)
            lives[op->output].root = lives[op->inputs[0]].root;
        for (int k = 0; k < OP_INPUTS; k++) {
            if (op->inputs[k] == TAPE_NONE)
                continue;
            note_use(lives, op->inputs[k], (int)i);
            if (op->keeps_inputs)
                note_keep(lives, op->inputs[k], (int)i);
        }
        note_use(lives, op->output, (int)i);
        if (op->keeps_output)
            note_keep(lives, op->output, (int)i);
    }
    keep_inputs_of_repeated(tape, lives);
}
