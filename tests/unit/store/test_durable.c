/* SPDX-License-Identifier: Apache-2.0 */
/* Committed rows are durable: after SIGKILL at any moment, and after any system call of SQLite has
 * failed. */
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

enum { ROUNDS = 25, EVENTS = 3, TASKS_MAX = 100000 };

/* Three events for one task, in one transaction. */
static int write_task(struct store *store, uint64_t task, struct fault *fault)
{
    struct event events[EVENTS] = {
        submit_event(task, 1), place_event(task, 2), plain_event(EVENT_STARTED, task, 3)};
    int r = store_begin(store, fault);
    for (int i = 0; r == 0 && i < EVENTS; i++)
        r = store_append(store, &events[i], 1, NULL, fault);
    return r < 0 ? r : store_commit(store, fault);
}

static int count_events(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    uint64_t *whole = context;
    static const enum event_kind order[EVENTS] = {EVENT_SUBMIT, EVENT_PLACE, EVENT_STARTED};
    assert_int_equal(event->task, *whole / EVENTS + 1);
    assert_int_equal(event->kind, order[*whole % EVENTS]);
    ++*whole;
    return 0;
}

/* How many tasks are in the log; each with all its events, none left out. */
static uint64_t count_tasks(struct store *store)
{
    struct fault fault = {""};
    uint64_t events = 0;
    if (store_replay(store, find_policy, count_events, &events, &fault) < 0)
        fail_msg("%s", fault.text);
    assert_int_equal(events % EVENTS, 0);
    return events / EVENTS;
}

/* Writes tasks from `task` on until it is killed. Reports each through the pipe once it is durable.
 */
static _Noreturn void write_for_ever(const char *folder, uint64_t task, int pipe_fd)
{
    struct store *store;
    if (store_open(folder, NULL, &store) < 0)
        _exit(1);
    for (; task < TASKS_MAX; task++)
        if (write_task(store, task, NULL) < 0 || write(pipe_fd, &task, sizeof task) != sizeof task)
            break;
    _exit(1);
}

static void nothing_committed_is_lost_by_kill_9(void **state)
{
    uint64_t acknowledged = 0;
    srand(1);
    for (int round = 0; round < ROUNDS; round++) {
        int fds[2], status;
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0)
            write_for_ever(*state, acknowledged + 1, fds[1]);
        close(fds[1]);
        for (int n = rand() % 20; n >= 0; n--)
            assert_int_equal(read(fds[0], &acknowledged, sizeof acknowledged), sizeof acknowledged);
        for (volatile int n = rand() % 300000; n > 0; n--)
            ;
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        while (read(fds[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged)
            ;
        close(fds[0]);

        struct store *store = open_log(*state);
        uint64_t there = count_tasks(store);
        assert_true(there == acknowledged || there == acknowledged + 1);
        acknowledged = there;
        store_close(store);
    }
}

/* The system calls below SQLite fail once `calls_left` of them were made; -1: none fails. */
static int calls_left = -1, errno_then, syncs;
static bool has_failed, sync_failed;

static bool fails_now(void)
{
    if (calls_left < 0 || calls_left-- > 0)
        return false;
    calls_left = 0;
    has_failed = true;
    errno = errno_then;
    return true;
}

static void fail_at(int call, int errnum)
{
    calls_left = call;
    errno_then = errnum;
    has_failed = sync_failed = false;
}

static ssize_t try_write(int fd, const void *data, size_t size)
{
    return fails_now() ? -1 : write(fd, data, size);
}

static ssize_t try_pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return fails_now() ? -1 : pwrite(fd, data, size, offset);
}

static int try_ftruncate(int fd, off_t size)
{
    return fails_now() ? -1 : ftruncate(fd, size);
}

/* SQLite offers no hook for this call; this definition takes precedence over the C library's. */
int fdatasync(int fd)
{
    syncs++;
    return fails_now() ? (sync_failed = true, -1) : fsync(fd);
}

