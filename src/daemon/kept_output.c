/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the pool counts the files of all attempts' folders and drops what is chosen: on a
 * machine with many ended tasks that takes longer than a turn of the loop. It does so each half
 * minute, and each second while the disk is nearly full and that helps.
 *
 * Example: a limit of 10 GiB, and a user with 6 GiB of yesterday, 3 GiB of this morning and 4 GiB
 * of a running task. Yesterday's goes, but for its last 16 KiB; 7 GiB stay.
 */
#include "daemon/kept_output.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/state_dir.h"
#include "exec/output_cap.h"
#include "service/aligned_timer.h"

#define PERIOD_MS   1000              /* chosen: as the disk is checked */
#define SWEEP_US    (30 * SECOND_US)  /* chosen: a limit is exceeded for that long at most */
#define LOG_US      (600 * SECOND_US) /* chosen: one line in ten minutes */
#define NEARLY_FULL 0.10              /* of the disk that is free; disk.c warns then, too */
#define ENOUGH      0.12              /* of the disk; less is freed until then */
#define SPARE       0.01              /* of the disk; chosen: others' data has filled it then */

enum { STAT_BLOCK_BYTES = 512 }; /* stat(2) */

static const char *const names[] = {"stdout", "stderr"};

/* What the thread works on; the loop does not touch it meanwhile. */
struct sweep {
    char state_dir[sizeof((struct config *)NULL)->state_dir];
    struct kept_limits limits;
    struct kept_file *files;
    size_t n, capacity;
    int64_t n_dropped, freed_bytes; /* the answers */
    uid_t uid;                      /* of the last one */
};

struct kept_output {
    const struct config *config;
    const struct disk *disk;
    uv_timer_t timer;
    uv_work_t work;
    bool is_working;
    int64_t swept_us, logged_us; /* 0: not yet */
    struct sweep sweep;
};

/* ---- the choice ---- */

struct kept_user {
    int64_t bytes;
    size_t next, end; /* its files that are not dropped */
};

static int compare_files(const void *a, const void *b)
{
    const struct kept_file *one = a, *other = b;
    if (one->uid != other->uid)
        return one->uid < other->uid ? -1 : 1;
    return one->changed_us < other->changed_us ? -1 : one->changed_us > other->changed_us;
}

static size_t group_by_user(const struct kept_file *files, size_t n, struct kept_user *users)
{
    size_t n_users = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || files[i].uid != files[i - 1].uid)
            users[n_users++] = (struct kept_user){.next = i};
        users[n_users - 1].bytes += files[i].bytes;
        users[n_users - 1].end = i + 1;
    }
    return n_users;
}

/* Drops the user's oldest file. Returns how much that frees. */
static int64_t drop_oldest(struct kept_file *files, struct kept_user *user)
{
    struct kept_file *file = &files[user->next++];
    int64_t freed_bytes = file->bytes - KEPT_OUTPUT_LEFT;
    if (freed_bytes <= 0)
        return 0;
    file->is_dropped = true;
    user->bytes -= freed_bytes;
    return freed_bytes;
}

/* NULL: all are left alone. */
static struct kept_user *find_largest(struct kept_user *users, size_t n, int64_t spare_bytes)
{
    struct kept_user *largest = NULL;
    for (size_t i = 0; i < n; i++)
        if (users[i].next < users[i].end && users[i].bytes > spare_bytes &&
            (!largest || users[i].bytes > largest->bytes))
            largest = &users[i];
    return largest;
}

void kept_output_choose(struct kept_file *files, size_t n, const struct kept_limits *limits)
{
    struct kept_user *users = calloc(n + 1, sizeof *users), *largest;
    int64_t freed_bytes = 0;
    if (!users)
        return;
    if (n > 0)
        qsort(files, n, sizeof *files, compare_files);
    size_t n_users = group_by_user(files, n, users);
    for (size_t i = 0; i < n_users && limits->user_bytes; i++)
        while (users[i].bytes > limits->user_bytes && users[i].next < users[i].end)
            freed_bytes += drop_oldest(files, &users[i]);
    while (freed_bytes < limits->free_bytes &&
           (largest = find_largest(users, n_users, limits->spare_bytes)))
        freed_bytes += drop_oldest(files, largest);
    free(users);
}

/* ---- the thread ---- */

