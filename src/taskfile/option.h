/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options by table. One table serves a command line, `#COLLOC` lines in a script, help text, the
 * man page and shell completion.
 */
#ifndef COLLOC_TASKFILE_OPTION_H
#define COLLOC_TASKFILE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum { MILLION = 1000000 };

enum option_kind {
    OPTION_FLAG,     /* --hold, --hold=no */
    OPTION_TEXT,     /* `choices` are hints for completion */
    OPTION_CHOICE,   /* one of `choices` */
    OPTION_FILE,     /* a path */
    OPTION_INTEGER,  /* min..max */
    OPTION_SIZE,     /* base/units.h parse_size; bytes, min..max; `needs_unit` */
    OPTION_DURATION, /* base/units.h parse_duration; microseconds, min..max */
    OPTION_SHARE,    /* 0 to 1, in `number` as millionths */
};

struct option_spec {
    const char *name;  /* without dashes */
    const char *alias; /* another name, or NULL */
    char letter;       /* 'J' for -J, or 0 */
    enum option_kind kind;
    const char *argument; /* what help calls the value: "N", "FILE"; NULL for flags */
    const char *help;     /* one sentence without a full stop */
    const char *field;    /* key in the daemon's request (docs/protocol.md), or NULL */
    int64_t min, max;
    bool needs_unit;            /* of a size in an option word: "12" alone is refused */
    const char *const *choices; /* NULL-terminated, or NULL */
    const char *(*canonical)(const char *text); /* of a choice: the name in `choices` for an alias,
                                                   NULL for none; may be NULL */
};

struct option_value {
    bool set;
    int64_t number; /* flag, integer, bytes, microseconds, millionths */
    char *text;     /* text, choice, file; on the heap */
};

/* A table and where its values go (as many as specs). */
struct option_set {
    const struct option_spec *specs;
    size_t count;
    struct option_value *values;
};

/*
 * Reads the options at the front of words[0..count): "--name=value", "--name value", "-J value",
 * "-Jvalue", flags alone. Stops before the first word that is none, and before "--". A later option
 * overrides an earlier one. Returns how many words were read, or -errno with the option, what is
 * wrong with it and a near name in the fault.
 */
int options_take(const struct option_set *sets, size_t n_sets, const char *const *words, int count,
    struct fault *fault);

/* Sets one value from text, checked as its spec says. `shown` names it in faults: "--batch" or
 * "batch_size". */
int option_set_text(const struct option_spec *spec, const char *shown, const char *text,
    struct option_value *value, struct fault *fault);

/* By name or alias; NULL when there is none. */
const struct option_spec *option_find(
    const struct option_spec *specs, size_t count, const char *name);

/* Of two names the near one: keeps in *best the candidate with the fewest typing mistakes from
 * `name`, if they are few.
 */
struct near_name {
    const char *best;
    size_t distance;
};
void near_name_try(struct near_name *near, const char *name, const char *candidate);

/* Copies into `values` those that are set in `winners`, both over the same table. 0 or -ENOMEM. */
int option_values_overlay(
    struct option_value *values, const struct option_value *winners, size_t count);

void option_values_fini(struct option_value *values, size_t count);

#endif
