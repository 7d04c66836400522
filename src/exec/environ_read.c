/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child must not allocate, and may be killed while it reads. So it reads into memory that it
 * shares with its parent, which takes the text only when the child has answered in time. A child
 * that the kernel keeps has its own reference to that memory.
 */
#include "exec/environ_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/process.h"
#include "exec/limited_visit.h"

enum { ENVIRON_MAX = 6 << 20 }; /* execve accepts no more (execve(2)) */

struct shared {
    int result; /* 0 or -errno */
    size_t size;
    char text[ENVIRON_MAX + 1];
};

/* Returns 0 or -errno. */
static int read_all(int fd, struct shared *shared)
{
    for (ssize_t n; shared->size < sizeof shared->text; shared->size += (size_t)n) {
        n = read(fd, shared->text + shared->size, sizeof shared->text - shared->size);
        if (n <= 0)
            return n < 0 ? -errno : 0;
    }
    return -EFBIG;
}

/* Goes on until the variables show, or the time is over. */
static bool visit_process(pid_t pid, void *context)
{
    struct shared *shared = context;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    do {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        shared->result = fd >= 0 ? read_all(fd, shared) : errno == ENOENT ? -ESRCH : -errno;
        if (fd >= 0)
            close(fd);
    } while (shared->result == 0 && shared->size == 0 && process_await_environ(pid));
    return true;
}

static bool never_goes_on(void *context, size_t n_unknown)
{
    return false;
}

/* The kernel shows nothing of a process that has ended, as of one that was started without any
 * variable. Does not block. Returns 0, -ESRCH, or another -errno. */
static int check_lives(pid_t pid)
{
    struct process_stat stat;
    int r = process_read_stat(pid, &stat);
    return r == 0 && process_has_ended(&stat) ? -ESRCH : r;
}

/* Returns 0 or -errno. */
static int copy_text(const struct shared *shared, char **ret_text, size_t *ret_size)
{
    char *text = malloc(shared->size + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, shared->text, shared->size);
    text[shared->size] = '\0';
    *ret_text = text;
    *ret_size = shared->size;
    return 0;
}

int environ_read(pid_t pid, char **ret_text, size_t *ret_size)
{
    *ret_text = NULL;
    struct shared *shared = mmap(
        NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -errno;
    const struct limited_visit visit = {.pids = &pid,
        .n = 1,
        .limit_ms = VISIT_READ_MS,
        .visit = visit_process,
        .goes_on = never_goes_on,
        .context = shared};
    int r = limited_visit_run(&visit, NULL);
    if (r >= 0)
        r = r == 0 ? -ETIMEDOUT : shared->result;
    if (r == 0 && shared->size == 0)
        r = check_lives(pid);
    if (r == 0)
        r = copy_text(shared, ret_text, ret_size);
    munmap(shared, sizeof *shared);
    return r;
}
