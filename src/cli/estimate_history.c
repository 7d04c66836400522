/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors of the daemon's estimates so far.
 *
 *     47 tasks, median error 0.8 %, none above P99
 *
 * The estimate without a safety margin is compared with the measured peak; `colloc report
 * --estimates` compares the reserved memory. Declared memory is no estimate.
 */
#include "cli/estimate_history.h"

#include <math.h>
#include <stdio.h>

#include "cli/estimate_report.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/session_once.h"

static void print_line(const struct estimate_row *total)
{
    if (total->n == 0) {
        puts("No task completed whose estimate and peak are known.");
        return;
    }
    printf("%zu task%s, median error %.1f %%, ", total->n, total->n == 1 ? "" : "s",
        100 * total->median);
    if (total->n_above_p99 == 0)
        puts("none above P99");
    else
        printf("%zu above P99\n", total->n_above_p99);
}

static void print_history_json(const struct estimate_row *total)
{
    json_t *object = json_pack("{s:I, s:o, s:o, s:I}", "tasks", (json_int_t)total->n,
        "median_error", total->n > 0 ? json_real(total->median) : json_null(), "p95_error",
        total->n > 0 ? json_real(total->p95) : json_null(), "above_p99",
        (json_int_t)total->n_above_p99);
    print_json(object);
    json_decref(object);
}

int estimate_history_print(const struct invocation *invocation)
{
    char path[160] = "/v1/tasks";
    json_t *reply;
    struct estimate_report report;
    query_add(path, sizeof path, "state", "all");
    query_add(path, sizeof path, "limit", "1000000");
    int code = session_get(invocation, path, &reply);
    if (code != EXIT_OK)
        return code;
    const json_t *tasks = json_object_get(reply, "tasks");
    if (estimate_report_make(tasks, "predicted_mib", -INFINITY, INFINITY, &report) < 0) {
        print_error("out of memory");
        code = EXIT_REFUSED;
    } else if (invocation->common[COMMON_JSON].number) {
        print_history_json(&report.total);
    } else {
        print_line(&report.total);
    }
    estimate_report_fini(&report);
    json_decref(reply);
    return code;
}
