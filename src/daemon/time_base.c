/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the core's clock from the file `clock` of the state folder and the machine's clocks. The
 * kernel's boot id, a new random UUID at each boot (random(4)), says whether the file is of this
 * boot.
 */
#include "daemon/time_base.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#define FILE_LIMIT 256

/* Chosen: servers are seldom off for longer, and a wait that is a day too long does little harm. */
#define LEAP_MAX_US DAY_US

static bool is_believed(const struct time_now *now)
{
    int64_t leap_us = now->wall_us - now->last_us;
    return now->last_us == 0 || (leap_us > 0 && (leap_us <= LEAP_MAX_US || now->is_synchronised));
}

struct time_base time_base_choose(const struct time_base *kept, const struct time_now *now)
{
    struct time_base base;
    if (kept && *kept->boot_id && strcmp(kept->boot_id, now->boot_id) == 0 &&
        now->boot_us + kept->offset_us >= now->last_us)
        return *kept;
    memcpy(base.boot_id, now->boot_id, sizeof base.boot_id);
    base.offset_us = (is_believed(now) ? now->wall_us : now->last_us) - now->boot_us;
    return base;
}

bool time_base_parse(const char *text, struct time_base *ret_base)
{
    char end;
    return sscanf(text, "%39s %" SCNd64 "%c", ret_base->boot_id, &ret_base->offset_us, &end) == 3 &&
           end == '\n' && ret_base->offset_us > INT64_MIN / 2 &&
           ret_base->offset_us < INT64_MAX / 2;
}

static void read_boot_id(char *ret_id, size_t size)
{
    char *text;
    size_t length;
    ret_id[0] = '\0';
    if (file_read("/proc/sys/kernel/random/boot_id", FILE_LIMIT, NULL, &text, &length) < 0)
        return;
    snprintf(ret_id, size, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

static bool read_kept(const char *path, struct time_base *ret_base)
{
    char *text;
    size_t length;
    if (file_read(path, FILE_LIMIT, NULL, &text, &length) < 0)
        return false;
    bool good = time_base_parse(text, ret_base);
    free(text);
    return good;
}

static void write_kept(const char *path, const struct time_base *base)
{
    char text[FILE_LIMIT];
    int n = snprintf(text, sizeof text, "%s %" PRId64 "\n", base->boot_id, base->offset_us);
    int r = file_write_atomic(path, text, (size_t)n, 0600);
    if (r < 0)
        log_warning("%s: %s: after a restart times follow the wall clock", path, strerror(-r));
}

struct time_base time_base_open(const char *state_dir, int64_t last_us)
{
    char path[PATH_MAX];
    struct time_base kept;
    struct time_now now = {
        .boot_us = clock_monotonic_us(), .wall_us = clock_wall_us(), .last_us = last_us};
    struct timex timex = {0};
    int clock_state = adjtimex(&timex);
    now.is_synchronised = clock_state >= 0 && clock_state != TIME_ERROR;
    snprintf(path, sizeof path, "%s/clock", state_dir);
    read_boot_id(now.boot_id, sizeof now.boot_id);
    bool is_there = read_kept(path, &kept);
    struct time_base base = time_base_choose(is_there ? &kept : NULL, &now);
    bool is_new = !is_there || memcmp(&kept, &base, sizeof base) != 0;
    if (*base.boot_id && is_new)
        write_kept(path, &base);
    return base;
}
