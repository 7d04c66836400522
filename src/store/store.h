/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event log: all events, in one SQLite file. The state of the core follows from it: an event is
 * appended, then applied to the core, then acted on. A restart replays the events that are needed
 * to know each task that has not ended.
 *
 * Contract:
 * 1. All writing happens in a transaction of the caller (store_begin ... store_commit). Without one
 *    it is refused (-EINVAL).
 * 2. Written data is durable, also after a power cut, when store_commit has returned 0; a
 *    transaction that was not committed leaves nothing.
 * 3. If the database fails (any error but -EINVAL), the whole transaction has been rolled back, and
 *    further writing to it is refused. After -EINVAL the transaction continues.
 * 4. One process at a time has a log open: the lock file beside it names the process.
 * 5. A changed row is detected when it is read (-EUCLEAN), and a log that lost its end is detected
 *    when it is opened (store_get_loss).
 * 6. Task ids are 1 to INT64_MAX, and none is used twice.
 * 7. A store is used by one thread at a time. Callbacks must not call the store.
 */
#ifndef COLLOC_STORE_STORE_H
#define COLLOC_STORE_STORE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "core/event.h"

struct store;

enum { STORE_NONE = 1 }; /* what getters return if the thing does not exist */

/* Reads the name of a policy in the log: policy_find. Returns NULL for an unknown name. */
typedef const struct policy *store_find_policy(const char *name);

/* ---- opening and closing ---- */

/*
 * Opens the log, locks it, and brings an older version's log up to date in one transaction.
 *
 * folder:    holds colloc.db; both are created if they do not exist.
 * ret_store: for store_close.
 *
 * Returns 0, or with a fault: -EBUSY (another process has it open, after a second of trying),
 * -EPROTO (a newer version wrote it), -EUCLEAN (damaged, or not a log of colloc), -EPERM (the
 * folder belongs to another user, or all users may write to it), or what the system refuses
 * (-EACCES, -EROFS, -ENOSPC, ...).
 */
int store_open(const char *folder, struct fault *fault, struct store **ret_store);

/*
 * Opens a database only to read it: of any owner, in any folder. The lock beside it, if there is
 * one, is held until store_close. The log is not brought up to date.
 *
 * path: of the database.
 *
 * Returns what store_open returns; another version is -EPROTO.
 */
int store_open_to_check(const char *path, struct fault *fault, struct store **ret_store);

/* Rolls an open transaction back and closes the log. NULL is allowed. */
void store_close(struct store *store);

/* ---- transactions ---- */

/* Returns 0, or -errno with a fault. */
int store_begin(struct store *store, struct fault *fault);

/* Returns 0: all of the transaction is durable; or -errno with a fault (-ENOSPC: the disk is full):
 * none of it is. */
int store_commit(struct store *store, struct fault *fault);

/* Does nothing without a transaction. */
void store_rollback(struct store *store);

/*
 * Copies the write-ahead log into the database, so that damage to the former costs little. Does not
 * wait for readers.
 *
 * Returns 0, or -errno with a fault.
 */
int store_checkpoint(struct store *store, struct fault *fault);

/* ---- the reserve: disk space for the time when the disk is full (reserve.c) ---- */

/*
 * Allocates a file beside the log.
 *
 * bytes: its size; 0 removes it.
 *
 * Returns 0, or -errno with a fault (-ENOSPC: no space; there is no reserve then).
 */
int store_make_reserve(struct store *store, int64_t bytes, struct fault *fault);

/* Gives the reserve's space to the log. Returns false if there is no reserve. */
bool store_release_reserve(struct store *store);

/* ---- events ---- */

/*
 * Appends an event.
 *
 * event:   neither a sample nor a tick.
 * wall_us: the wall clock at its time.
 * detail:  a JSON object with what the core does not need, for the callers of store_replay and
 *          store_task_events; or NULL. Stays the caller's.
 *
 * Returns 0; -EINVAL with a fault for what cannot be logged; or -errno of the database.
 */
int store_append(struct store *store, const struct event *event, int64_t wall_us,
    const json_t *detail, struct fault *fault);

/*
 * Receives one event of the log.
 *
 * event, detail: valid during the call; `detail` may be NULL.
 *
 * Returns 0 to continue; any other value ends the walk, which returns it.
 */
typedef int store_on_event(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail);

