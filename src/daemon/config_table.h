/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the daemon's settings. Each row names a field of struct config, the kind of its
 * value (service/setting_kind.h), its default and its help; the file, the command line, --help, the
 * man page and a reload all read it. So a new setting is a field and a row:
 *
 *     {"history", LIVE(history_us), &setting_duration, "TIME", NULL, "how long ended tasks ..."}
 *
 * The settings of the core are rows of core/settings.def. Here each has its place among the others.
 */
#ifndef COLLOC_DAEMON_CONFIG_TABLE_H
#define COLLOC_DAEMON_CONFIG_TABLE_H

#include "core/setting_table.h"
#include "daemon/config.h"
#include "taskfile/option_words.h"

struct config_row {
    const char *name;
    const struct core_setting *core; /* NULL: it is none of the core's */
    size_t offset, size;             /* of the field in struct config */
    bool is_live;                    /* can change while the daemon runs */
    const struct setting_kind *kind;
    const char *takes;
    const char *default_text; /* of a path or list; NULL: config_defaults' value, as text */
    const char *help;
};

enum {
    CONFIG_ROWS_MAX = 192,
    CONFIG_VALUE_SIZE = 640 /* of any value's text: paths are the longest */
};

/* Returns how many rows there are. */
size_t config_row_count(void);

/* Returns row `i`, from 0; of a setting of the core, with what the core's table says. */
struct config_row config_row_at(size_t i);

/* Returns the title of the section that the row begins, or NULL. */
const char *config_row_section(const struct config_row *row);

/* Returns the row as an option of a command line. The only choices that a setting's help lists are
 * policies. */
struct option_spec config_row_spec(const struct config_row *row);

/* Writes the setting's value as text. */
void config_row_format(
    const struct config_row *row, const struct config *config, char *text, size_t size);

#endif
