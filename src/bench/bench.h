/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs collocation experiments: one group of trainings after the other is placed on GPUs, run and
 * sampled, and its measurements are added to a journal.
 */
#ifndef COLLOC_BENCH_BENCH_H
#define COLLOC_BENCH_BENCH_H

#include "base/fault.h"
#include "bench/experiment.h"
#include "bench/journal.h"
#include "bench/trainer_group.h"

/* What bench_run reports about its progress. */
struct bench_progress {
    size_t done, all; /* groups times repeats; those that are in the journal already are done */
    const struct bench_group *group;
    int repeat, repeats;
    size_t number;                         /* of the group, from 1, as in the names of its files */
    double total_s;                        /* the group's run time; only for on_end */
    const struct training_result *results; /* of each task; only for on_end, NULL: it was not run */
    char (*run_ids)[BENCH_RUN_ID_SIZE];    /* of each task; on_begin may set them */
    struct reading left_s;                 /* estimated time left */
    int failed;                            /* tasks of the group that failed */
    bool has_result;                       /* all tasks succeeded or ran out of GPU memory */
    char failure[400]; /* of the first failed task, one without a result preferred */
    const char *skip;  /* why the group was not run, or NULL */
};

struct bench_settings {
    const struct experiment *experiment;
    int repeats;
    int64_t period_us, limit_us;
    const char *python;    /* the trainings' interpreter, whose packages are recorded */
    struct client *client; /* run trainings as tasks of this daemon; NULL: as processes */
    training_submit *submit;
    void (*on_begin)(void *context, const struct bench_progress *progress);
    void (*on_end)(void *context, const struct bench_progress *progress);
    void (*on_stop)(void *context, const struct bench_progress *progress); /* of an interruption or
                                                                              an error, instead */
    void *context;    /* passed to these four */
    bool drop_caches; /* the kernel's caches of files are dropped before each group */
};

/* Named answers of bench_run. */
enum bench_answer {
    BENCH_INTERRUPTED = 1, /* by a signal; finished groups are in the journal */
    BENCH_INCOMPLETE,      /* a group could not be run, or took too long */
    BENCH_FAILED,          /* a training failed for another reason than GPU memory */
};

/* Can this process drop the kernel's caches of files? Returns 0, or -errno with a fault. */
int bench_can_drop_caches(struct fault *fault);

/* Is there nothing to do for the group and repeat: is it in the journal, or has its table's Status
 * said FINISHED before this journal began? */
bool bench_is_done(const struct journal *journal, const struct bench_group *group, int repeat);

/*
 * Runs every group that is not done yet. SIGINT, SIGTERM and SIGHUP end it.
 *
 * Returns 0 when every group is done, a bench_answer, or -errno with a fault.
 */
int bench_run(const struct bench_settings *settings, struct journal *journal, struct fault *fault);

#endif
