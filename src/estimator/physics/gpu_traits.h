/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of each kind of GPU for the physical estimate. */
#ifndef COLLOC_PHYSICS_GPU_TRAITS_H
#define COLLOC_PHYSICS_GPU_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_traits {
    const char *match;       /* a part of the name that nvidia-smi prints */
    int64_t context_bytes;   /* of a process that uses PyTorch, outside of the caching allocator */
    int64_t blas_bytes;      /* added to it by the first product of matrices */
    int64_t dnn_bytes;       /* added by the first convolution, or computation in 16 bit */
    int64_t workspace_bytes; /* of cuBLAS, per thread that multiplies, through the allocator */
    int sms;
    double cycles_per_s;           /* of an SM, at most */
    double flops_fp32, flops_half; /* dense matrix products per second: TF32 counts as fp32 where
                                      PyTorch uses it */
    double flops_single;           /* in fp32 without tensor cores */
    double bytes_per_s;
    double link_bytes_per_s; /* to the other GPUs of the host, in each direction, at once */
    double pcie_bytes_per_s; /* the same of a card without NVLink */
    bool is_derived;         /* of data/gpu-kinds.txt: the context is taken to be an A100's */
    bool has_own_products;   /* products reach these rates by instructions of this generation alone,
                              as Hopper's by wgmma: libraries' older kernels do not */
    bool is_fitted;          /* cuDNN's workspaces were fitted to runs on this chip */
};

/* Returns the bytes of the CUDA context of a process that does these things. */
double gpu_traits_context(const struct gpu_traits *gpu, bool multiplies, bool convolves_or_half);

/* Returns the bytes a second that a GPU sends to the others of its host while it receives as many:
 * by NVLink, or by PCIe where the name says so ("NVIDIA A100 80GB PCIe"). name: or NULL */
double gpu_traits_link(const struct gpu_traits *gpu, const char *name);

/* The further memory that NCCL takes in a process, less the context of a process without it.
 * Measured on H200s of one host with NVLink (docs/measured/parallel.md), assumed for other kinds:
 *
 *     one process, such as torchrun with one                                  558 MiB
 *     several exchange gradients: 1,593 to 1,616 MiB outside of the allocator 850 MiB
 *     they also send each other maps (tensor parallelism, pipelines): 1,929 to 2,057 MiB
 *                                                                           1,290 MiB
 */
#define GPU_TRAITS_NCCL_ALONE_BYTES (558 << 20)
#define GPU_TRAITS_NCCL_BYTES       (850 << 20)
#define GPU_TRAITS_NCCL_MAPS_BYTES  (1290 << 20)

/*
 * Finds a kind of GPU by its name in upper or lower case, with or without blanks and hyphens: "NVIDIA
 * A100-SXM4-40GB", "h100", "RTX3090", "NVIDIA GeForce RTX 3090". An RTX A1000 is no A100.
 *
 * Returns its traits; NULL for an unknown kind.
 */
const struct gpu_traits *gpu_traits_find(const char *kind);

/* Returns the traits to assume for an unknown kind: an A100's. The caller adds a note to the
 * estimate. */
const struct gpu_traits *gpu_traits_assumed(void);

enum { GPU_TRAITS_NAMES_SIZE = 256 };

/* Writes the names of the kinds, comma-separated. Returns `buffer`, cut at its size. */
const char *gpu_traits_names(char *buffer, size_t size);

#endif