static void add_file(struct sweep *sweep, uint64_t task, int attempt, int stream)
{
    char folder[STATE_PATH_SIZE], path[STATE_PATH_SIZE + 16];
    struct stat status;
    state_dir_attempt(sweep->state_dir, task, attempt, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/%s", folder, names[stream]);
    if (lstat(path, &status) < 0 || !S_ISREG(status.st_mode))
        return;
    if (sweep->n == sweep->capacity) {
        size_t capacity = sweep->capacity ? 2 * sweep->capacity : 256;
        struct kept_file *larger = reallocarray(sweep->files, capacity, sizeof *larger);
        if (!larger)
            return;
        sweep->files = larger;
        sweep->capacity = capacity;
    }
    sweep->files[sweep->n++] = (struct kept_file){.task = task,
        .attempt = attempt,
        .is_stderr = stream == 1,
        .uid = status.st_uid,
        .bytes = (int64_t)status.st_blocks * STAT_BLOCK_BYTES,
        .changed_us = (int64_t)status.st_mtim.tv_sec * SECOND_US + status.st_mtim.tv_nsec / 1000};
}

/* The attempts of a task, or the tasks: entries that are numbers. */
static void visit_numbers(struct sweep *sweep, const char *path, uint64_t task)
{
    char folder[STATE_PATH_SIZE];
    DIR *entries = opendir(path);
    int64_t number;
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        if (parse_int64(entry->d_name, 1, task ? INT32_MAX : INT64_MAX, &number) < 0)
            continue;
        if (task) {
            add_file(sweep, task, (int)number, 0);
            add_file(sweep, task, (int)number, 1);
        } else {
            snprintf(folder, sizeof folder, "%s/tasks/%lld", sweep->state_dir, (long long)number);
            visit_numbers(sweep, folder, (uint64_t)number);
        }
    }
    if (entries)
        closedir(entries);
}

static void drop_file(struct sweep *sweep, const struct kept_file *file)
{
    char folder[STATE_PATH_SIZE], path[STATE_PATH_SIZE + 16];
    state_dir_attempt(sweep->state_dir, file->task, file->attempt, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/%s", folder, names[file->is_stderr]);
    int64_t freed_bytes = output_drop(path, KEPT_OUTPUT_LEFT);
    if (freed_bytes <= 0)
        return;
    sweep->n_dropped++;
    sweep->freed_bytes += freed_bytes;
    sweep->uid = file->uid;
}

static void run_sweep(uv_work_t *work)
{
    struct kept_output *kept = work->data;
    struct sweep *sweep = &kept->sweep;
    char path[STATE_PATH_SIZE];
    snprintf(path, sizeof path, "%s/tasks", sweep->state_dir);
    visit_numbers(sweep, path, 0);
    kept_output_choose(sweep->files, sweep->n, &sweep->limits);
    for (size_t i = 0; i < sweep->n; i++)
        if (sweep->files[i].is_dropped)
            drop_file(sweep, &sweep->files[i]);
}

/* ---- the loop ---- */

static void on_swept(uv_work_t *work, int status)
{
    struct kept_output *kept = work->data;
    const struct sweep *sweep = &kept->sweep;
    int64_t now_us = clock_monotonic_us();
    char size[32];
    free(sweep->files);
    kept->is_working = false;
    kept->swept_us = now_us;
    if (!sweep->n_dropped || (kept->logged_us && now_us - kept->logged_us < LOG_US))
        return;
    kept->logged_us = now_us;
    log_warning("%s of output in the state folder were dropped, in %lld files, the last of uid %u: "
                "the disk is nearly full, or the user is above kept-output-per-user",
        format_size(sweep->freed_bytes, size, sizeof size), (long long)sweep->n_dropped,
        (unsigned)sweep->uid);
}

static int64_t lacking_bytes(const struct disk_space *space)
{
    double total = reading_or(space->total_bytes, 0);
    double available = reading_or(space->available_bytes, total);
    return available < NEARLY_FULL * total ? (int64_t)(ENOUGH * total - available) : 0;
}

static void on_period(uv_timer_t *timer)
{
    struct kept_output *kept = timer->data;
    const struct disk_space space = disk_get_space(kept->disk);
    int64_t lacking = lacking_bytes(&space), now_us = clock_monotonic_us();
    bool has_helped = lacking && kept->sweep.n_dropped;
    aligned_timer_start(timer, on_period, PERIOD_MS);
    if (kept->is_working || (kept->swept_us && !has_helped && now_us - kept->swept_us < SWEEP_US))
        return;
    kept->sweep = (struct sweep){
        .limits = {.user_bytes = kept->config->kept_output_user_bytes,
            .free_bytes = lacking,
            .spare_bytes = (int64_t)(SPARE * reading_or(space.total_bytes, 0))}};
    memcpy(kept->sweep.state_dir, kept->config->state_dir, sizeof kept->sweep.state_dir);
    kept->is_working = uv_queue_work(timer->loop, &kept->work, run_sweep, on_swept) == 0;
}

struct kept_output *kept_output_create(
    uv_loop_t *loop, const struct config *config, const struct disk *disk)
{
    struct kept_output *kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    *kept = (struct kept_output){.config = config, .disk = disk};
    uv_timer_init(loop, &kept->timer);
    kept->timer.data = kept->work.data = kept;
    uv_timer_start(&kept->timer, on_period, PERIOD_MS, 0);
    return kept;
}

void kept_output_close(struct kept_output *kept)
{
    if (kept && !uv_is_closing((uv_handle_t *)&kept->timer))
        uv_close((uv_handle_t *)&kept->timer, NULL);
}

void kept_output_destroy(struct kept_output *kept)
{
    free(kept);
}
