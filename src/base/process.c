/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads facts of a process from /proc. /proc/PID/stat has the name in brackets, and behind it
 * numbers (proc(5) counts them: 22 is the start time); /proc/PID/status has user ids. The kernel
 * makes both from its own data, so that reading does not wait for the process, even one that hangs
 * in its file system.
 */
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

#define ENTRY_MAX ((size_t)(64 * KIB)) /* chosen: files of proc(5) have a few KiB */

/* The numbers behind the state, by their place in proc(5), where the first is field 4. */
enum {
    STAT_PARENT = 4 - 4,
    STAT_SESSION = 6 - 4,
    STAT_FLAGS = 9 - 4,
    STAT_OWN_USER = 14 - 4,
    STAT_OWN_SYSTEM,
    STAT_CHILDREN_USER,
    STAT_CHILDREN_SYSTEM,
    STAT_START = 22 - 4,
    STAT_RESIDENT = 24 - 4,
    STAT_NUMBERS
};

#define PF_EXITING 0x4 /* of the kernel's linux/sched.h; no header for programs has it */

/* Not by sscanf, which takes four times as long: samplers read this line for many processes. */
static bool parse_numbers(const char *text, unsigned long long numbers[STAT_NUMBERS])
{
    for (int i = 0; i < STAT_NUMBERS; i++) {
        char *end;
        numbers[i] = strtoull(text, &end, 10);
        if (end == text)
            return false;
        text = end;
    }
    return true;
}

int process_parse_stat(const char *text, struct process_stat *ret_stat)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    unsigned long long numbers[STAT_NUMBERS];
    if (!open || !close || close < open)
        return -EPROTO;
    const char *state = close + 1 + strspn(close + 1, " ");
    if (!*state || !parse_numbers(state + 1, numbers))
        return -EPROTO;
    *ret_stat = (struct process_stat){0};
    span_copy(
        (struct span){open + 1, (size_t)(close - open - 1)}, ret_stat->name, sizeof ret_stat->name);
    text_make_printable(ret_stat->name, '?');
    ret_stat->state = *state;
    ret_stat->parent = (pid_t)numbers[STAT_PARENT];
    ret_stat->is_exiting = numbers[STAT_FLAGS] & PF_EXITING;
    ret_stat->session = (pid_t)numbers[STAT_SESSION];
    ret_stat->cpu_ticks = numbers[STAT_OWN_USER] + numbers[STAT_OWN_SYSTEM] +
                          numbers[STAT_CHILDREN_USER] + numbers[STAT_CHILDREN_SYSTEM];
    ret_stat->start_ticks = numbers[STAT_START];
    ret_stat->resident_pages = numbers[STAT_RESIDENT];
    return 0;
}

/* Returns the number in a field of proc(5) behind the state; 0: there is none. */
static unsigned long long number_of_field(const char *stat, int field)
{
    const char *at = strrchr(stat, ')');
    at = at ? at + 1 : "";
    for (int i = 3; i < field && *at; i++) {
        at += strspn(at, " ");
        at += strcspn(at, " ");
    }
    return strtoull(at, NULL, 10);
}

bool process_parse_hides_environ(const char *stat)
{
    enum { VSIZE = 23, ENV_START = 50, ENV_END = 51 };
    unsigned long long start = number_of_field(stat, ENV_START);
    unsigned long long end = number_of_field(stat, ENV_END);
    return number_of_field(stat, VSIZE) > 0 && (end == 0 || start != end);
}

uint64_t process_parse_program(const char *stat)
{
    enum { START_STACK = 28 };
    return number_of_field(stat, START_STACK);
}

uint64_t process_read_program(pid_t pid)
{
    char path[64], text[2048]; /* chosen: 52 numbers have 1,100 bytes at most */
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return file_read_start(path, text, sizeof text) > 0 ? process_parse_program(text) : 0;
}

int process_parse_uid(const char *status, uid_t *ret_uid)
{
    const char *line = strstr(status, "\nUid:");
    unsigned uid;
    if (!line || sscanf(line + strlen("\nUid:"), "%u", &uid) != 1)
        return -EPROTO;
    *ret_uid = uid;
    return 0;
}

