/* SPDX-License-Identifier: Apache-2.0 */
/* A line into words as a shell would: blanks, 'single', "double" and \ quoting, # starts a comment.
 * Nothing is expanded. */
#ifndef COLLOC_TASKFILE_WORDS_H
#define COLLOC_TASKFILE_WORDS_H

#include "base/fault.h"
#include "base/text.h"

/*
 * Returns the number of words, or -errno (a quote that is not closed, a backslash at the end).
 * *ret_words is one block, NULL-terminated, freed with free().
 */
int words_split(struct span line, struct fault *fault, const char ***ret_words);

#endif
