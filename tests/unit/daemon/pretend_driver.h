/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of the daemon's parts: the real driver and core over a pretend log, on one pretend
 * GPU, and a story of what happened in order ("SUBMIT; PLACE; start 1; STARTED; ").
 */
#ifndef COLLOC_TESTS_DAEMON_PRETEND_DRIVER_H
#define COLLOC_TESTS_DAEMON_PRETEND_DRIVER_H

#include <uv.h>

#include "../core/pretend_gpus.h"
#include "daemon/driver.h"
#include "daemon/jobs.h"

struct pretend_driver {
    uv_loop_t loop;
    struct core *core;
    struct driver *driver;
    struct jobs *jobs;
    bool lacks_users; /* the user database lacks all users */
    char story[2048];
    json_t *exit_detail; /* of the last EXITED */
    uint64_t array;      /* the only one in the log; indices 0 and 1, both tasks have ended */
    int array_reads;

    /* the part under test; NULL: it is not concerned */
    void (*start)(uint64_t task);
    void (*kill)(uint64_t task);
    void (*suspend)(uint64_t task);
    void (*resume)(uint64_t task);
    void (*pause)(uint64_t task);
    void (*unpause)(uint64_t task);
    void (*answer_memory)(uint64_t task, bool is_granted);
    json_t *(*record_end)(const struct task *task);
    void (*ended)(uint64_t task, const json_t *record);
};

extern struct pretend_driver pretend;

void pretend_driver_begin(int n_gpus);
void pretend_driver_end(void);

/* Adds to the story. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails unless that is the story since the last call. */
void expect_story(const char *expected);

/* Feeds an event; a SUBMIT is for one GPU and also adds the job. Returns as driver_feed. */
int feed(enum event_kind kind, uint64_t task);

/* Submits a task with this request. */
int feed_request(uint64_t task, struct task_request request);

#endif
