/* SPDX-License-Identifier: Apache-2.0 */
/* What the estimators know of a kind of GPU. */
#ifndef COLLOC_PHYSICS_GPU_TRAITS_H
#define COLLOC_PHYSICS_GPU_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_traits {
    const char *match;       /* a part of the name that nvidia-smi gives */
    int64_t context_bytes;   /* of a process that uses PyTorch, outside of the caching allocator */
    int64_t blas_bytes;      /* more of it once it multiplies matrices */
    int64_t dnn_bytes;       /* and once it convolves, or computes in 16 bit */
    int64_t workspace_bytes; /* cuBLAS takes, per thread that multiplies, through the allocator */
    int sms;
    double flops_fp32, flops_half; /* dense matrix products per second: TF32 counts as fp32 where
                                      PyTorch uses it */
    double bytes_per_s;
};

/* The context of a process that multiplies matrices, or convolves or computes in 16 bit. */
double gpu_traits_context(const struct gpu_traits *gpu, bool multiplies, bool convolves_or_half);

/*
 * The traits of a kind of GPU by its name ("NVIDIA A100-SXM4-40GB", "h100"), in any case. An RTX
 * A1000 is no A100. NULL: the kind is not known here.
 */
const struct gpu_traits *gpu_traits_find(const char *kind);

/* What stands in where no kind is said, or one that is not known: an A100. Whoever uses it for a
 * kind that is not known says so. */
const struct gpu_traits *gpu_traits_assumed(void);

/* The kinds that are known, NULL-terminated: for messages. */
extern const char *const gpu_traits_kinds[];

#endif
