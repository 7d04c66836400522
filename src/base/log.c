/* SPDX-License-Identifier: Apache-2.0 */
/* The only global state of the libraries: the log level. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static enum log_level level_max = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    level_max = level;
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error";
    case LOG_LEVEL_WARNING:
        return "warning";
    case LOG_LEVEL_INFO:
        return "info";
    case LOG_LEVEL_DEBUG:
        return "debug";
    }
    return "?";
}

/* A user's text in a message must neither imitate a message nor control a terminal. */
static void blank_controls(char *message)
{
    for (; *message; message++)
        if ((unsigned char)*message < ' ' || *message == 0x7f)
            *message = ' ';
}

void log_write(enum log_level level, const char *format, ...)
{
    if (level > level_max)
        return;

    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    blank_controls(message);

    if (getenv("JOURNAL_STREAM")) {
        fprintf(stderr, "<%d>%s\n", (int)level, message);
        return;
    }
    struct timespec now;
    struct tm local;
    char stamp[32];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(stamp, sizeof stamp, "%F %T", &local);
    fprintf(stderr, "%s.%03ld %s: %s\n", stamp, now.tv_nsec / 1000000, level_name(level), message);
}
