/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps output in the state folder from filling the disk: the older half of a file becomes a hole.
 * Holes are made by fallocate(2): ext4, XFS, btrfs, ZFS and tmpfs can. On another file system the
 * whole file is dropped, and it begins anew with a line that says so.
 */
#include "exec/output_cap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"

enum {
    BLOCK_BYTES = 4096
}; /* of the usual file systems; a hole in part of a block frees nothing */
enum { STAT_BLOCK_BYTES = 512 }; /* stat(2) */

struct output_cap output_cap_open(const char *folder, const char *name, int64_t max_bytes)
{
    char path[PATH_MAX];
    struct output_cap cap = {.fd = -1, .max_bytes = max_bytes};
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
        cap.fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    return cap;
}

int64_t output_cap_begin(int64_t begin, int64_t size, int64_t max_bytes)
{
    if (size < begin)
        begin = 0;
    if (size - begin < max_bytes)
        return begin;
    int64_t half = size - max_bytes / 2;
    return half - half % BLOCK_BYTES;
}

/* The task and this line append: neither overwrites what the other wrote. */
static void drop_all(struct output_cap *cap, int64_t size)
{
    char size_text[32];
    if (ftruncate(cap->fd, 0) < 0)
        return;
    cap->begin = 0;
    cap->dropped += size;
    dprintf(cap->fd, "colloc: %s of the output before this were dropped (setting kept-output)\n",
        format_size(cap->dropped, size_text, sizeof size_text));
}

void output_cap_apply(struct output_cap *cap)
{
    struct stat status;
    if (cap->fd < 0 || fstat(cap->fd, &status) < 0)
        return;
    int64_t begin = output_cap_begin(cap->begin, status.st_size, cap->max_bytes);
    int r = 0;
    if (begin > cap->begin)
        r = fallocate(cap->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, begin);
    if (r == 0)
        cap->begin = begin;
    else if (errno == EOPNOTSUPP)
        drop_all(cap, status.st_size);
}

int64_t output_drop(const char *path, int64_t left_bytes)
{
    struct stat status;
    struct output_cap cap = {
        .fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    int64_t before_bytes = 0, freed_bytes = cap.fd < 0 ? -errno : 0;
    if (cap.fd >= 0 && fstat(cap.fd, &status) == 0 && S_ISREG(status.st_mode)) {
        before_bytes = (int64_t)status.st_blocks * STAT_BLOCK_BYTES;
        int64_t begin = (int64_t)status.st_size - left_bytes;
        int r = begin < BLOCK_BYTES ? 0
                                    : fallocate(cap.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                          0, begin - begin % BLOCK_BYTES);
        if (r < 0 && errno == EOPNOTSUPP)
            drop_all(&cap, status.st_size);
        if (fstat(cap.fd, &status) == 0)
            freed_bytes = before_bytes - (int64_t)status.st_blocks * STAT_BLOCK_BYTES;
    }
    if (cap.fd >= 0)
        close(cap.fd);
    return freed_bytes;
}
