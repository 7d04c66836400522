/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collocation experiments, one group of trainings after the other: places them, runs them, looks at
 * the GPU meanwhile, and keeps what was seen in a journal.
 */
#ifndef COLLOC_BENCH_BENCH_H
#define COLLOC_BENCH_BENCH_H

#include "base/fault.h"
#include "bench/crew.h"
#include "bench/experiment.h"
#include "bench/journal.h"

/* For who shows how far it is. */
struct bench_progress {
    size_t done,
        all; /* groups times repeats; `done` counts those that were in the journal already */
    const struct bench_group *group;
    int repeat, repeats;
    double total_s;    /* the group took; not valid before it has ended */
    double left_s;     /* a guess; negative when nothing can be said yet */
    int failed;        /* tasks of it that did not end well */
    bool has_result;   /* all of them ended well, or ran out of GPU memory */
    char failure[400]; /* of the first that did not end well; rather of one without a result */
    const char *skip;  /* why the group was left out, or NULL */
};

struct bench_settings {
    const struct experiment *experiment;
    int repeats;
    int64_t period_us, limit_us;
    struct client *client; /* the trainings are tasks of this daemon; NULL: processes of ours */
    crew_submit *submit;
    void (*on_begin)(void *context, const struct bench_progress *progress);
    void (*on_end)(void *context, const struct bench_progress *progress);
    void *context; /* of all three */
};

/* Named answers of bench_run. */
enum bench_answer {
    BENCH_INTERRUPTED = 1, /* by a signal: what was measured is kept */
    BENCH_INCOMPLETE,      /* groups were left out, or took too long */
    BENCH_FAILED, /* a training of a group failed for another reason than GPU memory: not done */
};

/* 0 when every group is in the journal, an answer, or a fault. SIGINT, SIGTERM and SIGHUP end it.
 */
int bench_run(const struct bench_settings *settings, struct journal *journal, struct fault *fault);

#endif
