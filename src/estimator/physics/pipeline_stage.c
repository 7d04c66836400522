/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline's stages, by the schedule 1F1B ("one forward, one backward", arXiv:1806.03377) as
 * PyTorch's torch.distributed.pipelining runs it.
 *
 * The repeated blocks are divided evenly; the first stage also has what is before them, the last
 * one what is behind. A text without as many blocks as stages is cut where the parameters are.
 * Stage s of p (from 0) begins p - s micro-batches before the first backward pass, so it holds what
 * autograd keeps of that many, or of all if there are fewer:
 *
 *     p = 4, 8 micro-batches: 4, 3, 2 and 1 of them in the stages
 *
 * So the first stage is the largest as a rule, or the last one, for a large head and loss. PyTorch
 * (torch/distributed/pipelining/stage.py) allocates the buffers for what a stage receives, inputs
 * and gradients, for all micro-batches at once; the last stage keeps the outputs of all until the
 * step ends, and joins them.
 */
#include "estimator/physics/pipeline_stage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "estimator/physics/block_range.h"

/* Operations [begin, end). */
struct stage {
    size_t begin, end;
    int number; /* from 0 */
};

/* ---- where the stages begin ---- */

static double parameters_of(const struct op *op)
{
    return op->weight + op->bias;
}

/* Sets the first operation of each stage. */
static void cut_by_parameters(const struct tape *tape, int stages, size_t *starts)
{
    double all = 0, before = 0;
    int stage = 0;
    for (size_t i = 0; i < tape->n_ops; i++)
        all += parameters_of(&tape->ops[i]);
    starts[0] = 0;
    for (size_t i = 0; i < tape->n_ops; i++) {
        bool is_due = before >= all * (stage + 1) / stages;
        bool must = tape->n_ops - i <= (size_t)(stages - 1 - stage); /* an operation for each */
        if (i > 0 && stage + 1 < stages && (is_due || must))
            starts[++stage] = i;
        before += parameters_of(&tape->ops[i]);
    }
}

static void cut_by_blocks(const struct block_ranges *blocks, int stages, size_t *starts)
{
    int stage = 0;
    starts[0] = 0;
    for (size_t i = 0; i < blocks->n; i++)
        while (stage < (int)(i * (size_t)stages / blocks->n))
            starts[++stage] = blocks->ranges[i].begin;
}

/* ---- one stage ---- */

/* Marks the tensors that come from earlier stages, and returns their bytes per sample. They are in
 * buffers of their own. */
static double mark_received(const struct tape *tape, const struct stage *stage, struct tensor *copy)
{
    double bytes = 0;
    bool *made = calloc(tape->n_tensors + 1, sizeof *made);
    if (!made)
        return -1;
    for (size_t i = stage->begin; i < stage->end; i++) {
        const struct op *op = &tape->ops[i];
        for (int k = 0; k < OP_INPUTS; k++) {
            int tensor = op->inputs[k];
            if (tensor == TAPE_NONE || made[tensor] || copy[tensor].is_data)
                continue;
            copy[tensor].is_data = true;
            bytes += copy[tensor].elements * copy[tensor].element_bytes;
        }
        made[op->output] = true;
    }
    free(made);
    return bytes;
}

/* An operation that multiplies by the weight of another stage's has a copy of it. */
static void localise_weight(const struct stage *stage, struct op *op)
{
    if (op->tied_to == TAPE_NONE)
        return;
    if ((size_t)op->tied_to >= stage->begin && (size_t)op->tied_to < stage->end) {
        op->tied_to -= (int)stage->begin;
        return;
    }
    op->weight += op->tied;
    op->tied = 0;
    op->tied_to = TAPE_NONE;
}

static double bytes_of(const struct tensor *tensor)
{
    return tensor->elements * tensor->element_bytes;
}

