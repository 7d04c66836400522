/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics that are stored over time, by kind of series. Positions are stored
 * (store/metric_db.h): new metrics come at the end of their kind.
 */
#ifndef COLLOC_DAEMON_METRIC_NAMES_H
#define COLLOC_DAEMON_METRIC_NAMES_H

#include <stdbool.h>

#include "store/metric_db.h"

enum metric_kind {
    METRICS_OF_GPU,       /* a GPU's own */
    METRICS_OF_TASK,      /* a task's part on one GPU */
    METRICS_OF_PROCESSES, /* what a task's processes use of the host */
    METRIC_KINDS
};

enum gpu_metric {
    GPU_METRIC_MEM_USED_MIB,
    GPU_METRIC_EXTERNAL_MEM_MIB, /* of processes that belong to no task */
    GPU_METRIC_UTILISATION,
    GPU_METRIC_SMACT,
    GPU_METRIC_SMOCC,
    GPU_METRIC_DRAM_ACTIVE,
    GPU_METRIC_POWER_W,
    GPU_METRIC_TEMPERATURE_C,
    GPU_METRIC_PCIE_TX_MIB_S,
    GPU_METRIC_PCIE_RX_MIB_S,
    GPU_METRIC_GRACT,
    GPU_METRIC_SM_CLOCK_MHZ,
    GPU_METRIC_TASKS,
    GPU_METRIC_FOREIGN, /* processes that belong to no task */
    GPU_METRICS
};

/* The GPU reports occupancy, bandwidth and PCIe traffic as a whole: a task's are known only while
 * no other process computes there. */
enum task_metric {
    TASK_METRIC_MEM_USED_MIB,
    TASK_METRIC_SMACT,
    TASK_METRIC_SMOCC,
    TASK_METRIC_DRAM_ACTIVE,
    TASK_METRIC_POWER_W,
    TASK_METRIC_PCIE_TX_MIB_S,
    TASK_METRIC_PCIE_RX_MIB_S,
    TASK_METRICS
};

enum process_metric {
    PROCESS_METRIC_CPU_CORES,
    PROCESS_METRIC_HOST_MEM_MIB,
    PROCESS_METRIC_DISK_READ_MIB_S,
    PROCESS_METRIC_DISK_WRITE_MIB_S,
    PROCESS_METRIC_NET_RX_MIB_S,
    PROCESS_METRIC_NET_TX_MIB_S,
    PROCESS_METRIC_STEPS_PER_S, /* of its training (docs/steps.md) */
    PROCESS_METRICS
};

/* Returns whether a series is of a GPU, of a task on one, or of a task's processes. */
enum metric_kind metric_kind_of(const struct metric_key *key);

/* Returns how many metrics a sample of this kind has. */
int metric_count(enum metric_kind kind);

/* The protocol's name of a metric; `metric` is below metric_count. */
const char *metric_name(enum metric_kind kind, int metric);

/* Is it in a comma-separated list of names? "" has all. */
bool metric_is_listed(enum metric_kind kind, int metric, const char *list);

/* Finds the first name of a list that no kind has. Returns it, borrowed and not ended by NUL, with
 * its length; NULL when all are known. */
const char *metric_find_unknown(const char *list, size_t *ret_length);

#endif
