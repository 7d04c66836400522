/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc replay`: repeats recorded scheduler inputs and compares the decisions (src/replay).
 *
 * It needs no daemon and no GPU. A recording of a production system shows with that whether a newer
 * version would have decided otherwise, and where first. Exit status 1 means a different decision,
 * 2 a file that is no recording.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/print.h"
#include "policy/policies.h"
#include "replay/replay_inputs.h"

static void print_result(const struct replay_result *result)
{
    printf("%lld inputs (%lld samples) of %lld start%s of the daemon, %lld decisions, %s\n",
        (long long)result->inputs, (long long)result->samples, (long long)result->starts,
        result->starts == 1 ? "" : "s", (long long)result->decisions,
        *result->difference ? "then a different decision" : "identical");
    if (result->is_cut)
        puts("the last line is incomplete because the daemon was killed; it is ignored");
    if (*result->difference) {
        print_safe(stdout, result->difference);
        putchar('\n');
    }
}

static void print_result_json(const struct replay_result *result)
{
    json_t *object = json_pack("{s:b, s:I, s:I, s:I, s:I, s:b, s:s}", "identical",
        !*result->difference, "starts", (json_int_t)result->starts, "inputs",
        (json_int_t)result->inputs, "samples", (json_int_t)result->samples, "decisions",
        (json_int_t)result->decisions, "cut", result->is_cut, "difference", result->difference);
    print_json(object);
    json_decref(object);
}

static int run(const struct invocation *invocation)
{
    const char *path = invocation->operands[0];
    struct replay_result result;
    struct fault fault = {0};
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    int r = in ? replay_inputs(in, policy_find, &fault, &result)
               : fault_set(&fault, errno, "%s", strerror(errno));
    if (in && in != stdin)
        fclose(in);
    if (r < 0) {
        print_error("%s: %s", path, fault.text);
        return EXIT_USAGE;
    }
    (invocation->common[COMMON_JSON].number ? print_result_json : print_result)(&result);
    return r == REPLAY_DIFFERS ? EXIT_REFUSED : EXIT_OK;
}

const struct command command_replay = {
    .name = "replay",
    .usage = "[OPTION...] FILE",
    .summary = "repeat recorded scheduler inputs and compare the decisions",
    .description = "FILE is a recording of collocd (setting record-inputs): every event, sample "
                   "and decision. The events and samples are given to the scheduler of this "
                   "version with their recorded times, and each decision is compared with the "
                   "recorded one, bit for bit. At the first difference the command prints it "
                   "and exits with status 1.",
    .operand = OPERAND_FILE,
    .min_operands = 1,
    .max_operands = 1,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
