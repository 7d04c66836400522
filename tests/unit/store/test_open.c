/* SPDX-License-Identifier: Apache-2.0 */
/* What store_open refuses, and with which text. It never crashes and never changes such a log. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "unit.h"

static void write_log(const char *folder, const char *data, size_t size)
{
    FILE *file = fopen(path_in(folder, "colloc.db"), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    unlink(path_in(folder, "colloc.db-wal"));
}

static void read_log(const char *folder, char **ret_data, size_t *ret_size)
{
    assert_int_equal(file_read(path_in(folder, "colloc.db"), 1 << 24, NULL, ret_data, ret_size), 0);
}

/* Makes a log with rows in each table, and closes it. */
static void fill(const char *folder)
{
    struct store *store = open_log(folder);
    json_t *record = json_pack("{s:s}", "name", "resnet");
    char key[65];
    begin(store);
    append(store, gpus_event(1));
    for (uint64_t task = 1; task <= 9; task++) {
        struct store_ended ended = {.task = task, .state = TASK_COMPLETED, .ended_wall_us = 5};
        append(store, submit_event(task, 1));
        assert_int_equal(store_put_blob(store, task, "#!/bin/sh\n", 10, NULL, key), 0);
        if (task % 2) {
            append(store, end_event(task, 2));
            assert_int_equal(store_put_ended(store, &ended, record, NULL), 0);
        }
    }
    commit(store);
    json_decref(record);
    store_close(store);
}

