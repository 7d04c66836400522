/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that a training loop takes: two steps of zero_grad, forward, loss, backward and
 * optimizer are replayed through the rules of the caching allocator.
 */
#ifndef COLLOC_PHYSICS_ALLOCATOR_REPLAY_H
#define COLLOC_PHYSICS_ALLOCATOR_REPLAY_H

#include "base/fault.h"
#include "estimator/physics/allocator.h"
#include "estimator/physics/footprint.h"
#include "estimator/physics/gpu_traits.h"
#include "estimator/physics/tape.h"
#include "model/export.h"
#include "training/optimizer.h"

/*
 * Allocates a kernel's workspace and frees it at once. It is not part of footprint->live, since a
 * kernel with a smaller workspace could run instead.
 *
 * error: 0, or set to an error of allocator_touch; nothing is done after an error.
 */
void allocator_replay_workspace(
    struct allocator *allocator, double bytes, struct footprint *footprint, int *error);

/*
 * Replays a tape.
 *
 * variant: of the workspaces (workspace.h). Small changes decide which segments are taken again,
 *          and workspaces that a rule makes equal fit into each other's segments better than those
 *          of a real training; so an estimate takes another variant than 0
 *
 * Returns 0, or with a fault: -ERANGE (more than any device has) or -ENOMEM.
 */
int allocator_replay_tape(const struct tape *tape, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, uint32_t variant, struct fault *fault,
    struct footprint *ret_footprint);

/* How to replay an export. */
struct export_replay {
    double batch;      /* one that the export allows */
    bool use_measured; /* the workspaces that were measured for convolutions, where it has them */
    const double *workspaces; /* of each of export->convs, in bytes; NULL: as measured or by rule */
    const bool *tries;        /* of each: are kernels tried first? NULL: the measured ones alone */
    uint32_t variant;         /* 0: workspaces as they are known; else each is changed by up to
                          WORKSPACE_CHANGE_MAX (workspace.h), in another way for each number */
};

/* Replays an export, which includes the optimizer and the life of each tensor. Returns as
 * allocator_replay_tape. */
int allocator_replay_export(const struct export *export, const struct export_replay *how,
    const struct gpu_traits *gpu, struct fault *fault, struct footprint *ret_footprint);

/*
 * Replays the export eight times more with slightly other workspaces. Where a small change makes
 * the allocator take another segment, the estimate is less certain.
 *
 * ret_range: the logarithm of the most to the least memory held; 0: no change matters.
 *
 * Returns as allocator_replay_tape.
 */
int allocator_replay_range(const struct export *export, const struct export_replay *how,
    const struct gpu_traits *gpu, struct fault *fault, double *ret_range);

/* Tests whether the export has the measured kernels of all convolutions for this batch and this
 * kind of GPU. `gpu`: NULL: unknown. */
bool allocator_replay_knows_kernels(
    const struct export *export, double batch, const char *gpu_kind);

#endif
