/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use of the GPUs in a period, by user, project or GPU: `colloc report`.
 *
 * A GPU hour is an hour of one GPU. Two tasks that share a GPU for an hour hold two GPU hours
 * together, and occupy one: sharing saved the other, and each task has half of that.
 */
#ifndef COLLOC_CLI_USAGE_REPORT_H
#define COLLOC_CLI_USAGE_REPORT_H

#include <jansson.h>
#include <stdbool.h>

struct gpu_kinds;

struct report_query {
    double from_s, to_s; /* seconds since 1970; the report is of [from_s, to_s) */
    enum report_key { REPORT_BY_USER, REPORT_BY_PROJECT, REPORT_BY_GPU, REPORT_BY_TASK } by;
    const json_t *tasks; /* TASK objects (docs/protocol.md): those that ended in the period or
                               after it, and those that run */
    const json_t *gpus;  /* GPU objects */
    const json_t *users; /* of GET /v1/share: which user is in which project; may be NULL */
    const struct gpu_kinds *kinds; /* for the energy of the ledger; NULL: not known */
    bool is_ledger;                /* print that, not the use */
    double co2_g_per_kwh;
};

/*
 * What sharing saved or cost, against tasks that run alone on their GPUs, in the same order: the
 * ledger (docs/ledger.md). `alone_h` is what the held hours would take then, as far as their speed
 * is known; `occupied_h` what they took, an hour of n tasks counting 1/n for each.
 */
struct ledger_sums {
    double held_h, shared_h;       /* with GPUs; and of them with others that computed there */
    double measured_h, unknown_h;  /* of the shared hours, by how their speed is known */
    double alone_h, low_h, high_h; /* GPU hours: most likely, and bounds */
    double occupied_h;
    int64_t n_ended; /* tasks whose end in that case is known */
    double sooner_h; /* hours that they ended sooner than then, GPUs not counted */
    double energy_j; /* that GPUs would have drawn more, awake instead of idle */
    double energy_unknown_h;
};

/* Hours are GPU hours. Missing values of a record (activity, energy) are not counted as 0: the
 * hours without them are counted instead. */
struct report_row {
    char *name; /* of a user, project or GPU; NULL: of all */
    int64_t tasks, attempts;
    double held_h;
    double used_h;     /* SM activity over time */
    double idle_h;     /* held by tasks with a mean SM activity under REPORT_IDLE */
    double repeated_h; /* of attempts after which the task was run again */
    double saved_h;    /* by sharing: held, but not occupied */
    double energy_j;
    double unknown_activity_h, unknown_energy_h;
    struct ledger_sums ledger;
    double jct_s, ideal_jct_s; /* of tasks that ended in the period; the latter: alone on the share
                                  of the GPUs. 0: none did */
};

#define REPORT_IDLE 0.01 /* chosen: below, a GPU is held, not used */

struct report {
    struct report_row *rows; /* sorted by name */
    int n;
    size_t capacity;
    struct report_row total;
    int n_gpus;    /* that take tasks */
    double free_h; /* GPU hours of the period in which no task held the GPU */
};

/* Makes the report. Returns 0 or -ENOMEM; report_fini must follow in both cases. */
int report_make(const struct report_query *query, struct report *ret_report);
void report_fini(struct report *report);

/* GPU hours that sharing saved; negative: it cost so much more than tasks alone. */
double report_saved_h(const struct ledger_sums *sums);

/* Mean completion time relative to that of the user's tasks alone on an equal share of the GPUs
 * (docs/fair-share.md); 0: no task has ended. */
double report_fairness(const struct report_row *row);

/* Returns grams of CO2 for the energy. */
double report_co2_g(const struct report_query *query, const struct report_row *row);

#endif
