/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc metric NAME STEP VALUE`: a task reports a metric, for the stop rule of its array.
 *
 *     python train.py --epochs 1; colloc metric val_loss 1 "$(cat val_loss)"
 *
 *     colloc metric --from=tensorboard:runs/7 --rule=asha:metric=val_loss,min,rung=3 --until=PID
 *
 * The second form reads and reports until a process has ended. --metric-from starts it beside the
 * task's program (exec/metric_reader.c). Both run in the task, whose id is in COLLOC_TASK_ID. A
 * value that is no finite number is the worst.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/metric_follow.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/values.h"
#include "core/stop_spec.h"

enum { METRIC_TASK, METRIC_FROM, METRIC_RULE, METRIC_SINCE, METRIC_UNTIL, METRIC_TAGGED };

static const struct option_spec options[] = {
    [METRIC_TASK] = OPTION("task", TEXT, "ID",
        .help = "the task that reports; default: the one in which the command runs "
                "(COLLOC_TASK_ID)"),
    [METRIC_FROM] = OPTION("from", TEXT, "SOURCE",
        .help = "read the values from tensorboard:FOLDER, mlflow:FOLDER or output:PATTERN, as "
                "--metric-from of `colloc submit`, and report them while the task runs"),
    [METRIC_RULE] = OPTION("rule", TEXT, "RULE",
        .help = "with --from: the --stop of the task's array, which names the metric"),
    [METRIC_SINCE] = OPTION("since", INTEGER, "TIME", .min = 0, .max = INT64_MAX,
        .help = "with --from of files: the start of the task's attempt, in seconds since 1970; "
                "older values are of an earlier attempt; default: now"),
    [METRIC_UNTIL] = OPTION("until", INTEGER, "PID", .min = 1, .max = INT_MAX,
        .help = "with --from: until this process has ended; default: while the task runs"),
    [METRIC_TAGGED] = FLAG_OPTION("tagged",
        .help = "with --from=mlflow: only runs whose tag colloc.task is the task's id, for a store "
                "that several tasks use"),
};

/* Returns false for a text that is no number; NaN and infinities are numbers. */
static bool read_value(const char *text, double *ret_value)
{
    char *end;
    errno = 0;
    *ret_value = strtod(text, &end);
    return end != text && *end == '\0';
}

static int report_value(const struct invocation *invocation, struct client *client, int64_t id)
{
    const char *const *words = (const char *const *)invocation->operands;
    int64_t step;
    double value;
    if (parse_int64(words[1], 0, STOP_STEP_MAX, &step) < 0 || !read_value(words[2], &value)) {
        print_error("metric: %s %s: give a step (a whole number from 0 on) and a number", words[1],
            words[2]);
        return EXIT_USAGE;
    }
    return metric_report(client, id, words[0], step, value);
}

static int follow_source(const struct invocation *invocation, int64_t id)
{
    const struct option_value *values = invocation->values;
    struct fault fault = {0};
    struct halving_rule rule;
    struct metric_follow follow = {.rule = &rule,
        .task = id,
        .since_s = option_number_or(&values[METRIC_SINCE], clock_wall_us() / SECOND_US),
        .until = (pid_t)values[METRIC_UNTIL].number,
        .is_tagged = values[METRIC_TAGGED].number};
    int r = invocation->operand_count || !values[METRIC_RULE].set
                ? fault_set(&fault, EINVAL, "metric: --from needs --rule, and no other words")
                : stop_spec_parse(values[METRIC_RULE].text, &fault, &rule);
    if (r == 0)
        r = metric_source_parse(values[METRIC_FROM].text, &fault, &follow.source);
    if (r < 0) {
        print_error("%s", fault.text);
        return EXIT_USAGE;
    }
    return metric_follow_run(&follow);
}

static int run(const struct invocation *invocation)
{
    const struct option_value *task = &invocation->values[METRIC_TASK];
    const char *id_text = task->set ? task->text : getenv("COLLOC_TASK_ID");
    bool follows = invocation->values[METRIC_FROM].set;
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    int64_t id;
    if (!follows && invocation->operand_count != 3) {
        print_error("metric: give NAME STEP VALUE, or --from");
        return EXIT_USAGE;
    }
    if (!id_text) {
        print_error("metric: no task reports here: give --task=ID");
        return EXIT_USAGE;
    }
    if (parse_task_id(id_text, &id) != EXIT_OK)
        return EXIT_USAGE;
    if (follows)
        return follow_source(invocation, id);
    int code = session_open(invocation, &client);
    return code == EXIT_OK ? report_value(invocation, client, id) : code;
}

const struct command command_metric = {
    .name = "metric",
    .usage = "[OPTION...] NAME STEP VALUE | --from=SOURCE --rule=RULE",
    .summary = "report a metric of a task, for the early stop of its array",
    .description =
        "A task of an array that was submitted with --stop=asha:metric=NAME,... reports the metric "
        "at each step (an epoch, a number of batches). At the steps of the rule it is compared with "
        "the other tasks of its array, and stopped if it is not among the best.\n\n"
        "--metric-from of `colloc submit` starts this command with --from beside the task.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_NONE,
    .min_operands = 0,
    .max_operands = 3,
    .run = run,
};
