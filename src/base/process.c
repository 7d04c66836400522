/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc/PID/stat (the name in brackets; field 22 is the start time) and /proc/PID/status
 * (user ids). The kernel makes both from its own data, so that reading does not wait for the
 * process, even one that hangs in its file system.
 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

static void make_printable(char *text)
{
    text_mend(text);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

int process_parse_stat(
    const char *stat, char name[PROCESS_NAME_SIZE], unsigned long long *ret_start_ticks)
{
    enum { START_FIELD = 22, FIRST_BEHIND_NAME = 3 };
    const char *open = strchr(stat, '('), *close = strrchr(stat, ')');
    if (!open || !close || close < open)
        return -EPROTO;
    span_copy((struct span){open + 1, (size_t)(close - open - 1)}, name, PROCESS_NAME_SIZE);
    make_printable(name);
    const char *field = close + 1;
    for (int i = FIRST_BEHIND_NAME; i < START_FIELD && *field; i++) {
        field += strspn(field, " ");
        field += strcspn(field, " ");
    }
    return sscanf(field, "%llu", ret_start_ticks) == 1 ? 0 : -EPROTO;
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

static int read_text(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    ssize_t n = file_read_start(path, text, size);
    if (n < 0)
        return n == -ENOENT || n == -EACCES ? -ESRCH : (int)n;
    return 0;
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

int process_read(pid_t pid, struct process_facts *ret_facts)
{
    char text[4096];
    unsigned long long start_ticks;
    int r = read_text(pid, "stat", text, sizeof text);
    if (r == 0)
        r = process_parse_stat(text, ret_facts->name, &start_ticks);
    if (r < 0)
        return r;
    ret_facts->age_us = age_of(start_ticks);
    r = read_text(pid, "status", text, sizeof text);
    return r == 0 ? process_parse_uid(text, &ret_facts->uid) : r;
}
