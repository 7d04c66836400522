/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a line into words as a shell does: blanks, 'single', "double" and \ quoting, # starts a
 * comment. Nothing is expanded. */
#ifndef COLLOC_TASKFILE_WORD_SPLIT_H
#define COLLOC_TASKFILE_WORD_SPLIT_H

#include "base/fault.h"
#include "base/text.h"

/*
 * ret_words: NULL-terminated; one block of memory, which the caller frees
 *
 * Returns the number of words, or -errno with a fault: an unclosed quote, or a backslash at the
 * end.
 */
int word_split(struct span line, struct fault *fault, const char ***ret_words);

#endif
