/* SPDX-License-Identifier: Apache-2.0 */
/* What cancel, hold and release share. */
#ifndef COLLOC_CLI_CHANGE_H
#define COLLOC_CLI_CHANGE_H

#include "cli/command.h"

/*
 * POSTs `verb` for every operand and prints "Task 12 STATE" for each. Goes on after a refusal;
 * returns the first code that was not EXIT_OK.
 */
int change_tasks(const struct invocation *invocation, const char *verb);

#endif
