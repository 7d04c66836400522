/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program `colloc`: parses the command line, runs the subcommand, and reports an output that
 * cannot be written.
 */
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/docker_run.h"
#include "cli/failure_print.h"
#include "cli/help.h"
#include "cli/print.h"
#include "cli/slurm_names.h"

/* "docker" of a task's PATH is `colloc docker`: in place of the program's name stands the command.
 * Returns whether it was called so. */
static bool is_docker(const char *called)
{
    const char *slash = called ? strrchr(called, '/') : NULL;
    return called && strcmp(slash ? slash + 1 : called, command_docker.name) == 0;
}

/* Output that cannot be written is an error: under `colloc history --csv >FILE`, a full disk must
 * not look like a short history. */
int main(int argc, char **argv)
{
    struct invocation invocation;
    struct fault fault = {0};
    CLEANUP(slurm_words_fini) struct slurm_words slurm = {0};
    const char *const *words = (const char *const *)argv + 1;
    int count = argc > 0 ? argc - 1 : 0;
    setlocale(LC_CTYPE, "");
    bool has_name_of_docker = argc > 0 && is_docker(argv[0]);
    if (has_name_of_docker) {
        argv[0] = (char *)(uintptr_t)command_docker.name;
        words = (const char *const *)argv;
        count = argc;
    } else if (slurm_words_make(argv[0], words, count, &slurm) < 0) {
        print_error("out of memory");
        return EXIT_REFUSED;
    }
    if (slurm.is_done)
        return slurm.exit_code;
    if (slurm.word) {
        words = (const char *const *)slurm.word;
        count = slurm.count;
    }
    if (failure_print_is(words, count))
        return failure_print(words);
    int code = EXIT_USAGE;
    if (invocation_parse(words, count, slurm.word || has_name_of_docker, &fault, &invocation) < 0)
        print_error("%s", fault.text);
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
