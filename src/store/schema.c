/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the event log, and how an older version's become this version's. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "store/store_private.h"

/*
 * changes[v] makes version v + 1 out of version v; never edited once released.
 *
 * events      the log itself; all else follows from it, or cannot be known from it
 *   seq         1, 2, 3, ... in the order in which they were applied; forgetting tasks leaves gaps
 *   task        the task that it is about; 0: none
 *   kind        the name of its kind (event_name of core/event.h)
 *   time_us     the core's time; wall_us: microseconds since 1970, for people
 *   body        its members, as JSON (event_json.h)
 *   detail      JSON that the core does not need, such as a submission's script; or NULL
 *   sum         of the row's other values (checksum.c)
 * live        the tasks that have not ended, so that a restart does not read all of history
 *   placed_seq  the event that gave the task the GPUs that it holds now; NULL: it holds none
 * ended       what lists of ended tasks select and sort by; times as in events
 * records     an ended task as the API shows it, as JSON
 * blobs       long texts of tasks; one that several tasks have is there once
 *   key         SHA-256 of `data`, in hex
 * blob_uses   which tasks have which; a blob without a task is removed
 * arrays      tasks `first` to `last`, whose submission is the event of the array's id
 * facts       `forgotten`: how many of the tasks up to the last one are not in the log on purpose;
 *             `forgotten_events`: the same of the events;
 *             `loss`: what it lost, as text (loss.c)
 */
static const char *const changes[] = {
    "CREATE TABLE events(seq INTEGER PRIMARY KEY, task INTEGER NOT NULL, kind TEXT NOT NULL, time_us INTEGER NOT NULL,"
    "  wall_us INTEGER NOT NULL, body TEXT NOT NULL, detail TEXT);"
    "CREATE INDEX events_of_task ON events(task);"
    "CREATE TABLE live(task INTEGER PRIMARY KEY, placed_seq INTEGER);"
    "CREATE TABLE blobs(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, data BLOB NOT NULL);"
    "CREATE TABLE blob_uses(task INTEGER NOT NULL, blob INTEGER NOT NULL, PRIMARY KEY(task, blob)) WITHOUT ROWID;"
    "CREATE INDEX tasks_of_blob ON blob_uses(blob);"
    "CREATE TABLE ended(seq INTEGER PRIMARY KEY, task INTEGER NOT NULL UNIQUE, uid INTEGER NOT NULL, state TEXT NOT "
    "NULL,"
    "  submitted_wall_us INTEGER NOT NULL, ended_wall_us INTEGER NOT NULL, wait_us INTEGER NOT NULL,"
    "  exec_us INTEGER NOT NULL, jct_us INTEGER NOT NULL, oom_count INTEGER NOT NULL);"
    "CREATE INDEX ended_of_user ON ended(uid);"
    "CREATE INDEX ended_at ON ended(ended_wall_us);"
    "CREATE TABLE records(task INTEGER PRIMARY KEY, record TEXT NOT NULL);",

    "ALTER TABLE events ADD COLUMN sum INTEGER;"
    "UPDATE events SET sum = row_sum(seq, task, kind, time_us, wall_us, body, detail);"
    "ALTER TABLE ended ADD COLUMN sum INTEGER;"
    "UPDATE ended SET sum = row_sum(task, uid, state, submitted_wall_us, ended_wall_us, wait_us, exec_us, jct_us, "
    "oom_count);"
    "ALTER TABLE records ADD COLUMN sum INTEGER;"
    "UPDATE records SET sum = row_sum(task, record);"
    "CREATE TABLE facts(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"
    "INSERT INTO facts SELECT 'forgotten', coalesce(max(task), 0) - count(DISTINCT task) FROM events WHERE task > 0;",

    "CREATE TABLE arrays(id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL);",

    /* The tables stay: events of the kinds USAGE, ELIGIBLE, DEPENDENCY, UPDATE, RESERVE and
     * UNRESERVE, which an older colloc does not know. */
    "",

    "INSERT OR REPLACE INTO facts SELECT 'forgotten_events', coalesce(max(seq), 0) - count(*) FROM events;",
};

