/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of the state folder: said before it is full, once when it is, and what lies on it that
 * a full disk or damage could harm.
 *
 * Each second the file system is asked for its free space and inodes, which costs a system call.
 * Nearly full is one warning; full is one error, however many files cannot be written, until there
 * is room again. The log's reserve (store/reserve.c) is made at the start and again once there is
 * room. Each minute the write-ahead log goes into the database: SQLite ends the recovery of a
 * damaged write-ahead log at the first bad frame, so a short one loses little.
 */
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/daemon.h"

#define PERIOD_MS     1000
#define CHECKPOINT_US (60 * SECOND_US) /* chosen: what may be lost, against an fsync */
#define NEARLY_FULL   0.90             /* chosen, as monitoring systems warn */
#define NO_MORE       0.88             /* below that the next warning is a new one */
#define ROOM_BYTES    ((double)MIB)    /* chosen: with less the disk still counts as full */
#define ROOM_INODES   64

struct space {
    double total_bytes, free_bytes, free_inodes;
    double used_part, used_inodes_part; /* 0 to 1; of what this user may use, as df shows it */
};

static double part(double used, double available)
{
    return used + available > 0 ? used / (used + available) : 0;
}

/* File systems without a fixed number of inodes (btrfs) say that there are none at all. */
static bool get_space(const struct daemon *daemon, struct space *ret_space)
{
    struct statvfs disk;
    if (statvfs(daemon->config.state_dir, &disk) < 0)
        return false;
    *ret_space = (struct space){
        .total_bytes = (double)disk.f_blocks * (double)disk.f_frsize,
        .free_bytes = (double)disk.f_bavail * (double)disk.f_frsize,
        .free_inodes = disk.f_files ? (double)disk.f_favail : ROOM_INODES,
        .used_part = part((double)(disk.f_blocks - disk.f_bfree), (double)disk.f_bavail),
        .used_inodes_part = part((double)(disk.f_files - disk.f_ffree), (double)disk.f_favail),
    };
    return true;
}

static void warn_in_time(struct daemon *daemon, const struct space *space)
{
    bool inodes = space->used_inodes_part > space->used_part;
    double used = inodes ? space->used_inodes_part : space->used_part;
    if (used >= NEARLY_FULL && !daemon->disk_nearly_full)
        log_warning("the disk of %s is %.0f %% full%s: make room, or shorten the setting history",
            daemon->config.state_dir, used * 100, inodes ? " (its inodes are)" : "");
    if (used >= NEARLY_FULL || used < NO_MORE)
        daemon->disk_nearly_full = used >= NEARLY_FULL;
}

/* A disk of a few times the reserve would always count as full: it goes without one. */
static void go_without_reserve(struct daemon *daemon, const struct space *space, const char *why)
{
    bool too_small = space->total_bytes < 4 * (double)daemon->config.log_reserve_bytes;
    driver_set_reserve_in_use(daemon->driver, !too_small);
    log_warning("no reserve for the event log: %s: %s", why,
        too_small ? "while the disk is full, nothing can be recorded (setting log-reserve)"
                  : "collocd accepts no tasks until there is space");
}

static void make_reserve(struct daemon *daemon, const struct space *space)
{
    struct fault fault = {0};
    bool again = driver_reserve_is_in_use(daemon->driver);
    if (store_make_reserve(daemon->store, daemon->config.log_reserve_bytes, &fault) == 0) {
        driver_set_reserve_in_use(daemon->driver, false);
        if (again)
            log_info("the disk of %s has room again: the log's reserve is back",
                daemon->config.state_dir);
    } else if (!again) {
        go_without_reserve(daemon, space, fault.text);
    }
}

static void on_period(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    struct space space;
    struct fault fault = {0};
    if (get_space(daemon, &space)) {
        warn_in_time(daemon, &space);
        if (space.free_bytes >= ROOM_BYTES && space.free_inodes >= ROOM_INODES)
            daemon->disk_full = false;
        if (driver_reserve_is_in_use(daemon->driver) &&
            space.free_bytes >= 2 * (double)daemon->config.log_reserve_bytes)
            make_reserve(daemon, &space);
    }
    int64_t now_us = clock_monotonic_us();
    if (driver_log_is_broken(daemon->driver) || now_us - daemon->checkpointed_us < CHECKPOINT_US)
        return;
    daemon->checkpointed_us = now_us;
    if (store_checkpoint(daemon->store, &fault) < 0)
        disk_failed(daemon, fault.text);
}

void disk_failed(struct daemon *daemon, const char *what)
{
    if (!daemon->disk_full)
        log_error("the disk of %s cannot be written: %s (said once until there is room)",
            daemon->config.state_dir, what);
    daemon->disk_full = true;
}

void disk_start(struct daemon *daemon)
{
    struct space space;
    daemon->checkpointed_us = clock_monotonic_us();
    if (get_space(daemon, &space))
        make_reserve(daemon, &space);
    uv_timer_start(&daemon->disk_timer, on_period, 0, PERIOD_MS);
}
