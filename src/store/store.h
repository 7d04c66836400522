/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event log: everything that happened, in one SQLite file. The log is the truth: an event is
 * appended, then applied, then acted on; a restart replays what is needed to know every task that
 * has not ended.
 *
 * All writing happens in a transaction of the caller's, and is durable (it survives a power cut)
 * once store_commit has returned 0. When the database fails (any fault but -EINVAL) the whole
 * transaction has been rolled back, and what is still written to it is refused.
 *
 * Not thread-safe. Callbacks must not call the store. Task ids are 1 to INT64_MAX.
 */
#ifndef COLLOC_STORE_STORE_H
#define COLLOC_STORE_STORE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "core/event.h"

struct store;

enum { STORE_NONE = 1 }; /* the answer of the getters: there is no such thing */

/*
 * Opens the log in `folder` (colloc.db), and creates both as needed. Locks it for as long as it is
 * open. An older version's log is brought up to date, in one transaction. Refused in words: another
 * process has it open (-EBUSY, after a second of trying), a newer version wrote it (-EPROTO), it is damaged or not ours
 * (-EUCLEAN), the folder belongs to somebody else or anybody may write to it (-EPERM), and what the
 * system refuses (-EACCES, -EROFS, -ENOSPC, ...).
 */
int store_open(const char *folder, struct fault *fault, struct store **ret_store);
void store_close(struct store *store); /* rolls an open transaction back; takes NULL */

int store_begin(struct store *store, struct fault *fault);
int store_commit(struct store *store, struct fault *fault); /* -ENOSPC: the disk is full */
void store_rollback(struct store *store);

/*
 * Allocates a file of `bytes` beside the log (0: removes it), to be released when the disk is full.
 * Returns 0, or -errno (-ENOSPC: no room for it; there is none then).
 */
int store_make_reserve(struct store *store, int64_t bytes, struct fault *fault);

/* Gives the reserve's space to the log. Returns false when there is none. */
bool store_release_reserve(struct store *store);
bool store_has_reserve(const struct store *store);

/*
 * Copies what is in the write-ahead log into the database, so that damage to the former costs
 * little. Waits for no reader. Returns 0 or -errno.
 */
int store_checkpoint(struct store *store, struct fault *fault);

/*
 * Appends one event; samples and ticks are refused (-EINVAL). `wall_us` is the wall clock then;
 * `detail` an object of what the core need not know, for the callers of store_replay and
 * store_task_events; may be NULL, stays the caller's.
 */
int store_append(struct store *store, const struct event *event, int64_t wall_us,
    const json_t *detail, struct fault *fault);

/* How a name in the log becomes a policy again: policy_find. NULL for no such policy. */
typedef const struct policy *store_find_policy(const char *name);

/*
 * One event of the log. The pointers are valid during the call; `detail` may be NULL. Anything but
 * 0 ends the walk, which returns it.
 */
typedef int store_on_event(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail);

/*
 * Hands over, in order, the GPUS events and the events of every task that has not ended; of those
 * that have ended, the ones that were not gone yet when a task that now holds GPUs got them
 * (whether that one had company depends on them). An event that cannot be understood is a fault
 * that names it (-EUCLEAN).
 */
int store_replay(struct store *store, store_find_policy *find_policy, store_on_event *on_event,
    void *context, struct fault *fault);

/* The events of one task, in order: its story. None when there is no such task. */
int store_task_events(struct store *store, uint64_t task, store_find_policy *find_policy,
    store_on_event *on_event, void *context, struct fault *fault);

/*
 * What the log is known to have lost, in words; "": nothing. store_open finds it where the log ends
 * before what was committed, or has fewer tasks than it should; the caller adds what it knows.
 * Accepting it counts what is missing as forgotten.
 */
const char *store_get_loss(const struct store *store);
int store_note_loss(struct store *store, const char *words, struct fault *fault);
int store_accept_loss(struct store *store, struct fault *fault);

/*
 * Opens a database to read it only, of no matter which owner, in no matter which folder; the lock
 * beside it, if there is one, must be free (-EBUSY). Nothing is brought up to date: another version
 * is -EPROTO. The rest as store_open.
 */
int store_open_to_check(const char *path, struct fault *fault, struct store **ret_store);

