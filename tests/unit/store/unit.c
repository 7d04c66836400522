/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store share. A folder is made below TMPDIR and removed with its files. */
#include "unit.h"

#include <ftw.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/policy.h"

static const struct policy magm = {.name = "magm"};
static const struct gpu_identity two_gpus[] = {
    {.uuid = "GPU-a",
        .label = "0",
        .name = "Pretend A100",
        .mem_total_bytes = 40 * GIB,
        .is_place = true},
    {.uuid = "GPU-b",
        .label = "1",
        .name = "Pretend A100",
        .mem_total_bytes = 40 * GIB,
        .is_place = true},
};
static const int second_gpu[] = {1};

int make_folder(void **state)
{
    *state = strdup("/tmp/colloc-test-store-XXXXXX");
    return *state && mkdtemp(*state) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    return remove(path);
}

int remove_folder(void **state)
{
    int r = nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return r;
}

struct store *open_log(const char *folder)
{
    struct fault fault = {""};
    struct store *store;
    if (store_open(folder, &fault, &store) < 0)
        fail_msg("%s", fault.text);
    return store;
}

void assert_refused(const char *folder, int errnum, const char *words)
{
    struct fault fault = {""};
    struct store *store = NULL;
    int r = store_open(folder, &fault, &store);
    if (r != -errnum || !strstr(fault.text, words))
        fail_msg("store_open returned %d (wanted %d) and said: %s", r, -errnum, fault.text);
    assert_null(store);
}

const struct policy *find_policy(const char *name)
{
    return strcmp(name, "magm") == 0 ? &magm : NULL;
}

struct event plain_event(enum event_kind kind, uint64_t task, int64_t time_us)
{
    return (struct event){.kind = kind, .task = task, .time_us = time_us};
}

struct event gpus_event(int64_t time_us)
{
    struct event event = plain_event(EVENT_GPUS, 0, time_us);
    event.gpus.list = two_gpus;
    event.gpus.n = 2;
    return event;
}

struct event submit_event(uint64_t task, int64_t time_us)
{
    struct event event = plain_event(EVENT_SUBMIT, task, time_us);
    event.submit.uid = 1000;
    event.submit.request = (struct task_request){.gpus = 1,
        .policy = &magm,
        .sharing = SHARING_MPS,
        .need = {NEED_ESTIMATED, 5 * GIB},
        .time_limit_us = 60000000,
        .expect = {.smact = reading_of(0.5), .time_us = reading_of(30000000)}};
    return event;
}

struct event place_event(uint64_t task, int64_t time_us)
{
    struct event event = plain_event(EVENT_PLACE, task, time_us);
    event.place.gpus = second_gpu;
    event.place.n = 1;
    event.place.share.sharing = SHARING_MPS;
    return event;
}

struct event end_event(uint64_t task, int64_t time_us)
{
    struct event event = plain_event(EVENT_END, task, time_us);
    event.end = TASK_COMPLETED;
    return event;
}

void append(struct store *store, struct event event)
{
    struct fault fault = {""};
    if (store_append(store, &event, event.time_us + 1000, NULL, &fault) < 0)
        fail_msg("%s", fault.text);
}

void begin(struct store *store)
{
    struct fault fault = {""};
    if (store_begin(store, &fault) < 0)
        fail_msg("%s", fault.text);
}

void commit(struct store *store)
{
    struct fault fault = {""};
    if (store_commit(store, &fault) < 0)
        fail_msg("%s", fault.text);
}

static int note_event(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    char *story = context;
    size_t used = strlen(story);
    snprintf(story + used, 1024 - used, "%s%llu ", event_name(event->kind),
        (unsigned long long)event->task);
    return 0;
}

const char *replayed(struct store *store)
{
    static char story[1024];
    struct fault fault = {""};
    story[0] = '\0';
    if (store_replay(store, find_policy, note_event, story, &fault) < 0)
        fail_msg("%s", fault.text);
    return story;
}

char *path_in(const char *folder, const char *name)
{
    static char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void execute(const char *folder, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path_in(folder, "colloc.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}
