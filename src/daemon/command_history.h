/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What earlier runs of a command took, for tasks whose memory is neither declared nor can be
 * estimated from a network, and for estimates that are too low.
 *
 * Two submissions are of the same command if their user, script, arguments, working directory,
 * number and kind of GPUs are the same. So all tasks of an array are of one command, also where
 * they read their index from the environment.
 */
#ifndef COLLOC_DAEMON_COMMAND_HISTORY_H
#define COLLOC_DAEMON_COMMAND_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/reading.h"
#include "daemon/user_counts.h"

/* The name that `colloc show` gives to an estimate from here. */
#define COMMAND_HISTORY_ESTIMATOR "same-command"

enum {
    COMMAND_HISTORY_MAX = 10000,     /* commands; chosen: 0.5 MiB */
    COMMAND_HISTORY_BUCKETS = 16384, /* chosen: more than commands, and a power of two */
    EARLY_NEWS_PERCENT = 2, /* chosen: below it a change of an estimate is worth no event */
};

struct command_runs {
    uint64_t key;
    uid_t uid;
    int64_t peak_bytes;    /* of a GPU: the highest of a completed run; 0: none */
    int64_t early_bytes;   /* the same of a run that has made its second step; 0: none */
    int64_t crashed_bytes; /* the highest peak of a run that ran out of GPU memory; 0: none */
    double smact;          /* the highest mean SM activity of a completed run; negative: unknown */
    double early_smact;    /* the same of a run that has not ended; negative: unknown */
    double alone_per_s;    /* the lowest steps a second alone of a completed run; 0: unknown */
    uint64_t order;        /* of two commands of a user the one with the lower number goes first */
    uint16_t next;         /* in its bucket: 1 + the index of another one; 0: none */
};

struct command_history {
    struct command_runs *commands;
    size_t n, capacity;
    uint16_t *buckets; /* of a hash table: 1 + the index of the first command of each; 0: none */
    uint64_t next_order;
    struct user_counts users; /* of the commands: of COMMAND_HISTORY_MAX one of the user with the
                               * most is overwritten */
};

/* Returns the key of a command.
 *
 * arguments: a list of texts; NULL: none
 * gpu_kind:  NULL: any
 */
uint64_t command_history_key(
    const char *script, const json_t *arguments, const char *cwd, int gpus, const char *gpu_kind);

/* Stores the key in the `subject` of a submission, which the record of its end repeats. */
void command_history_keep_key(json_t *subject, uint64_t key);

/* Returns false when the subject has none. */
bool command_history_read_key(const json_t *subject, uint64_t *ret_key);

/* Has a subject, as JSON without blanks, this key? `subject`: NULL: no. */
bool command_history_is_of(const char *subject, uint64_t key);

/* Adds the record of an ended task, if its memory was measured. Of the commands of a user the first
 * is the oldest. */
void command_history_take(struct command_history *history, const json_t *record);

/* All records so far were of the newest first: of the commands of a user the last is the oldest. */
void command_history_reverse(struct command_history *history);

/*
 * Adds what a training holds after its second step, before it ends: weights, gradients and the
 * optimizer's states are allocated then, and the largest activations were.
 *
 * Returns whether that is news: there was none, or it is more by EARLY_NEWS_PERCENT.
 */
bool command_history_take_early(
    struct command_history *history, uid_t uid, uint64_t key, int64_t bytes);

/*
 * Adds the SM activity of a training that has not ended.
 *
 * Returns whether that is news: the memory of the command is known, and its activity was not.
 */
bool command_history_take_activity(
    struct command_history *history, uid_t uid, uint64_t key, double smact);

/* Returns what runs of a command take, completed or not. */
int64_t command_runs_bytes(const struct command_runs *runs);

/* Returns their SM activity, that of completed ones where it is known. */
struct reading command_runs_smact(const struct command_runs *runs);

/* Returns the runs of a command that say what it takes; NULL when no run does: none has completed
 * or made two steps, or one that took more ran out of memory. Valid until the next change. */
const struct command_runs *command_history_find(
    const struct command_history *history, uid_t uid, uint64_t key);

void command_history_fini(struct command_history *history);

#endif