/*
 * Hands over what is wrong with the rows, each finding in words. Returns how many findings there
 * are, or -errno when the database cannot be read on.
 */
typedef void store_on_finding(void *context, const char *finding);
int store_check_rows(
    struct store *store, store_on_finding *on_finding, void *context, struct fault *fault);

/* All events of the log in order, forgotten tasks' excepted. */
int store_all_events(struct store *store, store_find_policy *find_policy, store_on_event *on_event,
    void *context, struct fault *fault);

/* Is the task among those that have not ended, as the table of them has it? */
bool store_is_live(struct store *store, uint64_t task);

/* Numbers for people: how many there are in the log. */
struct store_counts {
    int64_t events, live, ended;
};
int store_get_counts(struct store *store, struct fault *fault, struct store_counts *ret_counts);

/* The highest task id ever used (0: none) and the time of the last event (0: none): where a restart
 * goes on. */
int store_get_last(
    struct store *store, struct fault *fault, uint64_t *ret_task, int64_t *ret_time_us);

/*
 * Keeps a text as long as `task` is kept; one copy, however many tasks use it. Its key is the
 * SHA-256 of the content in hex.
 */
int store_put_blob(struct store *store, uint64_t task, const void *data, size_t size,
    struct fault *fault, char ret_key[static 65]);

/* The caller frees *ret_data, which has a NUL behind its end. 0 or STORE_NONE. */
int store_get_blob(
    struct store *store, const char *key, struct fault *fault, char **ret_data, size_t *ret_size);

/* What a task came to. */
struct store_ended {
    uint64_t task;
    uint32_t uid;
    enum task_state state; /* one that is done */
    int64_t submitted_wall_us, ended_wall_us;
    int64_t wait_us, exec_us, jct_us;
    int oom_count; /* GPU memory crashes */
};

/* Keeps the record of a task that has ended (an object, stays the caller's), in the transaction of
 * its END event. */
int store_put_ended(struct store *store, const struct store_ended *ended, const json_t *record,
    struct fault *fault);

/* 0 and the record, which the caller releases, or STORE_NONE. */
int store_get_ended(struct store *store, uint64_t task, struct fault *fault, json_t **ret_record);

struct store_ended_filter {
    bool of_uid; /* only those of `uid` */
    uint32_t uid;
    enum task_state state; /* only those in this state; one that is not done (0): all */
    uint64_t before;       /* only those that ended before this ended task did; 0: all */
    int64_t limit;         /* at most so many; 0: all */
    int64_t since_wall_us; /* only those that ended then or later; 0: all */
    int64_t until_wall_us; /* only those that ended before; 0: all */
    int64_t examine;       /* search no more than so many of those of `uid` and `before`; 0: all */
};

/* Ended tasks, the last to end first; `record` is NULL where it is damaged. Anything but 0 from the callback ends the walk, which returns
 * it. */
typedef int store_on_ended(void *context, uint64_t task, const json_t *record);
int store_list_ended(struct store *store, const struct store_ended_filter *filter,
    store_on_ended *on_ended, void *context, struct fault *fault);

/*
 * Finds where a list that examined `filter->examine` tasks and found none goes on: a search for few
 * among many tasks is made in steps of bounded time.
 * ret_task: the last task examined, to be `before` of the next step, or 0: there are no more.
 * Returns 0 or a fault.
 */
int store_skip_ended(struct store *store, const struct store_ended_filter *filter,
    struct fault *fault, uint64_t *ret_task);

/* Over all ended tasks that are still kept. */
struct store_totals {
    int64_t tasks[TASK_STATES]; /* how many, by state */
    int64_t wait_us, exec_us, jct_us;
    int64_t oom_count;
    int64_t recovered;                                   /* completed after a GPU memory crash */
    int64_t first_submitted_wall_us, last_ended_wall_us; /* 0 when there is none */
};
int store_get_totals(struct store *store, struct fault *fault, struct store_totals *ret_totals);

/*
 * Forgets at most `limit` of the tasks that ended before `wall_us`: events, records, texts that no
 * other task uses. The task with the highest id stays, so that no id is used twice. In a
 * transaction, as every writer; to be repeated until it forgets none.
 */
int store_forget_before(
    struct store *store, int64_t wall_us, int limit, struct fault *fault, int *ret_forgotten);

#endif
