/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that are still to be delivered, in an SQLite file beside the event log, and up to which
 * event of the log messages were made.
 *
 * Contract:
 *   1. message_db_add adds messages and moves the cursor in one transaction: after a crash each
 *      event's messages are all there, or the event is still ahead of the cursor.
 *   2. Commits do not wait for the disk: a power cut may take the last seconds back, both of the
 *      messages and of the cursor.
 *   3. A user, or all users of one share together, has at most MESSAGES_PER_USER: the oldest make
 *      room.
 *   4. A database is used by one thread.
 */
#ifndef COLLOC_STORE_MESSAGE_DB_H
#define COLLOC_STORE_MESSAGE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

struct message_db;

enum { MESSAGES_PER_USER = 1000 }; /* chosen: 2 MB */

struct message_row {
    int64_t id;  /* rising; never used twice */
    int64_t seq; /* of the event that it is about */
    uint64_t task;
    uint32_t uid, gid;
    int kind;
    int attempts;     /* to deliver it, so far */
    int64_t due_ms;   /* wall clock; not before */
    const char *text; /* JSON; borrowed */
};

/* Users with one share count as one, for turns and for MESSAGES_PER_USER. */
struct message_shares {
    uint32_t (*share_of)(void *context, uint32_t uid); /* a number below UINT32_MAX */
    void *context;
};

/*
 * Opens a database or creates it. A damaged one is renamed to PATH.damaged, and a new one begun.
 *
 * last_seq: of the event log; the cursor of a new database, and the most that an old one's may be
 * shares:   copied
 * ret_db:   for message_db_close
 *
 * Returns 0, MESSAGE_DB_REPLACED (a fault says what was wrong with the old one), or -errno with a
 * fault.
 */
enum { MESSAGE_DB_REPLACED = 1 };
int message_db_open(const char *path, int64_t last_seq, const struct message_shares *shares,
    struct fault *fault, struct message_db **ret_db);

/* NULL is allowed. */
void message_db_close(struct message_db *db);

/* The last event whose messages were made. */
int64_t message_db_cursor(const struct message_db *db);

/* Adds messages (their id and attempts are set here) and moves the cursor. Returns 0, or -errno
 * with a fault: nothing has changed. */
int message_db_add(struct message_db *db, const struct message_row *rows, size_t n, int64_t cursor,
    struct fault *fault);

/* Removes the messages of this kind about this task. Returns as message_db_add. */
int message_db_withdraw(struct message_db *db, uint64_t task, int kind, struct fault *fault);

/*
 * Finds the message to deliver next. Shares whose messages are due take turns: one that has many,
 * or whose receiver does not answer, delays others by one attempt at most.
 *
 * busy, n_busy: shares to leave out
 * now_ms:       wall clock: messages up to then are due; without any, the one that is due first is
 *               returned
 * ret_row:      its text is valid until the next call
 *
 * Returns 1; 0: there is none; or -errno with a fault.
 */
int message_db_next(struct message_db *db, const uint32_t *busy, size_t n_busy, int64_t now_ms,
    struct fault *fault, struct message_row *ret_row);

/* Notes that this share has a turn now. Returns as message_db_add. */
int message_db_take_turn(struct message_db *db, uint32_t share, struct fault *fault);

/* Notes another attempt that failed, and when to try again. Returns as message_db_add. */
int message_db_postpone(struct message_db *db, int64_t id, int64_t due_ms, struct fault *fault);

/* Removes a message. Returns as message_db_add. */
int message_db_remove(struct message_db *db, int64_t id, struct fault *fault);

#endif
