/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of GPUs that a task names, compared with the names of GPUs. */
#ifndef COLLOC_CORE_KIND_MATCH_H
#define COLLOC_CORE_KIND_MATCH_H

#include <stdbool.h>

/*
 * Is a GPU of one of the kinds?
 *
 * kinds: comma-separated, in upper or lower case: "A100", "a100-80gb,H100"; NULL or "": every GPU
 *        is
 * name:  of the GPU, as the driver reports it: "NVIDIA A100-SXM4-80GB"
 */
bool kind_match_any(const char *kinds, const char *name);

/* The same of a list that may also name single GPUs: "@GPU-8d3c...,@GPU-91aa...". */
bool kind_match_gpu(const char *kinds, const char *name, const char *uuid);

/* Does the list name single GPUs? */
bool kind_names_gpus(const char *kinds);

/* Are two such lists written alike? */
bool kind_match_same(const char *a, const char *b);

#endif