/*
 * Walks, in order, the events that a restart needs: those of no task (GPUS, USAGE, FIFO and
 * others), those of each task that has not ended, and those of ended tasks that still ran when a
 * task that now holds GPUs was placed (they may have been its co-residents). The SUBMIT of an array
 * has only those of its tasks.
 *
 * Returns 0; what the callback returned; -EUCLEAN with a fault that names an event that is damaged
 * or not understood; or -errno of the database. So do the next two.
 */
int store_replay(struct store *store, store_find_policy *find_policy, store_on_event *on_event,
    void *context, struct fault *fault);

/* Walks the events of one task, in order; none if there is no such task. */
int store_task_events(struct store *store, uint64_t task, store_find_policy *find_policy,
    store_on_event *on_event, void *context, struct fault *fault);

/* Walks all events of the log, in order. */
int store_all_events(struct store *store, store_find_policy *find_policy, store_on_event *on_event,
    void *context, struct fault *fault);

/*
 * Walks the events after `seq`, in order, at most `limit` of them.
 *
 * ret_seq: the number of the event, set before each call of on_event; `seq` when there is none
 *
 * Returns as store_replay.
 */
int store_events_after(struct store *store, int64_t seq, int64_t limit,
    store_find_policy *find_policy, store_on_event *on_event, void *context, struct fault *fault,
    int64_t *ret_seq);

/*
 * Where a restart continues: `ret_task` is the highest task id ever used (0: none), `ret_time_us`
 * the time of the last event (0: none).
 *
 * Returns 0, or -errno with a fault.
 */
int store_get_last(
    struct store *store, struct fault *fault, uint64_t *ret_task, int64_t *ret_time_us);

/* The ids of an array's tasks. Returns 0, STORE_NONE, or -errno with a fault. */
int store_get_array(struct store *store, uint64_t array, struct fault *fault, uint64_t *ret_first,
    uint64_t *ret_last);

/* The number of the last event that is durable; 0: none. Events are numbered from 1 on. */
int64_t store_last_event(const struct store *store);

/*
 * Lists the tasks that have events after `seq`, by id.
 *
 * limit:     of `ret_tasks`
 * ret_count: how many; `limit`: perhaps more
 *
 * Returns 0, or -errno with a fault.
 */
int store_changed_tasks(struct store *store, int64_t seq, size_t limit, struct fault *fault,
    uint64_t *ret_tasks, size_t *ret_count);

/* ---- texts ---- */

/*
 * Stores a text for as long as `task` is in the log. A text that several tasks use is stored once.
 *
 * ret_key: the SHA-256 of the text in hex, with a NUL.
 *
 * Returns 0, or -errno with a fault.
 */
int store_put_blob(struct store *store, uint64_t task, const void *data, size_t size,
    struct fault *fault, char ret_key[static 65]);

/*
 * Reads a text.
 *
 * ret_data: for the caller to free; a NUL follows its end.
 *
 * Returns 0; STORE_NONE; -EUCLEAN if it is not what was written; or -errno with a fault.
 */
int store_get_blob(
    struct store *store, const char *key, struct fault *fault, char **ret_data, size_t *ret_size);

/* ---- tasks that have ended ---- */

struct store_ended {
    uint64_t task;
    uint32_t uid;
    enum task_state state; /* one that is done */
    int64_t submitted_wall_us, ended_wall_us;
    int64_t wait_us, exec_us, jct_us;
    int oom_count; /* GPU memory crashes */
};

/*
 * Stores the record of a task that has ended, in the transaction of its END event.
 *
 * record: a JSON object; stays the caller's.
 *
 * Returns 0; -EINVAL for another record or a state that is not done; or -errno with a fault.
 */
int store_put_ended(struct store *store, const struct store_ended *ended, const json_t *record,
    struct fault *fault);

/* Reads a record, for the caller to release. Returns 0; STORE_NONE; -EUCLEAN; or -errno with a
 * fault. */
int store_get_ended(struct store *store, uint64_t task, struct fault *fault, json_t **ret_record);

struct store_ended_filter {
    bool of_uid; /* only tasks of `uid` */
    uint32_t uid;
    enum task_state state; /* only tasks in this state; a state that is not done: all */
    uint64_t before;       /* only tasks that ended before this ended task did; 0: all */
    int64_t limit;         /* at most this number of tasks; 0: all */
    int64_t since_wall_us; /* only tasks that ended then or later; 0: all */
    int64_t until_wall_us; /* only tasks that ended before; 0: all */
    int64_t examine;       /* search at most this number of those of `uid` and `before`; 0: all */
    const char *holds;     /* only records whose JSON has this text somewhere; NULL: all */
};

