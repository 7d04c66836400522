/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the disk of the event log, so that a full one is noticed before a write fails. Each
 * second one system call reads the file system's free space and inodes. A nearly full disk is one
 * warning; a full one is one error, however many files cannot be written, until there is space
 * again. The log's reserve (store/reserve.c) is made at the start and again once there is space.
 * Each minute the write-ahead log goes into the database: SQLite ends the recovery of a damaged
 * write-ahead log at the first bad frame, so a short one loses little.
 */
#include "daemon/disk.h"

#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "service/aligned_timer.h"

#define PERIOD_MS     1000             /* chosen */
#define CHECKPOINT_US (60 * SECOND_US) /* chosen: what may be lost, against an fsync */
#define NEARLY_FULL   0.90             /* chosen, as monitoring systems warn */
#define NO_MORE       0.88             /* below that the next warning is a new one */
#define LEAST_BYTES   ((double)MIB)    /* chosen: with less the disk still counts as full */
#define LEAST_INODES  64

struct disk {
    const struct config *config;
    struct store *store;
    struct driver *driver;
    uv_timer_t timer;
    bool is_full, is_nearly_full; /* as the log has it */
    int64_t checkpointed_us;
    struct disk_space space; /* at the last check */
};

struct space {
    double total_bytes, free_bytes, free_inodes;
    double used_part, used_inodes_part; /* 0 to 1; of what this user may use, as df shows it */
};

static double used_share(double used, double available)
{
    return used + available > 0 ? used / (used + available) : 0;
}

/* File systems without a fixed number of inodes (btrfs) say that there are none at all. */
static bool get_space(const struct disk *disk, struct space *ret_space)
{
    struct statvfs status;
    if (statvfs(disk->config->state_dir, &status) < 0)
        return false;
    *ret_space = (struct space){
        .total_bytes = (double)status.f_blocks * (double)status.f_frsize,
        .free_bytes = (double)status.f_bavail * (double)status.f_frsize,
        .free_inodes = status.f_files ? (double)status.f_favail : LEAST_INODES,
        .used_part = used_share(
            (double)(status.f_blocks - status.f_bfree), (double)status.f_bavail),
        .used_inodes_part = used_share(
            (double)(status.f_files - status.f_ffree), (double)status.f_favail),
    };
    return true;
}

static void warn_in_time(struct disk *disk, const struct space *space)
{
    bool inodes = space->used_inodes_part > space->used_part;
    double used = inodes ? space->used_inodes_part : space->used_part;
    if (used >= NEARLY_FULL && !disk->is_nearly_full)
        log_warning(
            "the disk of %s is %.0f %% full%s: free some space, or shorten the setting history",
            disk->config->state_dir, used * 100, inodes ? " (its inodes are)" : "");
    if (used >= NEARLY_FULL || used < NO_MORE)
        disk->is_nearly_full = used >= NEARLY_FULL;
}

/* A disk of a few times the reserve would always count as full: there the log has none. */
static void do_without_reserve(struct disk *disk, const struct space *space, const char *why)
{
    bool too_small = space->total_bytes < 4 * (double)disk->config->log_reserve_bytes;
    driver_set_reserve_in_use(disk->driver, !too_small);
    log_warning("no reserve for the event log: %s: %s", why,
        too_small ? "while the disk is full, nothing can be recorded (setting log-reserve)"
                  : "collocd accepts no tasks until there is space");
}

static void make_reserve(struct disk *disk, const struct space *space)
{
    struct fault fault = {0};
    bool again = driver_reserve_is_in_use(disk->driver);
    if (store_make_reserve(disk->store, disk->config->log_reserve_bytes, &fault) == 0) {
        driver_set_reserve_in_use(disk->driver, false);
        if (again)
            log_info("the disk of %s has space again: the log's reserve is back",
                disk->config->state_dir);
    } else if (!again) {
        do_without_reserve(disk, space, fault.text);
    }
}

static void on_period(uv_timer_t *timer)
{
    struct disk *disk = timer->data;
    struct space space;
    struct fault fault = {0};
    aligned_timer_start(timer, on_period, PERIOD_MS);
    disk->space = (struct disk_space){0};
    if (get_space(disk, &space)) {
        disk->space = (struct disk_space){
            reading_of(space.total_bytes), reading_of(space.free_bytes)};
        warn_in_time(disk, &space);
        if (space.free_bytes >= LEAST_BYTES && space.free_inodes >= LEAST_INODES)
            disk->is_full = false;
        if (driver_reserve_is_in_use(disk->driver) &&
            space.free_bytes >= 2 * (double)disk->config->log_reserve_bytes)
            make_reserve(disk, &space);
    }
    int64_t now_us = clock_monotonic_us();
    if (driver_log_is_broken(disk->driver) || now_us - disk->checkpointed_us < CHECKPOINT_US)
        return;
    disk->checkpointed_us = now_us;
    if (store_checkpoint(disk->store, &fault) < 0)
        disk_failed(disk, fault.text);
}

void disk_failed(struct disk *disk, const char *what)
{
    if (!disk->is_full)
        log_error("the disk of %s cannot be written: %s (logged once until there is space)",
            disk->config->state_dir, what);
    disk->is_full = true;
}

struct disk *disk_create(
    uv_loop_t *loop, const struct config *config, struct store *store, struct driver *driver)
{
    struct disk *disk = calloc(1, sizeof *disk);
    if (!disk)
        return NULL;
    *disk = (struct disk){.config = config, .store = store, .driver = driver};
    uv_timer_init(loop, &disk->timer);
    disk->timer.data = disk;
    return disk;
}

void disk_close(struct disk *disk)
{
    if (disk && !uv_is_closing((uv_handle_t *)&disk->timer))
        uv_close((uv_handle_t *)&disk->timer, NULL);
}

void disk_destroy(struct disk *disk)
{
    free(disk);
}

struct disk_space disk_get_space(const struct disk *disk)
{
    return disk->space;
}

void disk_start(struct disk *disk)
{
    struct space space;
    disk->checkpointed_us = clock_monotonic_us();
    if (get_space(disk, &space))
        make_reserve(disk, &space);
    uv_timer_start(&disk->timer, on_period, 0, 0);
}
