/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings by table. A row names a member of a struct, the kind of its values and its help; a kind
 * says once which texts are values, and how a value is written. Files, command lines, help and man
 * pages read the rows:
 *
 *     {"history", SETTING_AT(struct config, history_us), &setting_duration, "TIME", "how long ..."}
 *
 * core/settings.def has the rows of the core's settings, daemon/config.c and slurm/slurm_config.c
 * those of the programs.
 */
#ifndef COLLOC_BASE_SETTING_H
#define COLLOC_BASE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting_type {
    SETTING_FLAG,   /* bool: "yes" or "no" */
    SETTING_COUNT,  /* int */
    SETTING_CHOICE, /* int, or an enumeration: one of `names` */
    SETTING_NUMBER, /* double */
    SETTING_SIZE,   /* int64_t, bytes */
    SETTING_TIME,   /* int64_t, microseconds */
    SETTING_TEXT,   /* char[size] */
    SETTING_OTHER   /* what `parse` and `format` take it for */
};

struct setting_kind {
    enum setting_type type;
    const char *expects; /* for the message about another text: "give ..." */

    /* Of numbers, bytes and microseconds; max 0: as much as the member can hold. */
    double min, max;

    /* Of a choice, by value; a NULL among them is no value. */
    const char *const *names;
    int n_names;

    bool (*is_valid)(const char *text); /* of a text; NULL: each that is short enough */

    /* Instead of the form of the type; or NULL. `parse` returns 0 or -EINVAL. */
    int (*parse)(const char *text, void *member);
    void (*format)(const void *member, char *text, size_t size);
};

/* The kinds that need nothing but this component. */
extern const struct setting_kind setting_text, setting_size, setting_duration, setting_period,
    setting_hours, setting_fraction, setting_count, setting_percentage, setting_flag;

struct setting {
    const char *name;
    size_t offset, size; /* of the member, in bytes */
    const struct setting_kind *kind;
    const char *argument; /* what help calls the value: "TIME" */
    const char *help;     /* one sentence without a full stop */
};

/* The offset and the size of a member, for a row. */
#define SETTING_AT(type, member) offsetof(type, member), sizeof(((type *)0)->member)

/*
 * Parses a value of the kind into a member.
 *
 * size: of the member, in bytes
 *
 * Returns 0, or -EINVAL and leaves the member as it is.
 */
int setting_parse(const struct setting_kind *kind, const char *text, void *member, size_t size);

/* Writes the member as a text that setting_parse reads, as exact as it is. */
void setting_format(const struct setting_kind *kind, const void *member, char *text, size_t size);

/* Reads and writes flags, counts, choices, sizes and times as integers. */
int64_t setting_integer(const struct setting_kind *kind, const void *member);
void setting_put_integer(const struct setting_kind *kind, int64_t value, void *member);

/* Returns the largest such integer that the member can hold and the kind's type allows. */
int64_t setting_integer_max(const struct setting_kind *kind);

#endif
