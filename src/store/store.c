/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a log. The order makes sure that nothing is changed before it is known to be colloc's:
 *
 *     1. the folder belongs to this user, and no other can replace the files in it;
 *     2. colloc.lock is locked: no other process has the log open;
 *     3. the database is a log that is whole, or there is none yet;
 *     4. its tables are brought up to this version;
 *     5. the lock file gets our process id, for the message to the next process.
 *
 * SQLite runs with a write-ahead log and synchronous = FULL: a commit is one write and one fsync at
 * the end of that file.
 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "store/private_file.h"
#include "store/store_private.h"

#define LOCK_PATIENCE_US 1000000 /* chosen: children were seen to hold it for up to 90 ms */
#define LOCK_PAUSE_US    10000

/* Another user with write permission to the folder could replace the log by a file or a link. */
static int check_folder(const char *folder, struct fault *fault)
{
    struct stat status;
    int r = file_make_folders(folder, 0700);
    if (r == 0 && stat(folder, &status) < 0)
        r = -errno;
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", folder, strerror(-r));
    if (status.st_uid != geteuid())
        return fault_set(fault, EPERM,
            "%s: belongs to user %u, but this runs as user %u: name another folder for the event log",
            folder, (unsigned)status.st_uid, (unsigned)geteuid());
    if (status.st_mode & S_IWOTH)
        return fault_set(fault, EPERM,
            "%s: everybody may write to it: `chmod o-w %s`, or name another folder", folder,
            folder);
    return 0;
}

/*
 * A lock by flock belongs to every process that has the descriptor. A child that a collocd had just
 * forked when it was killed holds the lock until it execs or closes its descriptors: so a lock that
 * is taken is tried again for a second. Returns 0 or the errno.
 */
static int lock_patiently(int fd)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_US * 1000};
    for (int64_t waited_us = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited_us += LOCK_PAUSE_US) {
        if (errno != EWOULDBLOCK || waited_us >= LOCK_PATIENCE_US)
            return errno;
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int open_lock(const char *path, struct fault *fault, int *ret_fd)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int errnum = lock_patiently(fd);
    if (errnum == 0) {
        *ret_fd = fd;
        return 0;
    }
    char owner[16] = "unknown";
    struct signature signature;
    signature_read(fd, &signature);
    close(fd);
    if (errnum != EWOULDBLOCK)
        return fault_set(fault, errnum, "%s: %s", path, strerror(errnum));
    if (signature.pid > 0)
        snprintf(owner, sizeof owner, "%d", signature.pid);
    return fault_set(fault, EBUSY,
        "%s: another collocd (process %s) has this event log open: stop it first, or name another "
        "folder",
        path, owner);
}

static void warn_of_new_log(const struct store *store)
{
    struct signature signature;
    signature_read(store->lock_fd, &signature);
    if (signature.task > 0)
        log_warning("%s: it is missing, and a new event log begins. The former one had tasks up to "
                    "%" PRId64 ": none of them is known any more, and processes of those that run "
                    "are ended. If it was not moved away on purpose, restore it from a backup",
            store->path, signature.task);
}

/*
 * A log that is empty although it was in use was truncated: SQLite would silently begin a new one.
 * A log that is not there at all was moved away on purpose, as far as is known.
 */
static int check_not_cut_off(const struct store *store, struct fault *fault)
{
    struct stat lock, log;
    bool is_there = lstat(store->path, &log) == 0;
    if (is_there && log.st_size == 0 && fstat(store->lock_fd, &lock) == 0 && lock.st_size > 0)
        return store_damaged(store, fault, "empty, but it was not");
    if (!is_there)
        warn_of_new_log(store);
    if (!is_there && ftruncate(store->lock_fd, 0) < 0)
        return fault_set(fault, errno, "%s: %s", store->path, strerror(errno));
    return 0;
}

/* Takes the lock, and makes the database's file readable by its owner only: environments may hold
 * secrets. */
static int claim_folder(struct store *store, const char *folder, struct fault *fault)
{
    char lock_path[PATH_MAX];
    if (snprintf(lock_path, sizeof lock_path, "%s/colloc.lock", folder) >= (int)sizeof lock_path)
        return fault_set(fault, ENAMETOOLONG, "%s: the path is too long", folder);
    snprintf(store->path, sizeof store->path, "%s/colloc.db", folder);
    int r = open_lock(lock_path, fault, &store->lock_fd);
    if (r == 0)
        r = check_not_cut_off(store, fault);
    if (r < 0)
        return r;
    r = private_file_make(store->path, fault);
    if (r < 0)
        return r;
    store->reserve_bytes = reserve_find(store);
    signature_read(store->lock_fd, &store->signature);
    return 0;
}

static int check_integrity(struct store *store, struct fault *fault)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &statement, NULL) != SQLITE_OK)
        return statement_fault(store, fault);
    int r = statement_step(store, statement, fault);
    const char *found = r > 0 ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (r >= 0)
        r = found && strcmp(found, "ok") == 0
                ? 0
                : store_damaged(store, fault, "damaged: %s", found ? found : "no answer");
    sqlite3_finalize(statement);
    return r;
}

static int open_database(struct store *store, struct fault *fault)
{
    if (sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
            NULL) != SQLITE_OK)
        return statement_fault(store, fault);
    sqlite3_busy_timeout(store->db, 1000);
    if (checksum_register(store) != SQLITE_OK)
        return statement_fault(store, fault);
    int r = check_integrity(store, fault);
    if (r == 0 &&
        sqlite3_exec(store->db,
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -1024;"
            "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 8388608",
            NULL, NULL, NULL) != SQLITE_OK)
        r = statement_fault(store, fault);
    if (r == 0)
        r = schema_bring_up_to_date(store, fault);
    if (r == 0)
        r = statements_prepare(store, fault);
    if (r == 0)
        r = store_read_last(store, fault);
    return r == 0 ? loss_find(store, fault) : r;
}

static void close_database(struct store *store)
{
    statements_finalize(store);
    sqlite3_close(store->db);
    store->db = NULL;
}

int store_open(const char *folder, struct fault *fault, struct store **ret_store)
{
    int r = check_folder(folder, fault);
    if (r < 0)
        return r;
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return fault_set(fault, ENOMEM, "out of memory");
    store->lock_fd = -1;
    r = claim_folder(store, folder, fault);
    if (r == 0)
        r = open_database(store, fault);
    if (r == -ENOSPC && store_release_reserve(store)) {
        close_database(store);
        r = open_database(store, fault);
    }
    if (r < 0) {
        store_close(store);
        return r;
    }
    signature_write(store);
    *ret_store = store;
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    close_database(store);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store);
}
