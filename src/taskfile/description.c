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
        .field = "name", .help = "name of the task, for people; default: the script's file name"},
    [TASK_GPUS] = {.name = "gpus", .letter = 'G', .kind = OPTION_INTEGER, .argument = "N", .min = 1, .max = 1024,
        .field = "gpus", .help = "how many GPUs, all or none; default: 1"},
    [TASK_POLICY] = {.name = "policy", .kind = OPTION_TEXT, .argument = "POLICY", .choice_at = policy_name_at,
        .field = "policy", .help = "placement policy for this task: {choices}; default: the daemon's"},
    [TASK_EXCLUSIVE] = {.name = "exclusive", .kind = OPTION_FLAG,
        .field = "exclusive", .help = "share its GPUs with nobody as long as it runs"},
    [TASK_SHARING] = {.name = "sharing", .kind = OPTION_CHOICE, .argument = "HOW", .choices = sharings,
        .field = "sharing", .help = "how it shares a GPU with others: streams, mps, auto (colloc picks, and says why) or default"},
    [TASK_THREADS] = {.name = "thread-percentage", .kind = OPTION_INTEGER, .argument = "N", .min = 1, .max = 100,
        .field = "thread_percentage", .help = "by MPS: how much of the GPU's SMs it may use; default: all, or as colloc sees fit"},
    [TASK_TIME] = {.name = "time", .letter = 't', .kind = OPTION_DURATION, .argument = "TIME",
        .min = SECOND_US, .max = 3650 * DAY_US,
        .field = "time_limit_s", .help = "end it after this long in execution: 90s, 8h30m, MINUTES, HH:MM:SS, D-HH:MM:SS"},
    [TASK_EXPECT] = {.name = "expect", .kind = OPTION_DURATION, .argument = "TIME", .min = SECOND_US, .max = 3650 * DAY_US,
        .field = "expected_s", .help = "how long it takes on GPUs of its own, as you know it: lets short tasks be backfilled"},
    [TASK_MEMORY] = {.name = "memory", .kind = OPTION_SIZE, .argument = "SIZE",
        .min = MIB, .max = 1024 * 1024 * GIB, .needs_unit = true,
        .field = "memory_mib", .help = "GPU memory it takes on each GPU, as you know it: 12GiB or 12G (2^30 bytes each), 12GB (10^9), 900MiB"},
    [TASK_HOST_MEMORY] = {.name = "host-memory", .alias = "mem", .kind = OPTION_SIZE, .argument = "SIZE",
        .min = MIB, .max = 1024 * 1024 * GIB,
        .field = "host_memory_mib", .help = "main memory of the server that it takes, also --mem as in Slurm, where a bare number is MiB; recorded, not enforced yet"},
    [TASK_SMACT] = {.name = "smact", .kind = OPTION_SHARE, .argument = "X",
        .field = "smact", .help = "SM activity of each of its GPUs when it is alone there, as you know it: 0 to 1"},
    [TASK_ESTIMATOR] = {.name = "estimator", .kind = OPTION_TEXT, .argument = "NAME",
        .field = "estimator", .help = "which estimator says how much GPU memory it needs; default: declared with --memory, else the daemon's"},
    [TASK_SUMMARY] = {.name = "summary", .alias = "model", .kind = OPTION_FILE, .argument = "FILE",
        .field = "summary", .help = "model summary as torchsummary, torchinfo, print(model) or Keras wrote it, or colloc_export's JSON"},
    [TASK_BATCH] = {.name = "batch", .alias = "batch-size", .kind = OPTION_INTEGER, .argument = "N",
        .min = 1, .max = 10000000,
        .field = "batch", .help = "batch size on each GPU"},
    [TASK_OPTIMIZER] = {.name = "optimizer", .kind = OPTION_TEXT, .argument = "NAME", .choices = optimizer_names,
        .field = "optimizer", .help = "optimizer of the training: sgd, momentum, adam, adamw, rmsprop or adagrad; another is taken for adam"},
    [TASK_PRECISION] = {.name = "precision", .kind = OPTION_CHOICE, .argument = "NAME", .choices = precision_names,
        .canonical = precision_canonical, .field = "precision",
        .help = "numeric precision of the training: fp32, tf32, bf16, fp16, amp or fp8; bf16, fp16 and fp8 are taken as autocast over weights in fp32"},
    [TASK_SEQ] = {.name = "seq", .alias = "seq-len", .kind = OPTION_INTEGER, .argument = "N", .min = 1, .max = 10000000,
        .field = "seq", .help = "sequence length"},
    [TASK_HOLD] = {.name = "hold", .letter = 'H', .kind = OPTION_FLAG,
        .field = "hold", .help = "queue it held, until `colloc release`"},
    [TASK_OUTPUT] = {.name = "output", .letter = 'o', .kind = OPTION_FILE, .argument = "FILE",
        .field = "output", .help = "file for its output, %j is its id; default: colloc-%j.out in its folder"},
    [TASK_ERROR] = {.name = "error", .letter = 'e', .kind = OPTION_FILE, .argument = "FILE",
        .field = "error", .help = "file for its standard error, %j is its id; default: where its output goes"},
    [TASK_GRACE] = {.name = "grace", .kind = OPTION_DURATION, .argument = "TIME", .min = 0, .max = DAY_US,
        .field = "grace_s", .help = "between SIGTERM and SIGKILL when it is cancelled or out of time; default: 30s"},
};
/* clang-format on */

void task_description_fini(struct task_description *description)
{
    option_values_fini(description->values, TASK_OPTIONS);
    free(description->script);
    free(description->summary);
    *description = (struct task_description){0};
}
