/* SPDX-License-Identifier: Apache-2.0 */
/* A small NVML for unit tests: the test writes what the GPUs shall say and reads back what was
 * asked. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <stdbool.h>
#include <stdint.h>

enum { FAKE_GPUS_MAX = 4, FAKE_PROCESSES_MAX = 256 };

struct fake_processes {
    int result;
    unsigned count, asked;
    struct {
        uint32_t pid;
        uint64_t used_bytes;
    } item[FAKE_PROCESSES_MAX];
};

struct fake_gpu {
    const char *uuid, *name;
    int handle_result; /* of nvmlDeviceGetHandleByIndex */
    int result;        /* of every query, unless it has its own below */
    int memory_result, power_result, energy_result, temperature_result, attributes_result;

    uint64_t mem_total, mem_reserved, mem_used;
    unsigned utilisation, milliwatt, compute_mode;
    unsigned long long millijoule;
    unsigned energy_cost_us; /* processor time that the energy counter takes */
    unsigned energy_asked;
    unsigned temperature_asked; /* it rises by a degree each time */
    struct fake_processes compute, graphics, mps;
    struct {
        uint32_t pid;
        uint64_t time_us;
        uint32_t sm;
    } time[8]; /* of processes; as many as have a pid */
    unsigned time_asked, utilisation_asked, power_asked;
    unsigned time_cost_us; /* processor time that asking for the processes' takes */

    bool gpm;
    int gpm_result;
    double busy_us; /* SM counter of GPM: the caller raises it with fake_nvml.time_us */

    bool mig_capable, mig_on;
    unsigned most_instances; /* that it can be divided into */
    bool is_instance;
    unsigned parent, gpu_instance, compute_slices; /* 0: all of its GPU instance */
};

struct fake_nvml {
    int init_result;
    unsigned cards; /* gpu[0..cards): cards; behind them instances */
    struct fake_gpu gpu[FAKE_GPUS_MAX];
    double time_us;        /* clock of the GPM counters */
    unsigned grow_between; /* processes that appear between two calls for a list, up to
                              FAKE_PROCESSES_MAX */
    unsigned gpm_samples_alive;
    unsigned gpm_computed;
    unsigned gpm_cost_us; /* processor time that working out takes */
    int inits;
};

#endif
