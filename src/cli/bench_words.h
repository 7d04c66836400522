/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a Python program of `colloc bench`. */
#ifndef COLLOC_CLI_BENCH_WORDS_H
#define COLLOC_CLI_BENCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Start with {0}. */
struct bench_words {
    char **list;
    size_t n, capacity;
    bool is_cut; /* there was no memory for a word */
};

/* Appends the word, which is from malloc and is the list's from then on; NULL: there was no memory
 * for it. */
void bench_words_append(struct bench_words *words, char *word);

/* Appends a word. */
void bench_words_add(struct bench_words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends "--NAME=VALUE", where `name` has the dashes. value: NULL adds nothing. */
void bench_words_add_option(struct bench_words *words, const char *name, const char *value);

/* The same for a number; 0 adds nothing. */
void bench_words_add_number(struct bench_words *words, const char *name, double value);

/*
 * Becomes the program, a module and its arguments, and releases the words.
 *
 * interpreter: NULL: python3
 *
 * Returns an exit code only if that fails, after printing why.
 */
int bench_words_become(struct bench_words *words, const char *interpreter);

#endif
