/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a tape's replay share:
 *
 *     allocator_replay.c      the steps; weights, the optimizer
 *     tape_replay_forward.c   an operation of the forward pass
 *     tape_replay_backward.c  the loss and the backward pass
 *     tape_replay_again.c     blocks that are computed again
 *     tape_replay_blocks.c    blocks, and the workspaces of kernels
 *     tensor_lives.c          when each tensor is needed
 *     op_workspace.c          the workspaces of convolutions
 */
#ifndef COLLOC_PHYSICS_TAPE_REPLAY_H
#define COLLOC_PHYSICS_TAPE_REPLAY_H

#include "estimator/physics/allocator.h"
#include "estimator/physics/footprint.h"
#include "estimator/physics/tape.h"
#include "estimator/physics/tensor_lives.h"
#include "estimator/physics/workspace.h"
#include "training/optimizer.h"

enum { KEPT_MOST = 16 }; /* tensors that an operation keeps; chosen: the rules have up to ten */

/* The memory of one operation's parameters: block handles, LIFE_NONE where there is none. And what
 * both steps need alike. */
struct parameter_blocks {
    int weight, bias, buffers;
    int weight_gradient, bias_gradient;
    int copy;            /* of the weight: cast or standardised */
    int tied_gradient;   /* of a tied weight: the gradient from the other operation, until this
                        * operation's is computed */
    int kept[KEPT_MOST]; /* masks, indices, ... of this step */
    double workspaces[CONV_PASSES]; /* bytes, of a convolution's kernels */
};

struct tape_replay {
    const struct tape *tape;
    const struct optimizer_traits *optimizer;
    struct allocator allocator;
    struct parameter_blocks *parameters; /* by operation */
    struct tensor_life *lives;           /* by tensor */
    double live;                         /* bytes in use but for workspaces */
    int loose, loose_gradient;
    int output, loss;
    double workspace_bytes; /* cuBLAS's, per thread */
    bool has_workspace[2];  /* of the thread that runs forward, and of autograd's */
    int error;
    struct footprint footprint;
    uint32_t variant; /* workspace.h */
};

/* ---- tape_replay_blocks.c ---- */

/* Takes a block. Returns its handle; LIFE_NONE: of no bytes, or after an error, which is noted. */
int tape_replay_take(struct tape_replay *replay, double bytes);

/* Releases a block, if there is one, and forgets its handle. */
void tape_replay_release(struct tape_replay *replay, int *handle);

/* Takes what operation `i` keeps beside tensors, as the tensors that it is. */
void tape_replay_keep(struct tape_replay *replay, size_t i);

/* Releases that. */
void tape_replay_forget(struct tape_replay *replay, size_t i);

/* Returns the bytes of a tensor of the whole batch. */
double tape_replay_tensor_bytes(const struct tape_replay *replay, int tensor);

/* Uses the workspaces of operation `i` in this pass. */
void tape_replay_scratch(struct tape_replay *replay, size_t i, enum conv_pass pass);

/* At the first product of a thread cuBLAS allocates its workspace, which is never freed. */
void tape_replay_blas_workspace(struct tape_replay *replay, const struct op *op, bool backward);

/* Tests whether autocast casts the operation's weights, so that their gradients are 16 bit. */
bool tape_replay_casts_weights(const struct tape_replay *replay, const struct op *op);

/* Returns the bytes of an element of the weight's copy that the operation computes with and
 * autograd keeps: cast by autocast, or standardised. 0: it computes with the weight. */
double tape_replay_copied_bytes(const struct tape_replay *replay, const struct op *op);

/* ---- tape_replay_forward.c ---- */

/* Runs operation `i` forward. */
void tape_replay_forward(struct tape_replay *replay, size_t i);

/* ---- tape_replay_again.c ---- */

/* After operation `i` has run forward: if it ends a block that is computed again, releases what was
 * made in the block, but for its results. */
void tape_replay_drop(struct tape_replay *replay, size_t i);

/* Before operation `i` runs backward: if it ends such a block, computes the block again. */
void tape_replay_repeat(struct tape_replay *replay, size_t i);

/* After operation `i` has run backward: if it begins such a block, releases the block's inputs. */
void tape_replay_leave(struct tape_replay *replay, size_t i);

/* ---- tape_replay_backward.c ---- */

/* Computes the loss, unless the next stage of a pipeline does, and the gradients. */
void tape_replay_backward(struct tape_replay *replay);

#endif
