/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memfd. Huge pages of such files are the system's to allow (shmem_enabled), which most
 * distributions leave at "never" or "advise". A tmpfs has another option for them, so where
 * memfds get none, the file is made in a tmpfs that is mounted nowhere and ends with its last file.
 */
#include "checkpoint/room_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define FILE_NAME "colloc-room" /* as /proc/PID/maps of its process shows it */

/* ---- where the file is made ---- */

static bool memfds_get_no_huge_pages(void)
{
    char *text;
    size_t size;
    if (file_read("/sys/kernel/mm/transparent_hugepage/shmem_enabled", 256, NULL, &text, &size) < 0)
        return true;
    bool is_never = strstr(text, "[never]") != NULL;
    free(text);
    return is_never;
}

/* Returns a descriptor of its root, or -errno. Linux 5.2 and the rights of root are needed. */
static int mount_nowhere(void)
{
    int mount = -1, fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -errno;
    if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "huge", "always", 0) == 0 &&
        syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", "0", 0) == 0 && /* no limit */
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
    int r = mount < 0 ? -errno : mount;
    close(fs);
    return r;
}

static int create_in_tmpfs(void)
{
    int root = mount_nowhere();
    if (root < 0)
        return root;
    int fd = openat(root, FILE_NAME, O_CREAT | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd;
    unlinkat(root, FILE_NAME, 0);
    close(root);
    return r;
}

bool room_file_has_huge_pages(void)
{
    if (!memfds_get_no_huge_pages())
        return true;
    int root = mount_nowhere();
    if (root >= 0)
        close(root);
    return root >= 0;
}

int room_file_create(void)
{
    int fd = memfds_get_no_huge_pages() ? create_in_tmpfs() : -1;
    if (fd < 0)
        fd = memfd_create(FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd < 0 ? -errno : fd;
}

/* ---- its pages ---- */

static void prefer_node(char *memory, size_t bytes, int node)
{
    unsigned long nodes[16] = {0};
    const int bits = 8 * sizeof *nodes;
    if (node < 0 || node >= (int)(8 * sizeof nodes))
        return;
    nodes[node / bits] = 1UL << node % bits;
    syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, nodes, 8 * sizeof nodes, 0);
}

/* Older kernels have no call for it: one byte of each page is written. */
static int touch_pages(char *memory, size_t bytes)
{
    if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (errno != EINVAL)
        return -errno;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < bytes; i += page)
        ((volatile char *)memory)[i] = 0;
    return 0;
}

/* The mapping begins at a multiple of a huge page, as its part of the file does. */
int room_file_grow(int fd, uint64_t from, uint64_t to, int node)
{
    size_t bytes = to - from, range_bytes = bytes + ROOM_FILE_GRAIN;
    if (ftruncate(fd, (off_t)to) < 0)
        return -errno;
    char *range = mmap(NULL, range_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED)
        return -errno;
    char *at = range + -(uintptr_t)range % ROOM_FILE_GRAIN;
    int r = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)from) == at
                ? 0
                : -errno;
    if (r == 0) {
        madvise(at, bytes, MADV_HUGEPAGE);
        prefer_node(at, bytes, node);
        r = touch_pages(at, bytes);
    }
    munmap(range, range_bytes);
    return r;
}

/* A file of a tmpfs takes no seals. The daemon maps only files that no process has yet, so a size
 * that a process changes is its own matter. */
int room_file_seal(int fd)
{
    int r = fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return r == 0 || errno == EPERM ? 0 : -errno;
}

void room_file_empty(int fd, uint64_t bytes)
{
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
}
