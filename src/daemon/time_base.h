/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's clock: time since boot plus an offset that is chosen once a boot and kept in the state
 * folder's file `clock`. A daemon that is started again in the same boot continues with the same
 * clock, whatever the wall clock shows then; so a wrong wall clock neither ends tasks by their time
 * limit nor affects the times of later events.
 *
 * When the offset is chosen, the core's time is near the wall clock's. People see wall time.
 *
 * Example: a machine boots with a clock that is 40 years ahead, until NTP sets it. The core's time
 * never goes back, so a task that was queued before the boot would have waited for 40 years. While
 * the kernel does not call the clock synchronised, a leap of more than a day is not believed: the
 * core's time goes on from the log's last event, and the boot took no time.
 */
#ifndef COLLOC_DAEMON_TIME_BASE_H
#define COLLOC_DAEMON_TIME_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOT_ID_SIZE 40 /* a UUID as text */

struct time_base {
    char boot_id[BOOT_ID_SIZE]; /* "": not known */
    int64_t offset_us;          /* the core's time = time since boot + this */
};

/* The clocks at the daemon's start: all in microseconds. */
struct time_now {
    char boot_id[BOOT_ID_SIZE]; /* "": not known */
    int64_t boot_us, wall_us;
    int64_t last_us;      /* the core's time of the last event in the log; 0: none */
    bool is_synchronised; /* the wall clock, as far as the kernel knows: adjtimex(2) */
};

/*
 * The clock to continue with. Pure.
 *   kept: of the daemon before, or NULL
 * Returns the kept one when it is of this boot and not behind the log; otherwise one that begins at
 * the wall's time, or at the log's last where the wall clock shows less or is not to be believed.
 */
struct time_base time_base_choose(const struct time_base *kept, const struct time_now *now);

/* Parses "BOOT_ID OFFSET\n". Returns false when the text is something else. */
bool time_base_parse(const char *text, struct time_base *ret_base);

/*
 * Chooses by the machine's clocks, and writes the file when the clock is new. Where the file cannot
 * be read or written, times follow the wall clock after the next restart.
 *
 * last_us: as in struct time_now
 */
struct time_base time_base_open(const char *state_dir, int64_t last_us);

#endif
