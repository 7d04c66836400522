/* SPDX-License-Identifier: Apache-2.0 */
/* A command line under construction: a list of words, each from malloc. */
#ifndef COLLOC_CLI_WORD_LIST_H
#define COLLOC_CLI_WORD_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Start with {0}. */
struct word_list {
    char **words;
    size_t n, capacity;
    bool is_cut; /* there was no memory for a word */
};

/* Appends the word, which is from malloc and is the list's from then on; NULL: there was no memory
 * for it. */
void word_list_append(struct word_list *list, char *word);

/* Appends a word. */
void word_list_add(struct word_list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the list with NULL, for exec. Returns false if a word is missing, or NULL would be. */
bool word_list_end(struct word_list *list);

void word_list_fini(struct word_list *list);

#endif
