/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of messages: its order, its cursor, its bound, and what a restart finds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/message_db.h"

static char folder[] = "/tmp/colloc-messages-XXXXXX", path[200];
static struct message_db *db;
static struct fault fault;

enum { UNLISTED = 5000 };

/* All users from UNLISTED on have one share. */
static uint32_t share_of(void *context, uint32_t uid)
{
    return uid < UNLISTED ? uid : UNLISTED;
}

static void reopen(int64_t last_seq, int expected)
{
    message_db_close(db);
    db = NULL;
    const struct message_shares shares = {.share_of = share_of};
    assert_int_equal(message_db_open(path, last_seq, &shares, &fault, &db), expected);
}

static int begin(void **state)
{
    strcpy(strrchr(folder, '-') + 1, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/messages.db", folder);
    reopen(40, 0);
    return 0;
}

static int end(void **state)
{
    char command[300];
    message_db_close(db);
    db = NULL;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static struct message_row row_of(uint32_t uid, uint64_t task, int64_t due_ms)
{
    return (struct message_row){
        .seq = 41, .task = task, .uid = uid, .gid = uid, .kind = 1, .due_ms = due_ms, .text = "{}"};
}

static void add(uint32_t uid, uint64_t task, int64_t due_ms)
{
    struct message_row row = row_of(uid, task, due_ms);
    assert_int_equal(message_db_add(db, &row, 1, message_db_cursor(db) + 1, &fault), 0);
}

static uint64_t next_task(const uint32_t *busy, size_t n)
{
    struct message_row row = {0};
    int r = message_db_next(db, busy, n, 0, &fault, &row);
    assert_in_range(r, 0, 1);
    return r ? row.task : 0;
}

/* The task whose message is delivered next when messages up to `now_ms` are due. */
static uint64_t deliver_next(int64_t now_ms)
{
    struct message_row row = {0};
    assert_int_equal(message_db_next(db, NULL, 0, now_ms, &fault, &row), 1);
    assert_int_equal(message_db_take_turn(db, share_of(NULL, row.uid), &fault), 0);
    assert_int_equal(message_db_remove(db, row.id, &fault), 0);
    return row.task;
}

/* Many messages of one user, all due before that of another, delay it by one. */
static void users_take_turns(void **state)
{
    for (uint64_t i = 1; i <= 4; i++)
        add(1000, i, (int64_t)i);
    add(1001, 11, 90);
    add(1001, 12, 91);
    add(1002, 21, 200);
    assert_int_equal(deliver_next(100), 1);
    assert_int_equal(deliver_next(100), 11);
    assert_int_equal(deliver_next(100), 2);
    assert_int_equal(deliver_next(100), 12);
    assert_int_equal(deliver_next(300), 21); /* had no turn yet; it was not due before */
    assert_int_equal(deliver_next(300), 3);
}

static void users_with_one_share_take_turns_as_one(void **state)
{
    for (uint32_t i = 0; i < 3; i++)
        add(UNLISTED + i, i + 1, 1);
    add(1000, 11, 90);
    add(1000, 12, 91);
    assert_int_equal(deliver_next(100), 1);
    assert_int_equal(next_task((uint32_t[]){UNLISTED}, 1), 11);
    assert_int_equal(deliver_next(100), 11);
    assert_int_equal(deliver_next(100), 2);
    assert_int_equal(deliver_next(100), 12);
    assert_int_equal(deliver_next(100), 3);
}

static void the_first_that_is_due_passes_busy_users(void **state)
{
    assert_int_equal(next_task(NULL, 0), 0);
    add(1000, 1, 300);
    add(1000, 2, 200);
    add(1001, 3, 250);
    assert_int_equal(next_task(NULL, 0), 2);
    assert_int_equal(next_task((uint32_t[]){1000}, 1), 3);
    assert_int_equal(next_task((uint32_t[]){1000, 1001}, 2), 0);
}

static void what_failed_comes_later(void **state)
{
    struct message_row row;
    add(1000, 1, 100);
    add(1000, 2, 200);
    assert_int_equal(message_db_next(db, NULL, 0, 0, &fault, &row), 1);
    assert_int_equal(message_db_postpone(db, row.id, 300, &fault), 0);
    assert_int_equal(next_task(NULL, 0), 2);
    assert_int_equal(message_db_withdraw(db, 2, 0, &fault), 0); /* of another kind */
    assert_int_equal(next_task(NULL, 0), 2);
    assert_int_equal(message_db_withdraw(db, 2, 1, &fault), 0);
    reopen(100, 0);
    assert_int_equal(message_db_next(db, NULL, 0, 0, &fault, &row), 1);
    assert_int_equal(row.task, 1);
    assert_int_equal(row.attempts, 1);
    assert_int_equal(row.due_ms, 300);
    assert_string_equal(row.text, "{}");
    assert_int_equal(message_db_remove(db, row.id, &fault), 0);
    assert_int_equal(next_task(NULL, 0), 0);
    int64_t used = row.id;
    add(1000, 5, 100);
    assert_int_equal(message_db_next(db, NULL, 0, 0, &fault, &row), 1);
    assert_true(row.id > used); /* never the same for another message */
}

static void the_cursor(void **state)
{
    assert_int_equal(message_db_cursor(db), 40); /* messages of the time before are not made */
    add(1000, 1, 100);
    reopen(100, 0);
    assert_int_equal(message_db_cursor(db), 41);
    struct message_row bad = row_of(1000, 2, 100);
    bad.text = NULL; /* refused: neither it nor the cursor is stored */
    assert_true(message_db_add(db, &bad, 1, 50, &fault) < 0);
    assert_int_equal(message_db_cursor(db), 41);
    assert_int_equal(message_db_add(db, NULL, 0, 60, &fault), 0);
    reopen(100, 0);
    assert_int_equal(message_db_cursor(db), 60);
    reopen(10, 0); /* another event log */
    assert_int_equal(message_db_cursor(db), 10);
}

static void a_user_has_no_more_than_the_bound(void **state)
{
    struct message_row *rows = calloc(MESSAGES_PER_USER + 10, sizeof *rows);
    assert_non_null(rows);
    for (uint64_t i = 0; i < MESSAGES_PER_USER + 10; i++)
        rows[i] = row_of(1000, i + 1, (int64_t)i);
    add(1001, 7777, 0);
    assert_int_equal(message_db_add(db, rows, MESSAGES_PER_USER + 10, 99, &fault), 0);
    free(rows);
    assert_int_equal(next_task(NULL, 0), 7777); /* of another user */
    assert_int_equal(next_task((uint32_t[]){1001}, 1), 11);
}

static void users_of_one_share_have_the_bound_together(void **state)
{
    for (uint64_t i = 0; i < MESSAGES_PER_USER + 10; i++)
        add(UNLISTED + (uint32_t)i % 2, i + 1, (int64_t)i);
    add(1000, 7777, 5000);
    assert_int_equal(deliver_next(10000), 11);
    assert_int_equal(deliver_next(10000), 7777);
    assert_int_equal(deliver_next(10000), 12);
}

static void a_damaged_file_is_put_aside(void **state)
{
    char aside[220];
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    message_db_close(db);
    db = NULL;
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("no database at all", file);
    fclose(file);
    reopen(70, MESSAGE_DB_REPLACED);
    assert_int_equal(message_db_cursor(db), 70);
    snprintf(aside, sizeof aside, "%s.damaged", path);
    assert_int_equal(access(aside, F_OK), 0);
    assert_int_equal(next_task(NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_that_is_due_passes_busy_users, begin, end),
        cmocka_unit_test_setup_teardown(users_take_turns, begin, end),
        cmocka_unit_test_setup_teardown(users_with_one_share_take_turns_as_one, begin, end),
        cmocka_unit_test_setup_teardown(what_failed_comes_later, begin, end),
        cmocka_unit_test_setup_teardown(the_cursor, begin, end),
        cmocka_unit_test_setup_teardown(a_user_has_no_more_than_the_bound, begin, end),
        cmocka_unit_test_setup_teardown(users_of_one_share_have_the_bound_together, begin, end),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_put_aside, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
