/* SPDX-License-Identifier: Apache-2.0 */
#include "taskfile/description.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "policy/policies.h"
#include "training/optimizer.h"
#include "training/precision.h"

#define DAY_US (86400 * SECOND_US)

static const char *const sharings[] = {"streams", "mps", "auto", "default", NULL};

/* clang-format off */
const struct option_spec task_options[TASK_OPTIONS] = {
    [TASK_NAME] = {.name = "name", .alias = "job-name", .letter = 'J', .kind = OPTION_TEXT, .argument = "NAME",
        .field = "name", .help = "name of the task, shown in tables; default: the script's file name"},
    [TASK_GPUS] = {.name = "gpus", .letter = 'G', .kind = OPTION_INTEGER, .argument = "N", .min = 1, .max = 1024,
        .field = "gpus", .help = "number of GPUs; the task starts when it can have all of them; default: 1"},
    [TASK_POLICY] = {.name = "policy", .kind = OPTION_TEXT, .argument = "POLICY", .choice_at = policy_name_at,
        .field = "policy", .help = "placement policy for this task: {choices}; default: the daemon's"},
    [TASK_EXCLUSIVE] = {.name = "exclusive", .kind = OPTION_FLAG,
        .field = "exclusive", .help = "run alone on its GPUs: no other task may share them"},
    [TASK_SHARING] = {.name = "sharing", .kind = OPTION_CHOICE, .argument = "HOW", .choices = sharings,
        .field = "sharing", .help = "how it shares a GPU with other tasks: streams (time-sliced), mps, auto (colloc chooses and reports why) or default (the daemon's setting); default: default"},
    [TASK_THREADS] = {.name = "thread-percentage", .kind = OPTION_INTEGER, .argument = "N", .min = 1, .max = 100,
        .field = "thread_percentage", .help = "with MPS: the share of the GPU's SMs it may use, in per cent; default: 100, or what --sharing=auto chooses"},
    [TASK_TIME] = {.name = "time", .letter = 't', .kind = OPTION_DURATION, .argument = "TIME",
        .min = SECOND_US, .max = 3650 * DAY_US,
        .field = "time_limit_s", .help = "time limit: end the task after this run time: 90s, 8h30m, MINUTES, HH:MM:SS, D-HH:MM:SS; default: no limit"},
    [TASK_EXPECT] = {.name = "expect", .kind = OPTION_DURATION, .argument = "TIME", .min = SECOND_US, .max = 3650 * DAY_US,
        .field = "expected_s", .help = "expected run time alone on its GPUs, in the forms of --time; lets the scheduler backfill short tasks; default: unknown"},
    [TASK_MEMORY] = {.name = "memory", .kind = OPTION_SIZE, .argument = "SIZE",
        .min = MIB, .max = 1024 * 1024 * GIB, .needs_unit = true,
        .field = "memory_mib", .help = "GPU memory requirement on each GPU: 12GiB or 12G (units of 2^30 bytes), 12GB (10^9), 900MiB; default: estimated"},
    [TASK_HOST_MEMORY] = {.name = "host-memory", .alias = "mem", .kind = OPTION_SIZE, .argument = "SIZE",
        .min = MIB, .max = 1024 * 1024 * GIB,
        .field = "host_memory_mib", .help = "main memory of the server that it needs, such as 16GiB; a bare number is MiB, as for Slurm's --mem; recorded, not enforced"},
    [TASK_SMACT] = {.name = "smact", .kind = OPTION_SHARE, .argument = "X",
        .field = "smact", .help = "SM activity of each of its GPUs when it runs alone there, from 0 to 1; default: estimated"},
    [TASK_ESTIMATOR] = {.name = "estimator", .kind = OPTION_TEXT, .argument = "NAME",
        .field = "estimator", .help = "estimator of its GPU memory requirement; default: declared with --memory, otherwise the daemon's setting"},
    [TASK_SUMMARY] = {.name = "summary", .alias = "model", .kind = OPTION_FILE, .argument = "FILE",
        .field = "summary", .help = "file with a model summary: the output of torchsummary, torchinfo, print(model) or Keras, or the JSON of colloc-export"},
    [TASK_BATCH] = {.name = "batch", .alias = "batch-size", .kind = OPTION_INTEGER, .argument = "N",
        .min = 1, .max = 10000000,
        .field = "batch", .help = "batch size on each GPU"},
    [TASK_OPTIMIZER] = {.name = "optimizer", .kind = OPTION_TEXT, .argument = "NAME", .choices = optimizer_names,
        .field = "optimizer", .help = "optimizer of the training: sgd, momentum, adam, adamw, rmsprop or adagrad; any other name is estimated as adam"},
    [TASK_PRECISION] = {.name = "precision", .kind = OPTION_CHOICE, .argument = "NAME", .choices = precision_names,
        .canonical = precision_canonical, .field = "precision",
        .help = "numeric precision of the training: fp32, tf32, bf16, fp16, amp or fp8; bf16, fp16 and fp8 are estimated as autocast over fp32 weights"},
    [TASK_SEQ] = {.name = "seq", .alias = "seq-len", .kind = OPTION_INTEGER, .argument = "N", .min = 1, .max = 10000000,
        .field = "seq", .help = "sequence length in tokens"},
    [TASK_HOLD] = {.name = "hold", .letter = 'H', .kind = OPTION_FLAG,
        .field = "hold", .help = "hold the task in the queue until `colloc release`"},
    [TASK_OUTPUT] = {.name = "output", .letter = 'o', .kind = OPTION_FILE, .argument = "FILE",
        .field = "output", .help = "file for its output; %j is replaced by the task's id; default: colloc-%j.out in its folder"},
    [TASK_ERROR] = {.name = "error", .letter = 'e', .kind = OPTION_FILE, .argument = "FILE",
        .field = "error", .help = "file for its standard error; %j is replaced by the task's id; default: the file of its output"},
    [TASK_GRACE] = {.name = "grace", .kind = OPTION_DURATION, .argument = "TIME", .min = 0, .max = DAY_US,
        .field = "grace_s", .help = "time between SIGTERM and SIGKILL when it is cancelled or reaches its time limit; default: 30s"},
};
/* clang-format on */

void task_description_fini(struct task_description *description)
{
    option_values_fini(description->values, TASK_OPTIONS);
    free(description->script);
    free(description->summary);
    *description = (struct task_description){0};
}
