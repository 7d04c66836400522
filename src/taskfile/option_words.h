/* SPDX-License-Identifier: Apache-2.0 */
/* The options at the front of a command line, or of the words of a script's line. */
#ifndef COLLOC_TASKFILE_OPTION_WORDS_H
#define COLLOC_TASKFILE_OPTION_WORDS_H

#include "taskfile/option.h"

/* One option of a command line with its value. */
struct option_word {
    const struct option_spec *spec;
    const struct option_set *set; /* that `spec` is in */
    const char *value; /* text as given, "yes" of a flag alone; borrowed from the words */
    char shown[48];    /* the option as given, for messages: "--batch" or "-b" */
};

/*
 * Splits the next option off words[0..count): "--name=value", "--name value", "-J value",
 * "-Jvalue", or a flag alone. The value is not checked.
 *
 * Returns how many words it takes, 1 or 2; 0 when words[0] is not an option, is "--", or count is
 * 0; or -EINVAL with the option, what is wrong with it and a near name in the fault.
 */
int option_next(const struct option_set *sets, size_t n_sets, const char *const *words, int count,
    struct option_word *ret_word, struct fault *fault);

/* Returns the option name in the sets that `name` may be a typing mistake for, or NULL. */
const char *option_find_near(const struct option_set *sets, size_t n_sets, const char *name);

/*
 * Reads all options at the front of words[0..count) into the sets' values, each checked as its spec
 * says. Stops before the first word that is not an option, and before "--". A later option
 * overrides an earlier one.
 *
 * Returns how many words were read, or -errno with the option, what is wrong with it and a near
 * name in the fault.
 */
int options_take(const struct option_set *sets, size_t n_sets, const char *const *words, int count,
    struct fault *fault);

/* Reads the option at the front, if there is one. Returns how many words it takes, 0 or -errno as
 * options_take. */
int option_take_one(const struct option_set *sets, size_t n_sets, const char *const *words,
    int count, struct fault *fault);

#endif
