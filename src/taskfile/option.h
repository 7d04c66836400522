/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options by table. One table serves the command line, `#COLLOC` lines of a script, help, the man
 * page and shell completion. colloc and collocd parse their command lines with it.
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
    OPTION_TEXT,     /* `max` bytes; `choices` are hints for completion */
    OPTION_CHOICE,   /* one of `choices` */
    OPTION_FILE,     /* a path */
    OPTION_INTEGER,  /* min..max */
    OPTION_SIZE,     /* base/units.h parse_size; bytes, min..max; `needs_unit` */
    OPTION_DURATION, /* base/units.h parse_duration; microseconds, min..max */
    OPTION_SHARE,    /* 0 to 1, in `number` as millionths */
    OPTION_TIMES,    /* a factor, in `number` as millionths; min..max */
    OPTION_MOMENT,   /* base/moment.h moment_parse_ahead; microseconds since 1970, min..max */
};

/*
 * Choice number `i` (from 0) of a list that another component keeps. Returns NULL behind the last.
 */
typedef const char *option_choice_at(size_t i);

struct option_spec {
    const char *name;  /* without dashes */
    const char *alias; /* another name, or NULL */
    char letter;       /* 'J' for -J, or 0 */
    enum option_kind kind;
    const char *argument; /* what help calls the value: "N", "FILE"; NULL for flags */
    const char *help;     /* one sentence without a full stop; "{choices}" stands for the list of
                             choices, "{default}" for default_text */
    const char *field;    /* key in the daemon's request (docs/protocol.md), or NULL */
    int64_t min, max;     /* of numbers; of texts max is the limit in bytes, 0: 4096 */
    const char *default_text; /* the value when none is given, as it would be written; or NULL */
    const char *shown_as;     /* of a task option that the event log keeps as it was submitted: its
                                 heading in `colloc show`, at most 12 characters; or NULL */
    bool needs_unit;          /* of a size in an option word: "12" alone is refused */
    bool is_optional;         /* of a text: without a value, when an option follows or nothing, it
                                 is the empty text */
    const char *const *choices;                  /* NULL-terminated, or NULL */
    option_choice_at *choice_at;                 /* instead of `choices`; or NULL */
    const char *(*canonical)(const char *text);  /* of a choice: the name in `choices` for an alias,
                                                   NULL for none; may be NULL */
    const char *(*wrong_part)(const char *text); /* of a choice or a number: what is wrong with a
                                                    text that is none but looks like one, and what
                                                    is allowed; NULL if it does not; may be NULL */
};

/*
 * A row of a table of options: one with a value of OPTION_##KIND, and a flag; then its other
 * members, with the help last.
 *
 *     [TRACE_JOBS] = OPTION("jobs", INTEGER, "N", .min = 1, .max = 1000, .help = "number of jobs"),
 *     [TRACE_NOW] = FLAG_OPTION("now", .help = "do not wait"),
 */
#define OPTION(NAME, KIND, ARGUMENT, ...)                                                          \
    {                                                                                              \
        .name = NAME, .kind = OPTION_##KIND, .argument = ARGUMENT, __VA_ARGS__                     \
    }
#define FLAG_OPTION(NAME, ...)                                                                     \
    {                                                                                              \
        .name = NAME, .kind = OPTION_FLAG, __VA_ARGS__                                             \
    }

struct option_value {
    bool set;
    int line;       /* of the task file that gives it; 0: it is from elsewhere */
    int64_t number; /* flag, integer, bytes, microseconds, millionths */
    char *text;     /* text, choice, file; on the heap */
};

/* The value, or another one if the option is not given. */
static inline int64_t option_number_or(const struct option_value *value, int64_t otherwise)
{
    return value->set ? value->number : otherwise;
}

static inline const char *option_text_or(const struct option_value *value, const char *otherwise)
{
    return value->set ? value->text : otherwise;
}

enum { OPTION_HELP_MAX = 512 };

/* A choice of the option, from either list. Returns NULL behind the last, or when there is none. */
const char *option_choice(const struct option_spec *spec, size_t i);

/*
 * Writes the help of an option, with its choices and its default where the text names them.
 *
 * size: OPTION_HELP_MAX is enough for all; a longer text is cut
 *
 * Returns `buffer`.
 */
const char *option_help_text(const struct option_spec *spec, char *buffer, size_t size);

/*
 * Refuses a text that is none of the option's choices.
 *
 * shown: the option's name in the message: "--policy" or "policy"
 *
 * Returns -EINVAL with a fault that lists the choices, or says which part of the text is wrong.
 */
int option_refuse_choice(
    const struct option_spec *spec, const char *shown, const char *text, struct fault *fault);

/* Returns the largest number of bytes in a value of the option, which is a text. */
size_t option_text_max(const struct option_spec *spec);

/* Is the text one of the option's choices, or an alias of one? */
bool option_is_choice(const struct option_spec *spec, const char *text);

/* A table and where options_take (option_words.h) puts its values: as many as specs; NULL for
 * option_next alone. */
struct option_set {
    const struct option_spec *specs;
    size_t count;
    struct option_value *values;
};

/*
 * Sets a value from text, checked as its spec says.
 *
 * shown: the option's name in messages: "--batch" or "batch_size"
 *
 * Returns 0, or -errno with a fault.
 */
int option_set_text(const struct option_spec *spec, const char *shown, const char *text,
    struct option_value *value, struct fault *fault);

/* Returns the option of this name or alias, or NULL. */
const struct option_spec *option_find(
    const struct option_spec *specs, size_t count, const char *name);

/*
 * The candidate with the fewest typing mistakes in `name`: start with {0}, try all candidates, then
 * `best` is it, or NULL when none is near.
 */
struct near_name {
    const char *best;
    size_t distance;
};
void near_name_try(struct near_name *near, const char *name, const char *candidate);

/* Overwrites values by those set in `winners`; both are of the same table. Returns 0 or -ENOMEM. */
int option_values_overlay(
    struct option_value *values, const struct option_value *winners, size_t count);

/* Frees and zeroes the values. */
void option_values_fini(struct option_value *values, size_t count);

#endif