static int put_seam(void **state)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    vfs->xSetSystemCall(vfs, "write", (sqlite3_syscall_ptr)try_write);
    vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)try_pwrite);
    vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)try_pwrite);
    vfs->xSetSystemCall(vfs, "ftruncate", (sqlite3_syscall_ptr)try_ftruncate);
    return make_folder(state);
}

static int remove_seam(void **state)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    calls_left = -1;
    vfs->xSetSystemCall(vfs, NULL, NULL);
    return remove_folder(state);
}

/* SQLite does not report why a sync failed. */
static void assert_words(int r, int errnum, const struct fault *fault)
{
    assert_true(r == -errnum || (sync_failed && r == -EIO));
    assert_non_null(strstr(fault->text, "colloc.db: "));
    if (r == -ENOSPC)
        assert_non_null(strstr(fault->text, "the disk is full"));
}

/* Each call of a transaction fails once: the transaction is refused with a text, and can be written
 * again when calls work again. */
static void a_transaction_that_cannot_be_written_never_was(const char *folder, int errnum)
{
    struct store *store = open_log(folder);
    uint64_t task = count_tasks(store);
    int call = 0, refused = 0;
    do {
        struct fault fault = {""};
        task++;
        fail_at(call++, errnum);
        int r = write_task(store, task, &fault);
        calls_left = -1;
        if (r < 0) {
            refused++;
            assert_words(r, errnum, &fault);
            assert_int_equal(count_tasks(store), task - 1);
            assert_int_equal(write_task(store, task, &fault), 0);
        }
        store_close(store);
        store = open_log(folder);
        assert_int_equal(count_tasks(store), task);
    } while (call < 40);
    assert_true(refused >= 5);
    store_close(store);
}

static void a_full_disk_and_a_broken_one_lose_nothing(void **state)
{
    a_transaction_that_cannot_be_written_never_was(*state, ENOSPC);
    a_transaction_that_cannot_be_written_never_was(*state, EIO);
}

/* More than the cache holds is written before the commit. */
static void a_disk_that_fills_up_within_a_transaction_ends_it(void **state)
{
    enum { SIZE = 8 << 20 };
    struct store *store = open_log(*state);
    struct fault fault = {""};
    struct event event = submit_event(1, 1);
    char *data = calloc(1, SIZE), key[65];
    begin(store);
    append(store, event);
    fail_at(0, ENOSPC);
    assert_words(store_put_blob(store, 1, data, SIZE, &fault, key), ENOSPC, &fault);
    calls_left = -1;
    assert_int_equal(store_append(store, &event, 1, NULL, &fault), -EINVAL);
    assert_int_equal(store_commit(store, &fault), -EINVAL);
    assert_int_equal(count_tasks(store), 0);
    assert_int_equal(write_task(store, 1, &fault), 0);
    assert_int_equal(count_tasks(store), 1);
    store_close(store);
    free(data);
}

static void a_commit_waits_for_the_disk(void **state)
{
    struct store *store = open_log(*state);
    for (uint64_t task = 1; task <= 3; task++) {
        begin(store);
        append(store, submit_event(task, 1));
        syncs = 0;
        commit(store);
        assert_true(syncs >= 1);
    }
    store_close(store);
}

static void a_log_that_cannot_be_made_is_refused_in_words(void **state)
{
    int refused = 0;
    do {
        struct fault fault = {""};
        struct store *store = NULL;
        fail_at(refused, ENOSPC);
        int r = store_open(*state, &fault, &store);
        calls_left = -1;
        if (r == 0)
            store_close(store);
        else
            assert_words(r, ENOSPC, &fault);
        refused++;
    } while (has_failed);
    assert_true(refused >= 5);
    struct store *store = open_log(*state);
    assert_int_equal(count_tasks(store), 0);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            nothing_committed_is_lost_by_kill_9, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            a_full_disk_and_a_broken_one_lose_nothing, put_seam, remove_seam),
        cmocka_unit_test_setup_teardown(
            a_disk_that_fills_up_within_a_transaction_ends_it, put_seam, remove_seam),
        cmocka_unit_test_setup_teardown(a_commit_waits_for_the_disk, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            a_log_that_cannot_be_made_is_refused_in_words, put_seam, remove_seam),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
