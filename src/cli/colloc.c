/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program `colloc`: parses the command line, runs the subcommand, and reports an output that
 * cannot be written.
 */
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/docker_run.h"
#include "cli/failure_print.h"
#include "cli/help.h"
#include "cli/print.h"
#include "cli/slurm_names.h"
#include "cli/word_list.h"

/* "docker" of a task's PATH is `colloc docker`, and "docker-compose" is `colloc docker compose`.
 * Adds the words for these. Returns whether it was called so. */
static bool add_docker_words(const char *const *argv, struct word_list *words)
{
    const char *name = argv[0] ? path_name(argv[0]) : NULL;
    bool is_compose = name && strcmp(name, "docker-compose") == 0;
    if (!is_compose && (!name || strcmp(name, command_docker.name) != 0))
        return false;
    word_list_add(words, "%s", command_docker.name);
    if (is_compose)
        word_list_add(words, "compose");
    for (argv++; *argv; argv++)
        word_list_add(words, "%s", *argv);
    return true;
}

/* Output that cannot be written is an error: under `colloc history --csv >FILE`, a full disk must
 * not look like a short history. */
int main(int argc, char **argv)
{
    struct invocation invocation;
    struct fault fault = {0};
    CLEANUP(slurm_words_fini) struct slurm_words slurm = {0};
    CLEANUP(word_list_fini) struct word_list docker = {0};
    const char *const *words = (const char *const *)argv + 1;
    int count = argc > 0 ? argc - 1 : 0;
    setlocale(LC_CTYPE, "");
    bool has_name_of_docker = argc > 0 && add_docker_words((const char *const *)argv, &docker);
    bool is_ready = has_name_of_docker ? word_list_end(&docker)
                                       : slurm_words_make(argv[0], words, count, &slurm) == 0;
    if (!is_ready) {
        print_error("out of memory");
        return EXIT_REFUSED;
    }
    if (slurm.is_done)
        return slurm.exit_code;
    bool has_name_of_slurm = slurm.list.n > 0;
    if (has_name_of_docker) {
        words = (const char *const *)docker.words;
        count = (int)docker.n - 1; /* without the NULL */
    } else if (has_name_of_slurm) {
        words = (const char *const *)slurm.list.words;
        count = (int)slurm.list.n - 1;
    }
    if (failure_print_is(words, count))
        return failure_print(words);
    int code = EXIT_USAGE;
    if (invocation_parse(
            words, count, has_name_of_slurm || has_name_of_docker, &fault, &invocation) < 0)
        print_error("%s%s", fault.text,
            has_name_of_slurm && strstr(fault.text, "no such option")
                ? ": docs/slurm-commands.md and slurm-scripts.md have those that colloc takes"
                : "");
    else if (invocation.common[COMMON_HELP].number && invocation.command->run != command_help.run)
        code = help_print_command(invocation.command);
    else
        code = invocation.command->run(&invocation);
    invocation_fini(&invocation);
    if (fflush(stdout) != 0 && code == EXIT_OK) {
        print_error("cannot write the output: %s", strerror(errno));
        code = EXIT_REFUSED;
    }
    return code;
}
