/* SPDX-License-Identifier: Apache-2.0 */
/* A command line for people to read: a name for it, and its text. */
#ifndef COLLOC_TASKFILE_COMMAND_LINE_H
#define COLLOC_TASKFILE_COMMAND_LINE_H

#include <stddef.h>

enum { COMMAND_NAME_SIZE = 256, COMMAND_TEXT_MAX = 1000 };

/*
 * Returns the name of the program that the command runs: `train.py` for `torchrun --nproc-per-node
 * 2 train.py`, `pkg.mod` for `python -m pkg.mod`, otherwise the program's own name.
 *
 * words: the command and its arguments, NULL-terminated, at least one; any bytes.
 *
 * Returns `name`: UTF-8 text without control characters, "command" where the words have none.
 */
const char *command_line_name(const char *const *words, char name[COMMAND_NAME_SIZE]);

/*
 * The command line with each word quoted as a shell needs it, so that it can be copied and run.
 *
 * words: as above.
 *
 * Returns the text, which the caller frees, or NULL when memory is out. A text of more than
 * COMMAND_TEXT_MAX bytes is cut between characters and ends in "...".
 */
char *command_line_text(const char *const *words);

#endif
