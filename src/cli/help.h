/* SPDX-License-Identifier: Apache-2.0 */
/* Help, the man page and shell completion, all from the tables of commands and options. */
#ifndef COLLOC_CLI_HELP_H
#define COLLOC_CLI_HELP_H

#include <stdio.h>

#include "cli/command.h"

extern const struct command command_help;

/* Print the list of commands, the help of one, and the man page as roff. Each returns EXIT_OK. */
int help_print_overview(void);
int help_print_command(const struct command *command);
int help_print_man(void);

/* Prints the completion script of a shell: "bash", "zsh" or "fish". Returns EXIT_OK; EXIT_USAGE for
 * another shell. */
int help_print_completion(const char *shell);

/* Calls `each` for every option of a command: its own, its task options, and the common ones that
 * have an effect there. */
void help_each_option(
    const struct command *command, void (*each)(const struct option_spec *, void *), void *context);

#endif
