/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a scenario as data. scenario.h describes the language. */
#ifndef COLLOC_SIM_SCENARIO_PARSER_H
#define COLLOC_SIM_SCENARIO_PARSER_H

#include "base/fault.h"
#include "base/text.h"
#include "core/core.h"

/* What a GPU of a scenario draws and moves over PCIe: from idle to its limit, with its activity. */
#define SCENARIO_IDLE_W     50
#define SCENARIO_LIMIT_W    400
#define SCENARIO_SPEED_MAX  1000000 /* as the event log has it */
#define SCENARIO_PCIE_BYTES 20e9

enum {
    SCENARIO_TASKS_MAX = 256,
    SCENARIO_GPUS_MAX = 256,
    SCENARIO_INPUTS_MAX = 512,
    SCENARIO_AFTER_MAX = 4,
    SCENARIO_RELOADS_MAX = 8,
};

/* A task: its behaviour, and what its submission requests. */
struct scenario_task {
    char name[32];
    int64_t takes_bytes, sleeps_us, rise_us, runs_us;
    double smact;
    int64_t latency_us; /* p99 of a service that computes alone; 0: it answers no requests */
    double slows; /* of a promised task: how much longer it takes for each GPU's worth of activity
                     beside it, as measured; 0: it is not measured */
    int64_t step_us; /* of such a task alone, whose speed alone no earlier run has shown; 0: one
                        has */
    int exit_code;
    int context_refusals; /* how often the driver refuses to take its context off its GPU */
    bool deaf, unlaunchable, unsuspendable, unanswered, unhooked, uncarried, are_ranks;
    int uid;
    bool held;
    struct task_request request;
    char gpu_kind[TASK_GPU_KIND_SIZE]; /* of the request; "": any */
    struct dependency after[SCENARIO_AFTER_MAX];
};

/* Bits: what is wrong with a GPU, or with the readings of it. */
enum scenario_gpu_trouble {
    GPU_TROUBLE_LOST = 1 << 0,
    GPU_TROUBLE_FAULTY = 1 << 1,
    GPU_TROUBLE_SILENT = 1 << 2,
    GPU_TROUBLE_BLIND = 1 << 3,
    GPU_TROUBLE_NO_SMACT = 1 << 4,
    GPU_TROUBLE_NO_PROCESS_LIST = 1 << 5,
    GPU_TROUBLE_HIDES_PROCESSES = 1 << 6,
    GPU_TROUBLE_ALL = (1 << 7) - 1
};

/* An input of the scenario. */
struct scenario_input {
    enum { INPUT_EVENT, INPUT_WHY, INPUT_GPU, INPUT_RELOAD } kind;
    int64_t time_us;
    struct event event; /* INPUT_EVENT: for the core; INPUT_WHY: only its task */
    int to_gpu;         /* of EVENT_MOVE */
    struct {            /* INPUT_GPU */
        int gpu;
        unsigned sets, clears; /* troubles */
        bool sets_external;
        int64_t external_bytes; /* memory of external processes */
    } change;
    int reload; /* INPUT_RELOAD: index of its settings */
};

struct scenario {
    struct gpu_identity gpus[SCENARIO_GPUS_MAX];
    int n_gpus;
    int n_nodes; /* beside node 0, which has the GPUs of `gpus` and `mig` */
    struct core_settings settings;
    struct core_settings reloads[SCENARIO_RELOADS_MAX]; /* all settings from a time on */
    int n_reloads;
    struct scenario_task tasks[SCENARIO_TASKS_MAX + 1]; /* by id, from 1 on */
    int n_tasks;
    struct scenario_input inputs[SCENARIO_INPUTS_MAX]; /* in the order of the text */
    int n_inputs;
    int64_t run_us; /* 0: until all is done */
};

/*
 * Parses the text into `scenario`, which is all zero.
 *
 * Returns 0, or -EINVAL with the file's name and the line in the fault.
 */
int scenario_parse(
    struct scenario *scenario, struct span text, const char *file_name, struct fault *fault);

#endif