static void the_folder_is_made_and_the_log_is_private(void **state)
{
    struct stat status;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/state/colloc", (char *)*state);
    store_close(open_log(folder));
    assert_int_equal(stat(path_in(folder, "colloc.db"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void a_second_opener_is_told_who_has_it(void **state)
{
    char words[64];
    struct store *store = open_log(*state);
    snprintf(words, sizeof words, "(process %d)", (int)getpid());
    assert_refused(*state, EBUSY, words);
    begin(store);
    append(store, submit_event(1, 1));
    commit(store);
    store_close(store);
    store_close(open_log(*state));
}

/* A collocd that is killed may leave a child that has not yet closed the lock's descriptor. */
static void a_child_that_holds_the_lock_for_a_moment_is_waited_for(void **state)
{
    store_close(open_log(*state));
    int fd = open(path_in(*state, "colloc.lock"), O_RDWR | O_CLOEXEC), ends[2];
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0 && pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct pollfd parent = {.fd = ends[0]};
        poll(&parent, 1, 100); /* the lock's last moment */
        _exit(0);
    }
    close(fd);
    store_close(open_log(*state));
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
}

static int version_of(const char *folder)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(path_in(folder, "colloc.db"), &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int version = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return version;
}

/* A colloc that does not know the kinds of events since then refuses the log. */
static void a_log_of_before_new_kinds_of_events_gets_another_version(void **state)
{
    fill(*state);
    int newest = version_of(*state);
    execute(*state, "PRAGMA user_version = 3");
    store_close(open_log(*state));
    assert_int_equal(version_of(*state), newest);
    assert_true(newest > 3);
}

static void a_newer_log_is_refused_and_kept(void **state)
{
    char *before, *after;
    size_t size_before, size_after;
    fill(*state);
    execute(*state, "PRAGMA user_version = 99");
    read_log(*state, &before, &size_before);
    assert_refused(*state, EPROTO, "version 99");
    read_log(*state, &after, &size_after);
    assert_int_equal(size_before, size_after);
    assert_memory_equal(before, after, size_before);
    free(before);
    free(after);
}

static void a_database_of_something_else_is_refused(void **state)
{
    execute(*state, "CREATE TABLE songs(title TEXT)");
    assert_refused(*state, EUCLEAN, "not colloc's");
}

static void what_is_no_database_is_refused(void **state)
{
    char noise[8192];
    srand(1);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)rand();
    write_log(*state, noise, sizeof noise);
    assert_refused(*state, EUCLEAN, "colloc.db: file is not a database");
}

static void a_log_that_was_cut_off_is_refused(void **state)
{
    char *data;
    size_t size;
    fill(*state);
    read_log(*state, &data, &size);
    for (size_t cut = size - 4096; cut > 0; cut -= 4096) {
        write_log(*state, data, cut);
        assert_refused(*state, EUCLEAN, "colloc.db: ");
    }
    write_log(*state, data, 100);
    assert_refused(*state, EUCLEAN, "colloc.db: ");
    write_log(*state, data, 0);
    assert_refused(*state, EUCLEAN, "empty, but it was not");
    write_log(*state, data, size);
    store_close(open_log(*state));
    free(data);
}

static void a_log_that_was_moved_away_makes_room_for_a_new_one(void **state)
{
    fill(*state);
    assert_int_equal(unlink(path_in(*state, "colloc.db")), 0);
    struct store *store = open_log(*state);
    assert_string_equal(replayed(store), "");
    store_close(store);
}

static int ignore_event(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    return 0;
}

static int ignore_record(void *context, uint64_t task, const json_t *record)
{
    return 0;
}

/* Reading a damaged log gives an answer or a fault with a text. */
static void read_everything(struct store *store)
{
    struct fault faults[3] = {{""}, {""}, {""}};
    struct store_totals totals = {0};
    const struct store_ended_filter all = {0};
    int answers[] = {
        store_replay(store, find_policy, ignore_event, NULL, &faults[0]),
        store_list_ended(store, &all, ignore_record, NULL, &faults[1]),
        store_add_totals(store, 1000, &faults[2], &totals),
    };
    for (int i = 0; i < 3; i++)
        assert_true(answers[i] == 0 || (answers[i] < 0 && strstr(faults[i].text, "colloc.db: ")));
}

static void flipped_bytes_are_answered(void **state)
{
    char *data;
    size_t size;
    int refused = 0;
    fill(*state);
    read_log(*state, &data, &size);
    for (size_t at = 0; at < size; at += 131) {
        struct fault fault = {""};
        struct store *store = NULL;
        data[at] = (char)~data[at];
        write_log(*state, data, size);
        data[at] = (char)~data[at];
        if (store_open(*state, &fault, &store) < 0) {
            assert_non_null(strstr(fault.text, "colloc.db: "));
            refused++;
        } else {
            read_everything(store);
        }
        store_close(store);
    }
    assert_true(refused > 0);
    free(data);
}

static void a_folder_that_is_open_to_all_is_refused(void **state)
{
    assert_int_equal(chmod(*state, 0777), 0);
    assert_refused(*state, EPERM, "chmod o-w");
}

static void a_file_for_a_folder_is_refused(void **state)
{
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/file", (char *)*state);
    assert_int_equal(file_write_atomic(file, "x", 1, 0600), 0);
    assert_refused(file, ENOTDIR, file);
}

/* Root may write anywhere, so the test changes to another user. */
static void a_folder_without_write_permission_is_refused(void **state)
{
    uid_t me = geteuid(), other = me == 0 ? 65534 : me;
    assert_int_equal(chown(*state, other, (gid_t)-1), 0);
    assert_int_equal(chmod(*state, 0500), 0);
    if (me == 0)
        assert_refused(*state, EPERM, "belongs to user 65534");
    assert_int_equal(seteuid(other), 0);
    assert_refused(*state, EACCES, "colloc.lock: Permission denied");
    assert_int_equal(seteuid(me), 0);
    assert_int_equal(chmod(*state, 0700), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(the_folder_is_made_and_the_log_is_private),
        TEST(a_second_opener_is_told_who_has_it),
        TEST(a_child_that_holds_the_lock_for_a_moment_is_waited_for),
        TEST(a_log_of_before_new_kinds_of_events_gets_another_version),
        TEST(a_newer_log_is_refused_and_kept),
        TEST(a_database_of_something_else_is_refused),
        TEST(what_is_no_database_is_refused),
        TEST(a_log_that_was_cut_off_is_refused),
        TEST(a_log_that_was_moved_away_makes_room_for_a_new_one),
        TEST(flipped_bytes_are_answered),
        TEST(a_folder_that_is_open_to_all_is_refused),
        TEST(a_file_for_a_folder_is_refused),
        TEST(a_folder_without_write_permission_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