int process_read_entry(pid_t pid, const char *name, size_t max, char **ret_text, size_t *ret_size)
{
    char path[64];
    *ret_text = NULL;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int r = file_read(path, max, NULL, ret_text, ret_size);
    return r == -ENOENT ? -ESRCH : r;
}

bool process_await_environ(pid_t pid)
{
    char path[64], text[2048]; /* chosen: 52 numbers have 1,100 bytes at most */
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    bool is_hidden = file_read_start(path, text, sizeof text) > 0 &&
                     process_parse_hides_environ(text);
    if (is_hidden)
        poll(NULL, 0, 1); /* chosen: execve takes less, unless it waits for a file system */
    return is_hidden;
}

int process_read_environ(pid_t pid, size_t max, char **ret_text, size_t *ret_size)
{
    for (int tries = 0; tries < 100; tries++) {
        int r = process_read_entry(pid, "environ", max, ret_text, ret_size);
        if (r < 0 || *ret_size > 0 || !process_await_environ(pid))
            return r;
        free(*ret_text);
    }
    *ret_text = NULL;
    return -EAGAIN;
}

int process_read_stat(pid_t pid, struct process_stat *ret_stat)
{
    char path[64], text[1024]; /* chosen: the numbers up to field 24 have 500 bytes at most */
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    ssize_t n = file_read_start(path, text, sizeof text);
    if (n < 0)
        return n == -ENOENT ? -ESRCH : (int)n;
    return process_parse_stat(text, ret_stat);
}

/* The descriptor is of the process that has the pid now, so are what is read afterwards and the
 * signal. */
int process_signal(struct process_id id, int signal)
{
    struct process_stat now;
    int pidfd = (int)syscall(SYS_pidfd_open, id.pid, 0);
    if (pidfd < 0 && errno == ESRCH)
        return -ESRCH;
    int r = process_read_stat(id.pid, &now);
    if (r == 0 && now.start_ticks != id.born)
        r = -ESRCH;
    if (r == 0 && (pidfd >= 0 ? syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0)
                              : kill(id.pid, signal)) < 0) /* no pidfds, or none left */
        r = -errno;
    if (pidfd >= 0)
        close(pidfd);
    return r;
}

int64_t process_queued_us(pid_t pid)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    if (file_read_start(path, text, sizeof text) <= 0)
        return 0;
    const char *queued = strchr(text, ' '); /* behind the time that it ran; both in nanoseconds */
    return queued ? (int64_t)(strtoull(queued, NULL, 10) / 1000) : 0;
}

const char *process_find_variable(const char *environment, size_t size, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    return NULL;
}

int process_walk(int (*visit)(pid_t pid, void *context), void *context)
{
    DIR *folder = opendir("/proc");
    int r = 0;
    int64_t pid;
    if (!folder)
        return -errno;
    for (const struct dirent *entry; r == 0 && (entry = readdir(folder));)
        if (parse_int64(entry->d_name, 1, INT32_MAX, &pid) == 0)
            r = visit((pid_t)pid, context);
    closedir(folder);
    return r;
}

static int64_t age_of(unsigned long long start_ticks)
{
    struct timespec now;
    double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    clock_gettime(CLOCK_BOOTTIME, &now);
    double age_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
                   (double)start_ticks / ticks_per_s;
    return age_s > 0 ? (int64_t)(age_s * (double)SECOND_US) : 0;
}

static int read_stat(pid_t pid, struct process_facts *facts)
{
    struct process_stat stat;
    int r = process_read_stat(pid, &stat);
    if (r < 0)
        return r;
    memcpy(facts->name, stat.name, sizeof facts->name);
    facts->age_us = age_of(stat.start_ticks);
    return 0;
}

static int read_uid(pid_t pid, struct process_facts *facts)
{
    size_t size;
    char *text;
    int r = process_read_entry(pid, "status", ENTRY_MAX, &text, &size);
    if (r == 0)
        r = process_parse_uid(text, &facts->uid);
    free(text);
    return r;
}

int process_read(pid_t pid, struct process_facts *ret_facts)
{
    int r = read_stat(pid, ret_facts);
    if (r == 0)
        r = read_uid(pid, ret_facts);
    return r == -EACCES ? -ESRCH : r;
}
