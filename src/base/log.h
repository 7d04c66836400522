/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's log: a line per message on stderr. Control characters become blanks. When journald
 * reads it, lines begin with a syslog priority instead of the time. */
#ifndef COLLOC_BASE_LOG_H
#define COLLOC_BASE_LOG_H

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* Messages above this level are dropped. Default: LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

/* Writes a message, truncated to 1023 bytes. The macros name the level. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
