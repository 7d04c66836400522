/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which options a task has: the rows of task_options.def as a table. A program can be linked with
 * another table: tests/unit/extend compiles this file with MORE_TASK_OPTIONS, a file of more rows.
 */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "policy/policies.h"
#include "taskfile/description.h"
#include "taskfile/torch_steps.h"
#include "training/optimizer.h"
#include "training/parallel.h"
#include "training/precision.h"

#define MOMENT_MAX_US (INT64_C(4102444800) * SECOND_US) /* chosen: the year 2100 */

static const char *const sharings[] = {"streams", "mps", "auto", "default", NULL};
static const char *const priorities[] = {"low", "normal", "high", "urgent", NULL};
static const char *const profilers[] = {"nsys", "ncu", "torch", NULL};
static const char *const yes_no_default[] = {"yes", "no", "default", NULL};

/* "0.5", as other queues share a GPU. */
static const char *part_of_gpu(const char *text)
{
    bool is_fraction = *text && !text[strspn(text, "0123456789.")] && strchr(text, '.');
    return is_fraction ? "not a whole number; tasks share GPUs without it: write --gpus=1, and "
                         "--memory=12GiB if you know how much of it the task needs"
                       : NULL;
}

const struct option_spec task_options[] = {
#define TASK_OPTION(id, ...) {__VA_ARGS__},
#include "taskfile/task_options.def"
#ifdef MORE_TASK_OPTIONS
#include MORE_TASK_OPTIONS
#endif
#undef TASK_OPTION
};

const size_t task_option_count = ARRAY_SIZE(task_options);

static_assert(ARRAY_SIZE(task_options) <= TASK_OPTION_MAX, "more options than TASK_OPTION_MAX");
