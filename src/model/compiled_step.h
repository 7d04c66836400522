/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step of JAX as its compiler plans it: the export of `colloc_export --jax`
 * (docs/export.md). XLA takes one block for all temporaries of a step, and a buffer for each array
 * that goes in or comes out.
 */
#ifndef COLLOC_MODEL_COMPILED_STEP_H
#define COLLOC_MODEL_COMPILED_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "model/model.h"

struct json_t;

#define COMPILED_NO_ARGUMENT (-1)

/* An output in separate memory, not in that of an argument that the step may overwrite. */
struct compiled_output {
    int64_t bytes;
    int64_t replaces; /* the argument whose place it takes in the next step, or
                       * COMPILED_NO_ARGUMENT */
};

/* XLA's allocator when the compiler had ended: also of the kernels that it tried. */
struct compiled_pool {
    struct count in_use_bytes, peak_bytes; /* at that time; at most, since the process began */
    struct count pool_bytes, largest_free_bytes; /* not known of a pool allocated in advance */
};

struct compiled_step {
    bool is_there;      /* false: the export is of PyTorch, and all else is empty */
    bool is_for_gpu;    /* compiled for a GPU; else its temporaries are other ones */
    int64_t *arguments; /* bytes of each array that the caller holds */
    size_t n_arguments;
    struct compiled_output *outputs;
    size_t n_outputs;
    int64_t temp_bytes;
    struct count argument_bytes; /* of all, as the compiler lays them out */
    struct count code_bytes;     /* of the program, outside of the allocator's pool */
    struct compiled_pool compiling;
};

/*
 * Reads the member "compiled" of an export.
 *
 * root:     the export
 * ret_step: without that member, not there; for compiled_step_fini in any case
 *
 * Returns 0; or with a fault -EINVAL (a member is missing or out of range), -EFBIG (too many
 * arrays) or -ENOMEM.
 */
int compiled_step_read(
    const struct json_t *root, struct fault *fault, struct compiled_step *ret_step);

/* Releases its lists. */
void compiled_step_fini(struct compiled_step *step);

#endif
