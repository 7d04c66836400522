/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of all tasks that have not ended. And how many tasks and how much text each user has,
 * for the limits of the configuration.
 *
 * The table belongs to the loop's thread. Parts look a job up by its task's id each time: the
 * pointer is valid until the task ends.
 *
 * Users that the user database lacks count together: one user of a machine may have thousands of
 * such ids (user namespaces).
 */
#ifndef COLLOC_DAEMON_JOBS_H
#define COLLOC_DAEMON_JOBS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/job.h"
#include "service/user_names.h"

struct jobs;

/*
 * Creates an empty table; the first task gets id 1.
 *
 * names: borrowed; outlives the table
 *
 * Returns NULL when memory is out.
 */
struct jobs *jobs_create(const struct names *names);

/* Releases the table and all jobs. NULL is fine. */
void jobs_destroy(struct jobs *jobs);

/* ---- ids of tasks ---- */

/* The id that the next task gets. */
uint64_t jobs_next_id(const struct jobs *jobs);
void jobs_set_next_id(struct jobs *jobs, uint64_t id);

/* Takes the next id. */
uint64_t jobs_take_id(struct jobs *jobs);

/* ---- jobs ---- */

/*
 * Adds a job.
 *
 * detail: of its SUBMIT; borrowed, may be NULL
 *
 * Returns NULL when memory is out.
 */
struct job *jobs_add(struct jobs *jobs, uint64_t id, uid_t uid, const json_t *detail);

/* Returns NULL when there is none. */
struct job *jobs_find(const struct jobs *jobs, uint64_t id);

/* Removes and releases a job. NULL is fine. */
void jobs_remove(struct jobs *jobs, struct job *job);

/* Removes the job of a task that has just ended: its texts still count for 24 hours, because the
 * log keeps them too. A restart forgets those. `now_us`: the core's time. NULL is fine. */
void jobs_retire(struct jobs *jobs, struct job *job, int64_t now_us);

/* Is an event of this kind a change of a task by its user, of which there may be few? */
bool jobs_is_change(enum event_kind kind);

/* Notes an event of a task: a HOLD, an UPDATE or a RUN_AGAIN is a change, and takes space in the
 * log that counts as text of the user; a SUSPEND, RESUME or MOVE by the user is a command. Other
 * events change nothing. `detail`: of the event; borrowed, may be NULL.
 */
void jobs_note_change(struct jobs *jobs, const struct event *event, const json_t *detail);

/* Returns whether there was any job since the last call, and since the start the first time. */
bool jobs_take_lived(struct jobs *jobs);

/* Returns how many jobs there are. */
int jobs_count(const struct jobs *jobs);

/* ---- users ---- */

/* Returns how many jobs this user has; all unlisted users together are one. */
int jobs_of_user(const struct jobs *jobs, uid_t uid);

/* Returns the number of jobs of this user only, also if the user is not in the user database. */
int jobs_of_uid(const struct jobs *jobs, uid_t uid);

/* Returns the bytes of those jobs' texts, and of the tasks' that ended in the last 24 hours.
 * now_us: the core's time. */
int64_t jobs_bytes_of_user(struct jobs *jobs, uid_t uid, int64_t now_us);

/* Returns how many commands the user gave in the last 24 hours; a restart forgets those to tasks
 * that have ended. now_us: the core's time. */
int64_t jobs_commands_of_user(struct jobs *jobs, uid_t uid, int64_t now_us);

/* The user database was queried: whether it lacks this user. */
void jobs_set_unlisted(struct jobs *jobs, uid_t uid, bool is_unlisted);

#endif
