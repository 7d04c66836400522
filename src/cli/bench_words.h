/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a Python program of `colloc bench`. */
#ifndef COLLOC_CLI_BENCH_WORDS_H
#define COLLOC_CLI_BENCH_WORDS_H

#include "cli/word_list.h"

/* Appends "--NAME=VALUE", where `name` has the dashes. value: NULL adds nothing. */
void bench_words_add_option(struct word_list *words, const char *name, const char *value);

/* The same for a number; 0 adds nothing. */
void bench_words_add_number(struct word_list *words, const char *name, double value);

/*
 * Becomes the program, a module and its arguments, and releases the words.
 *
 * interpreter: NULL: python3
 *
 * Returns an exit code only if that fails, after printing why.
 */
int bench_words_become(struct word_list *words, const char *interpreter);

#endif