enum { VERSION = ARRAY_SIZE(changes) };

static int get_number(
    const struct store *store, const char *query, struct fault *fault, int *ret_number)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(store->db, query, -1, &statement, NULL) != SQLITE_OK)
        return statement_fault(store, fault);
    int r = statement_step(store, statement, fault);
    if (r > 0)
        *ret_number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

static int run_sql(const struct store *store, const char *sql, struct fault *fault)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : statement_fault(store, fault);
}

static int change_from(const struct store *store, int version, struct fault *fault)
{
    char set_version[64];
    snprintf(set_version, sizeof set_version, "PRAGMA user_version = %d", (int)VERSION);
    int r = run_sql(store, "BEGIN IMMEDIATE", fault);
    for (; r == 0 && version < (int)VERSION; version++)
        r = run_sql(store, changes[version], fault);
    if (r == 0)
        r = run_sql(store, set_version, fault);
    if (r == 0)
        r = run_sql(store, "COMMIT", fault);
    if (r < 0)
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

/* An empty file, which only this user can read, for SQLite to write into. */
static int create_private(const char *path, struct fault *fault)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    close(fd);
    return 0;
}

static int write_copy(const struct store *store, const char *path, struct fault *fault)
{
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", path);
    int r = sql ? run_sql(store, sql, fault) : fault_set(fault, ENOMEM, "out of memory");
    sqlite3_free(sql);
    int fd = r == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (r == 0 && (fd < 0 || fsync(fd) < 0))
        r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return r;
}

/* Copies the log to "colloc.db.version-2", from which an older colloc can go on. A copy that
 * is there already is of an upgrade that did not happen: it is replaced. */
static int back_up(const struct store *store, int version, struct fault *fault)
{
    char path[PATH_MAX], part[PATH_MAX];
    if (snprintf(path, sizeof path, "%s.version-%d", store->path, version) >= (int)sizeof path ||
        snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return fault_set(fault, ENAMETOOLONG, "%s: too long", store->path);
    int r = create_private(part, fault);
    if (r == 0)
        r = write_copy(store, part, fault);
    if (r == 0 && rename(part, path) < 0)
        r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
    if (r == 0)
        r = file_sync_folder_of(path);
    if (r < 0) {
        unlink(part);
        return fault_prefix(fault, r, "the log cannot be backed up before it is upgraded");
    }
    log_info("%s: of version %d of the log; upgraded to %d, and the backup is %s", store->path,
        version, (int)VERSION, path);
    return 0;
}

int schema_check(const struct store *store, struct fault *fault)
{
    int version = 0;
    int r = get_number(store, "PRAGMA user_version", fault, &version);
    if (r < 0 || version == (int)VERSION)
        return r;
    return fault_set(fault, EPROTO,
        "%s: version %d of the log; this colloc checks version %d: use the colloc that wrote it, or "
        "start this collocd once, which brings it up to date",
        store->path, version, (int)VERSION);
}

int schema_bring_up_to_date(struct store *store, struct fault *fault)
{
    int version = 0, tables = 0;
    int r = get_number(store, "PRAGMA user_version", fault, &version);
    if (r == 0)
        r = get_number(store, "SELECT count(*) FROM sqlite_schema", fault, &tables);
    if (r < 0)
        return r;
    if (version < 0 || (version == 0 && tables > 0))
        return store_damaged(store, fault, "a database of something else, not colloc's event log");
    if (version > (int)VERSION)
        return fault_set(fault, EPROTO,
            "%s: written by a newer colloc (version %d of the log; this one knows up to %d): install that colloc "
            "again, or begin a new log in another folder",
            store->path, version, (int)VERSION);
    if (version > 0 && version < (int)VERSION)
        r = back_up(store, version, fault);
    return r < 0 || version == (int)VERSION ? r : change_from(store, version, fault);
}