/* Receives an ended task; `record` is NULL if it is damaged. Returns as store_on_event. */
typedef int store_on_ended(void *context, uint64_t task, const json_t *record);

/* Walks the ended tasks that the filter selects, the last to end first. Returns as store_replay. */
int store_list_ended(struct store *store, const struct store_ended_filter *filter,
    store_on_ended *on_ended, void *context, struct fault *fault);

/* Receives a user and how many of its ended tasks the log has. Returns 0 to go on. */
typedef int store_on_ended_user(void *context, uint32_t uid, int64_t tasks);

/* Walks the users of ended tasks. Returns 0, the first answer that is not, or -errno with a
 * fault. */
int store_list_ended_users(
    struct store *store, store_on_ended_user *on_user, void *context, struct fault *fault);

/*
 * Finds where a list that examined `filter->examine` tasks and found none continues: a search for
 * few among many tasks is made in steps of bounded time.
 *
 * ret_task: the last task examined, which is `before` of the next step; 0: there are no more.
 *
 * Returns 0, or -errno with a fault.
 */
int store_skip_ended(struct store *store, const struct store_ended_filter *filter,
    struct fault *fault, uint64_t *ret_task);

/* Sums over the ended tasks in the log. */
struct store_totals {
    int64_t tasks[TASK_STATES]; /* how many, by state */
    int64_t wait_us, exec_us, jct_us;
    int64_t oom_count;
    int64_t recovered;                                   /* completed after a GPU memory crash */
    int64_t first_submitted_wall_us, last_ended_wall_us; /* 0: no task has ended */
    int64_t added_to;                                    /* the last row that was added */
};

/*
 * Adds the next ended tasks, at most `max`, to the sums, which begin with zeros: a history of years
 * is added up in steps of bounded time.
 *
 * Returns 1 when there may be more, 0 when all are added, or -errno with a fault.
 */
int store_add_totals(
    struct store *store, int max, struct fault *fault, struct store_totals *totals);

/* Finds when the ended task with the lowest id was submitted; 0: no task has ended. Returns 0, or
 * -errno with a fault. */
int store_first_submitted(struct store *store, struct fault *fault, int64_t *ret_wall_us);

/* Counts the ended tasks with ids from `first` to `last`, by state. Returns 0, or -errno with a
 * fault. */
int store_count_ended(struct store *store, uint64_t first, uint64_t last, struct fault *fault,
    int64_t ret_counts[static TASK_STATES]);

/*
 * Forgets ended tasks: their events, records, and texts that no other task uses. The submission of
 * an array is forgotten with its last task. The task with the highest id stays, so that no id is
 * used twice. Of the USAGE events the last one of each user stays, which has the whole usage, and
 * of the FIFO events the last one. Call it until it forgets none.
 *
 * wall_us: tasks that ended before it are forgotten.
 * limit:   at most this number of tasks in this call.
 *
 * Returns 0, or -errno with a fault.
 */
int store_forget_before(
    struct store *store, int64_t wall_us, int limit, struct fault *fault, int *ret_forgotten);

/* ---- damage and loss ---- */

/*
 * Returns the known losses of the log, as text for people; "": none. store_open finds that the log
 * ends before what was committed, or has fewer tasks than it should.
 */
const char *store_get_loss(const struct store *store);

/* Adds a loss that the caller found. Returns 0, or -errno with a fault. */
int store_note_loss(struct store *store, const char *text, struct fault *fault);

/* Accepts the loss: the missing tasks and events count as forgotten from now on. Returns 0, or
 * -errno with a fault. */
int store_accept_loss(struct store *store, struct fault *fault);

/* Counts the events that are neither in the log nor forgotten, in a time that grows with the log.
 * Returns 0, or -errno with a fault. */
int store_count_missing_events(struct store *store, struct fault *fault, int64_t *ret_missing);

/* Receives a finding as text for people. */
typedef void store_on_finding(void *context, const char *finding);

/* Checks all rows. Returns the number of findings, or -errno if the database cannot be read. */
int store_check_rows(
    struct store *store, store_on_finding *on_finding, void *context, struct fault *fault);

/* Is the task in the table of the tasks that have not ended? */
bool store_is_live(struct store *store, uint64_t task);

/* How many events, tasks that have not ended, and ended tasks are in the log. */
struct store_counts {
    int64_t events, live, ended;
};
int store_get_counts(struct store *store, struct fault *fault, struct store_counts *ret_counts);

#endif
