/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk and a kernel that fail now and then: loaded before the C library (LD_PRELOAD), it makes
 * system calls of collocd fail, and of no other program that inherits it.
 *
 * COLLOC_TEST_FAULTS="SEED:PER_MILLION" lets each call fail by chance, ":@N" only the Nth of the
 * process. What fails: open and mkdir (EMFILE, ENOSPC, EIO), fork and posix_spawn (EAGAIN, ENOMEM),
 * and for regular files write, pwrite (EIO, ENOSPC, or half of the bytes are written), fsync and
 * fdatasync (EIO, ENOSPC). Sockets, pipes and eventfds do not fail: no disk is behind them. Each
 * fault adds a line, the call's name, to the file that COLLOC_TEST_FAULTS_LOG names.
 *
 * The choice is a hash of the seed and the number of the call, so it does not depend on which
 * thread calls first.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MILLION 1000000
#define SHORT   (-1) /* instead of an errno: write half */

static struct {
    uint64_t seed;
    uint64_t nth; /* 0: by chance */
    uint64_t per_million;
    int log;
    atomic_uint_fast64_t calls;
} faults = {.log = -1};

__attribute__((constructor)) static void faults_read(void)
{
    const char *text = getenv("COLLOC_TEST_FAULTS"), *log = getenv("COLLOC_TEST_FAULTS_LOG");
    if (!text || strcmp(program_invocation_short_name, "collocd") != 0)
        return;
    char *rest;
    faults.seed = strtoull(text, &rest, 10);
    if (rest[0] == ':' && rest[1] == '@')
        faults.nth = strtoull(rest + 2, NULL, 10);
    else if (rest[0] == ':')
        faults.per_million = strtoull(rest + 1, NULL, 10);
    if (log)
        faults.log = (int)syscall(
            SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* splitmix64: well mixed bits of a number. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* An error of the n when this call is to fail, else 0. */
static int choose(const char *call, const int *errors, int n)
{
    if (faults.nth == 0 && faults.per_million == 0)
        return 0;
    uint64_t number = atomic_fetch_add(&faults.calls, 1) + 1;
    uint64_t bits = mix(faults.seed * MILLION + number);
    if (faults.nth ? number != faults.nth : bits % MILLION >= faults.per_million)
        return 0;
    char line[64];
    int size = snprintf(line, sizeof line, "%s\n", call);
    if (faults.log >= 0)
        syscall(SYS_write, faults.log, line, (size_t)size);
    return errors[(bits >> 32) % (uint64_t)n];
}

#define CHOOSE(call, ...)                                                                          \
    choose(call, (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static bool is_regular(int fd)
{
    struct stat status;
    return fd > STDERR_FILENO && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static int choose_write(const char *call, int fd)
{
    return is_regular(fd) ? CHOOSE(call, EIO, ENOSPC, SHORT) : 0;
}

/* The next function of that name, which dlsym gives as an object pointer. */
#define NEXT(name, function) *(void **)&(function) = dlsym(RTLD_NEXT, name)

static int fail(int errnum)
{
    errno = errnum;
    return -1;
}

/* ---- writing ---- */

ssize_t write(int fd, const void *data, size_t size)
{
    ssize_t (*next)(int, const void *, size_t);
    int fault = choose_write("write", fd);
    if (fault > 0)
        return fail(fault);
    NEXT("write", next);
    return next(fd, data, fault == SHORT && size > 1 ? size / 2 : size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    ssize_t (*next)(int, const void *, size_t, off64_t);
    int fault = choose_write("pwrite", fd);
    if (fault > 0)
        return fail(fault);
    NEXT("pwrite64", next);
    return next(fd, data, fault == SHORT && size > 1 ? size / 2 : size, offset);
}

int fsync(int fd)
{
    int (*next)(int);
    int fault = is_regular(fd) ? CHOOSE("fsync", EIO, ENOSPC) : 0;
    if (fault)
        return fail(fault);
    NEXT("fsync", next);
    return next(fd);
}

int fdatasync(int fd)
{
    int (*next)(int);
    int fault = is_regular(fd) ? CHOOSE("fdatasync", EIO, ENOSPC) : 0;
    if (fault)
        return fail(fault);
    NEXT("fdatasync", next);
    return next(fd);
}

/* ---- making ---- */

static int open_or_fail(int folder, const char *path, int flags, mode_t mode)
{
    int (*next)(int, const char *, int, ...);
    int fault = CHOOSE("open", EMFILE, EIO, ENOSPC);
    if (fault == ENOSPC && !(flags & O_CREAT))
        fault = EMFILE;
    if (fault)
        return fail(fault);
    NEXT("openat64", next);
    return next(folder, path, flags, mode);
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_or_fail(AT_FDCWD, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_or_fail(folder, path, flags, mode);
}

int mkdir(const char *path, mode_t mode)
{
    int (*next)(const char *, mode_t);
    int fault = CHOOSE("mkdir", ENOSPC, EIO);
    if (fault)
        return fail(fault);
    NEXT("mkdir", next);
    return next(path, mode);
}

/* ---- starting processes ---- */

pid_t fork(void)
{
    pid_t (*next)(void);
    int fault = CHOOSE("fork", EAGAIN, ENOMEM);
    if (fault)
        return fail(fault);
    NEXT("fork", next);
    return next();
}

int posix_spawn(pid_t *ret_pid, const char *path, const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
    int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *,
        const posix_spawnattr_t *, char *const[], char *const[]);
    int fault = CHOOSE("posix_spawn", EAGAIN, ENOMEM);
    if (fault)
        return fault;
    NEXT("posix_spawn", next);
    return next(ret_pid, path, actions, attributes, argv, env);
}