/* What is there beside the replay of one micro-batch. */
static double more_bytes(const struct tape *tape, const struct stage *stage,
    const struct pipeline *pipeline, const struct footprint *one, double received)
{
    int behind = pipeline->stages - stage->number;
    double in_flight = behind < pipeline->micro_batches ? behind : pipeline->micro_batches;
    double samples = tape->batch * pipeline->micro_batches;
    const struct tensor *result = &tape->tensors[tape->result];
    double bytes = (in_flight - 1) * one->saved + samples * received;
    if (stage->number + 1 < pipeline->stages)
        return bytes + samples * bytes_of(result); /* gradients that it receives */
    return bytes + 2 * samples * bytes_of(result); /* outputs, and all of them in one tensor */
}

static int replay_stage(const struct tape *whole, const struct stage *stage,
    const struct pipeline *pipeline, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, uint32_t variant, struct fault *fault,
    struct footprint *ret_footprint)
{
    struct tape tape = *whole;
    bool is_last = stage->number + 1 == pipeline->stages;
    tape.n_ops = stage->end - stage->begin;
    tape.recomputed = NULL;
    tape.n_recomputed = 0;
    tape.batch = ceil(whole->batch / pipeline->micro_batches);
    if (stage->number > 0)
        tape.loose_parameters = tape.loose_frozen = tape.loose_frozen_bytes = 0;
    tape.division.sends_result = !is_last;
    tape.ops = malloc(tape.n_ops * sizeof *tape.ops);
    tape.tensors = malloc(tape.n_tensors * sizeof *tape.tensors);
    double received = -1;
    if (tape.ops && tape.tensors) {
        memcpy(tape.ops, whole->ops + stage->begin, tape.n_ops * sizeof *tape.ops);
        memcpy(tape.tensors, whole->tensors, tape.n_tensors * sizeof *tape.tensors);
        received = mark_received(whole, stage, tape.tensors);
    }
    int r = received < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
    if (r == 0) {
        tape.parameters = tape.loose_parameters + tape.loose_frozen;
        for (size_t i = 0; i < tape.n_ops; i++) {
            localise_weight(stage, &tape.ops[i]);
            tape.parameters += parameters_of(&tape.ops[i]);
        }
        if (!is_last) {
            tape.result = tape.ops[tape.n_ops - 1].output;
            tape.n_tensors = (size_t)tape.result + 1;
        }
        r = allocator_replay_tape(&tape, optimizer, gpu, variant, fault, ret_footprint);
    }
    if (r == 0) {
        double more = more_bytes(&tape, stage, pipeline, ret_footprint, received);
        ret_footprint->reserved += more;
        ret_footprint->active += more;
        ret_footprint->live += more;
    }
    free(tape.ops);
    free(tape.tensors);
    return r;
}

int pipeline_replay(const struct tape *tape, const struct model *model,
    const struct pipeline *pipeline, const struct optimizer_traits *optimizer,
    const struct gpu_traits *gpu, uint32_t variant, struct fault *fault,
    struct footprint *ret_footprint, int *ret_stage)
{
    struct block_ranges blocks;
    int stages = pipeline->stages, r = 0;
    if ((size_t)stages > tape->n_ops)
        return fault_set(
            fault, EINVAL, "a pipeline of %d stages over %zu operations", stages, tape->n_ops);
    CLEANUP_FREE size_t *starts = calloc((size_t)stages + 1, sizeof *starts);
    if (!starts || block_ranges_find(tape, model, &blocks) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    if (blocks.n >= (size_t)stages)
        cut_by_blocks(&blocks, stages, starts);
    else
        cut_by_parameters(tape, stages, starts);
    starts[stages] = tape->n_ops;
    *ret_footprint = (struct footprint){0};
    for (int s = 0; r == 0 && s < stages; s++) {
        struct footprint footprint;
        const struct stage stage = {starts[s], starts[s + 1], s};
        r = replay_stage(tape, &stage, pipeline, optimizer, gpu, variant, fault, &footprint);
        if (r == 0 && (s == 0 || footprint.reserved > ret_footprint->reserved)) {
            *ret_footprint = footprint;
            *ret_stage = s + 1;
        }
    }
    block_ranges_fini(&blocks);
    return r;
}
