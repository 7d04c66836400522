/* SPDX-License-Identifier: Apache-2.0 */
/* The processes on a GPU: NVML's compute, graphics and MPS lists merged, each pid once. */
#ifndef COLLOC_GPU_PROCESSES_H
#define COLLOC_GPU_PROCESSES_H

#include "gpu/gpu.h"
#include "gpu/nvml.h"

/* Memory for one of NVML's lists; only grows. Start with {0}, end with process_buffer_fini. */
struct process_buffer {
    char *raw;
    unsigned capacity; /* entries of nvml->process_stride bytes */
};

/* Releases the driver's list. */
void process_buffer_fini(struct process_buffer *buffer);

/*
 * The last merged list, for low-overhead mode: the three queries are most of the cost of a sample
 * on an H200 (0.4 of 0.6 ms of processor time), and while the memory in use stays the same to the
 * byte hardly any process comes or goes. Owns its items; start with {0}, end with
 * process_cache_fini.
 */
struct process_cache {
    struct gpu_process *item;
    size_t count, capacity;
    bool valid;
    bool at_rest;      /* memory in use was the same one sample earlier, so that processes that were
                   * ending have left the lists */
    double used_bytes; /* in use on the GPU at the last query */
    int64_t next_query_us;
    int64_t next_names_us; /* when the processes' names are read again */
};

/* Releases the merged list. */
void process_cache_fini(struct process_cache *cache);

/* Stores the processes of the sample, with their sm_utilisation, as the last list. */
void process_cache_store(struct process_cache *cache, const struct gpu_sample *sample);

/*
 * Fills sample->processes. They are valid when the compute list was read and the other two were
 * read or do not exist on this GPU.
 *
 * may_repeat: use the cached list when it is less than a second old and memory in use is unchanged
 * sample:     its mem_used_bytes is filled in already
 *
 * Returns NVML's result of the list that failed, NVML_OK, or NVML_UNKNOWN without memory.
 */
int process_list_query(const struct nvml *nvml, nvml_device device, struct process_buffer *buffer,
    bool may_repeat, struct process_cache *cache, struct gpu_sample *sample);

#endif
