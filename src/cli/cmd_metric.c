/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc metric NAME STEP VALUE`: a task reports a metric, for the stop rule of its array.
 *
 *     python train.py --epochs 1; colloc metric val_loss 1 "$(cat val_loss)"
 *
 * It runs in the task, whose id is in COLLOC_TASK_ID. A value that is no finite number is the
 * worst.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/values.h"
#include "core/halving.h"

enum { METRIC_TASK };

static const struct option_spec options[] = {
    [METRIC_TASK] = {.name = "task",
        .kind = OPTION_TEXT,
        .argument = "ID",
        .help = "the task that reports; default: the one in which the command runs "
                "(COLLOC_TASK_ID)"},
};

/* Returns false for a text that is no number; NaN and infinities are numbers. */
static bool read_value(const char *text, double *ret_value)
{
    char *end;
    errno = 0;
    *ret_value = strtod(text, &end);
    return end != text && *end == '\0';
}

static int run(const struct invocation *invocation)
{
    const struct option_value *task = &invocation->values[METRIC_TASK];
    const char *id_text = task->set ? task->text : getenv("COLLOC_TASK_ID");
    const char *const *words = (const char *const *)invocation->operands;
    int64_t id, step;
    double value;
    char path[64];
    json_t *reply;
    if (!id_text) {
        print_error("metric: no task reports here: give --task=ID");
        return EXIT_USAGE;
    }
    if (parse_task_id(id_text, &id) != EXIT_OK)
        return EXIT_USAGE;
    if (parse_int64(words[1], 0, STOP_STEP_MAX, &step) < 0 || !read_value(words[2], &value)) {
        print_error("metric: %s %s: give a step (a whole number from 0 on) and a number", words[1],
            words[2]);
        return EXIT_USAGE;
    }
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/metric", id);
    json_t *body = json_pack("{s:s, s:I, s:o}", "name", words[0], "step", (json_int_t)step, "value",
        isfinite(value) ? json_real(value) : json_null());
    int code = session_post(invocation, path, body, &reply);
    if (code == EXIT_OK)
        json_decref(reply);
    return code;
}

const struct command command_metric = {
    .name = "metric",
    .usage = "[OPTION...] NAME STEP VALUE",
    .summary = "report a metric of a task, for the early stop of its array",
    .description =
        "A task of an array that was submitted with --stop=asha:metric=NAME,... reports the metric "
        "at each step (an epoch, a number of batches). At the steps of the rule it is compared with "
        "the other tasks of its array, and stopped if it is not among the best.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_NONE,
    .min_operands = 3,
    .max_operands = 3,
    .run = run,
};
