/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cap on output that is kept in the attempt's folder, which is on the disk of the event log.
 *
 * The task appends to the file and may hold it open for days, in any number of processes, so the
 * file cannot be replaced. Instead, the older half becomes a hole: a hole takes no space, and
 * neither the file's size nor any offset changes. Readers skip it (SEEK_DATA). A file system
 * without holes (NFS before 4.2) can only empty the file, so the newer half is dropped, too.
 *
 * Example, with a cap of 64 KiB: at 65 KiB the first 32 KiB are dropped; at 100 KiB, of which 68
 * KiB are kept, the first 68 KiB. (Holes end where a block does: up to 4 KiB more are kept.)
 */
#ifndef COLLOC_EXEC_OUTPUT_CAP_H
#define COLLOC_EXEC_OUTPUT_CAP_H

#include <stdint.h>

/* One file under the cap. */
struct output_cap {
    int fd;            /* -1: there is no such file */
    int64_t begin;     /* offset of the first byte that is still kept */
    int64_t max_bytes; /* the cap */
    int64_t dropped;   /* bytes that were dropped with the whole file, where there are no holes */
};

/*
 * Opens a file of the attempt folder, where the output is kept there.
 *
 * folder:    of the attempt.
 * name:      "stdout" or "stderr".
 * max_bytes: the cap, positive.
 *
 * Returns the cap; its `fd` is -1 where the output goes to another place.
 */
struct output_cap output_cap_open(const char *folder, const char *name, int64_t max_bytes);

/* Drops the older half if the file has reached the cap. If its owner has truncated the file, the
 * kept part begins at 0 again. To be called often: output between two calls exceeds the cap. */
void output_cap_apply(struct output_cap *cap);

/*
 * Drops all of a file but its end, also while the task writes to it.
 *
 * path:       of a file in an attempt's folder.
 * left_bytes: of its end, rounded up to a block.
 *
 * Returns the bytes of the disk that are free now, or -errno.
 */
int64_t output_drop(const char *path, int64_t left_bytes);

/*
 * Calculates where the kept part of a file begins.
 *
 * begin: where it began before.
 * size:  of the file in bytes, the hole included.
 *
 * Returns an offset; `begin` while the cap is not reached.
 */
int64_t output_cap_begin(int64_t begin, int64_t size, int64_t max_bytes);

#endif
