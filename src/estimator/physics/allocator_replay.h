/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training loop takes while it runs a tape: two steps of zero_grad, forward, loss, backward,
 * optimizer, played through the rules of the caching allocator.
 */
#ifndef COLLOC_PHYSICS_ALLOCATOR_REPLAY_H
#define COLLOC_PHYSICS_ALLOCATOR_REPLAY_H

#include "base/fault.h"
#include "estimator/physics/gpu_traits.h"
#include "estimator/physics/tape.h"
#include "estimator/physics/workspace.h"
#include "model/export.h"
#include "training/optimizer.h"

/* Bytes. The parts are of one step and do not add up to the peak: they do not all live at once. */
struct footprint {
    double reserved; /* peak of what the allocator takes from the device, at its ease */
    double active;   /* peak of what is in use at once, workspaces included */
    double live; /* peak of what is in use at once, without workspaces: it cannot run with less */
    double weights, gradients, states, saved, largest_workspace, largest_map, loss;
};

/* 0 or a fault: -ERANGE (beyond any device), -ENOMEM. */
int allocator_replay_tape(const struct tape *tape, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, const struct workspace_shares *shares, struct fault *fault,
    struct footprint *ret_footprint);

/* The same of what the exporter wrote, which holds the optimizer and all that lives. `batch` suits
 * the file; `by_answers`: convolutions take what the file says, where it does. */
int allocator_replay_export(const struct export *export, double batch, bool by_answers,
    const struct gpu_traits *gpu, const struct workspace_shares *shares, struct fault *fault,
    struct footprint *ret_footprint);

/* Whether the exporter asked the library of such a GPU for the kernels of this batch, and had all
 * answers. NULL: a GPU that is not known. */
bool allocator_replay_knows_kernels(
    const struct export *export, double batch, const char *gpu_kind);

#endif
