/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of the state folder: warnings about its space, the event log's reserve, checkpoints. */
#ifndef COLLOC_DAEMON_DISK_H
#define COLLOC_DAEMON_DISK_H

#include <uv.h>

#include "base/reading.h"
#include "daemon/config.h"
#include "daemon/driver.h"
#include "store/store.h"

struct disk;

/* Creates the part; all is borrowed and outlives it. Returns NULL when memory is out. */
struct disk *disk_create(
    uv_loop_t *loop, const struct config *config, struct store *store, struct driver *driver);

/* Makes the log's reserve, and from now on checks the disk each second. */
void disk_start(struct disk *disk);

/* Ends that. NULL is fine. */
void disk_close(struct disk *disk);

/* Releases the part once the loop has run after disk_close. NULL is fine. */
void disk_destroy(struct disk *disk);

/* A file system's size, and what this user may still write to it. */
struct disk_space {
    struct reading total_bytes, available_bytes;
};

/* Returns what the last check found. */
struct disk_space disk_get_space(const struct disk *disk);

/* A file of the state folder could not be written: logged once until the disk has space again.
 * what: the file, and why. */
void disk_failed(struct disk *disk, const char *what);

#endif
