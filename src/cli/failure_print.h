/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc --failure`: why a program failed, by its logs. For colloc's Python programs, not for
 * users. */
#ifndef COLLOC_CLI_FAILURE_PRINT_H
#define COLLOC_CLI_FAILURE_PRINT_H

#include <stdbool.h>

/* Are these the words of `colloc --failure STATUS STDOUT STDERR`? */
bool failure_print_is(const char *const *words, int count);

/* Prints the class of the failure and its cause as JSON. Returns an exit code. */
int failure_print(const char *const *words);

#endif
