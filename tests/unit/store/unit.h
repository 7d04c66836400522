/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store share: a fresh folder, a policy to find, events, and what a replay
 * handed over. */
#ifndef COLLOC_TESTS_UNIT_STORE_UNIT_H
#define COLLOC_TESTS_UNIT_STORE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/store.h"

/* Setup and teardown of cmocka: a new folder for each test, removed with all files in it. *state is
 * its path. */
int make_folder(void **state);
int remove_folder(void **state);

/* The path of a file in the folder. The next call overwrites it. */
char *path_in(const char *folder, const char *name);

/* Changes the database of a closed log. */
void execute(const char *folder, const char *sql);

/* Opens the log there, or fails the test with the fault. */
struct store *open_log(const char *folder);

/* Fails the test unless store_open fails with -errnum and a text that contains `words`. */
void assert_refused(const char *folder, int errnum, const char *words);

/* Knows "magm" only. */
const struct policy *find_policy(const char *name);

struct event gpus_event(int64_t time_us); /* two GPUs */
struct event submit_event(
    uint64_t task, int64_t time_us); /* one GPU, policy magm, 5 GiB estimated */
struct event place_event(uint64_t task, int64_t time_us); /* GPU 1 */
struct event end_event(uint64_t task, int64_t time_us);   /* completed */
struct event plain_event(enum event_kind kind, uint64_t task, int64_t time_us);

/* Appends, or fails the test with the fault. Wall time is time_us + 1000. */
void append(struct store *store, struct event event);

/* One transaction around what is appended between the two. */
void begin(struct store *store);
void commit(struct store *store);

/* Returns the events of a replay as text: "GPUS0 SUBMIT1 PLACE1 ". The next call overwrites it. */
const char *replayed(struct store *store);

#endif
