/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc help`: help of all commands or one, the man page and the shell completions. All of them
 * are printed from the tables of commands.c and task_options.def, so a new option is in all at
 * once.
 */

#include "cli/help.h"
#include "cli/print.h"

enum { HELP_MAN, HELP_COMPLETION };

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static const struct option_spec options[] = {
    [HELP_MAN] = FLAG_OPTION("man", .help = "print the source of the man page colloc(1)"),
    [HELP_COMPLETION] = OPTION("completion", CHOICE, "SHELL", .choices = shells,
        .help = "print the completion script for this shell"),
};

/* A name that is no command is compared with all of them: a misspelt one is suggested. */
static int run(const struct invocation *invocation)
{
    if (invocation->values[HELP_MAN].number)
        return help_print_man();
    if (invocation->values[HELP_COMPLETION].set)
        return help_print_completion(invocation->values[HELP_COMPLETION].text);
    if (invocation->operand_count == 0)
        return help_print_overview();
    const char *name = invocation->operands[0];
    const struct command *command = command_find(name);
    if (command)
        return help_print_command(command);
    const char *near = command_near(name);
    print_error("%s: no such command%s%s%s", name, near ? "; did you mean " : "", near ? near : "",
        near ? "?" : "");
    return EXIT_USAGE;
}

const struct command command_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "print help on all commands or on one",
    .description =
        "Without COMMAND, lists all commands. The man page colloc(1) has the help of all "
        "of them.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_COMMAND,
    .max_operands = 1,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
