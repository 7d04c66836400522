/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help texts, printed from the tables of commands and options.
 *
 *     usage: colloc wait [OPTION...] ID...
 *
 *     ID is a task (12), a task of an array (12_7), or an array, ...
 *
 *     options:
 *           --timeout=TIME      stop waiting after this time and exit with code 124
 *
 * Options are explained from column 26 on, and lines end before column 80: that is readable in
 * every terminal, and in a bug report.
 */
#include "cli/help.h"

#include "cli/print.h"

enum { TEXT_WIDTH = 79, HELP_COLUMN = 26 };

void help_each_option(
    const struct command *command, void (*each)(const struct option_spec *, void *), void *context)
{
    for (size_t i = 0; i < task_option_count; i++)
        if (command->task_options & TASK_OPTION_BIT(i))
            each(&task_options[i], context);
    for (size_t i = 0; i < command->option_count; i++)
        each(&command->options[i], context);
    for (size_t i = 0; i < COMMON_OPTIONS; i++)
        if (!(command->common_without & (uint32_t)1 << i))
            each(&common_options[i], context);
}

static void print_option(const struct option_spec *spec, void *context)
{
    char left[64], letter[8] = "    ", help[OPTION_HELP_MAX];
    if (spec->letter)
        snprintf(letter, sizeof letter, "-%c, ", spec->letter);
    const char *begin = !spec->argument ? "" : spec->is_optional ? "[=" : "=";
    int n = snprintf(left, sizeof left, "  %s--%s%s%s%s", letter, spec->name, begin,
        spec->argument ? spec->argument : "", spec->is_optional ? "]" : "");
    if (n < HELP_COLUMN - 1)
        printf("%-*s", HELP_COLUMN, left);
    else
        printf("%s\n%*s", left, HELP_COLUMN, "");
    option_help_text(spec, help, sizeof help);
    print_wrapped(help, HELP_COLUMN, TEXT_WIDTH);
}

/* The command's own options first: those of a task are many, and `help submit` explains them. */
static void print_usual_options(const struct command *command)
{
    struct command usual = *command;
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i], NULL);
    usual.task_options = command->usual_options;
    usual.option_count = 0;
    help_each_option(&usual, print_option, NULL);
    puts("\nIt takes all options of `colloc submit`, and Slurm's: see `colloc help submit`.");
}

int help_print_command(const struct command *command)
{
    printf("usage: colloc %s %s\n\n", command->name, command->usage);
    print_wrapped(command->description, 0, TEXT_WIDTH);
    if (command->takes_words && !command->option_count)
        return EXIT_OK;
    puts("\noptions:");
    if (command->takes_words) /* the other options are those of the program that gets them */
        for (size_t i = 0; i < command->option_count; i++)
            print_option(&command->options[i], NULL);
    else if (command->usual_options)
        print_usual_options(command);
    else
        help_each_option(command, print_option, NULL);
    return EXIT_OK;
}

int help_print_overview(void)
{
    puts("usage: colloc COMMAND [OPTION...]\n\n"
         "Trains deep-learning models on shared GPUs: submit tasks and watch them.");
    for (const struct command_group *group = command_groups; group->title; group++) {
        printf("\n%s:\n", group->title);
        for (const struct command *const *command = group->commands; *command; command++)
            printf("  %-9s  %s\n", (*command)->name, (*command)->summary);
    }
    puts("\nTry `colloc submit -- python train.py`, `colloc help submit`, `man colloc`.");
    return EXIT_OK;
}
