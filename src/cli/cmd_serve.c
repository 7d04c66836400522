/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc serve`: replaces this process by collocd, or runs it beside the emulated GPUs of
 * --emulate. The options made here come before the user's, which therefore override them.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "cli/command.h"
#include "cli/emulate.h"
#include "cli/print.h"

enum { OWN_WORDS_MAX = 5 }; /* collocd's name, --socket, --nvml-library, WITHOUT_GATE, NULL */

/* A pretend training makes no calls that the preloaded library could hold at its gate. */
#define WITHOUT_GATE "--suspend-without-gate=yes"

/* collocd's command line. The options made here come first, so that the user's override them. */
struct serving {
    char **words;
    char socket_option[PATH_MAX], library_option[PATH_MAX];
};

/* Returns only if collocd cannot be run. */
static void become_collocd(void *context)
{
    static const char *const places[] = {
        ".", ("../" COLLOC_SBIN_DIR), "../daemon"}; /* bundled, installed, in the build */
    const struct serving *serving = context;
    char path[PATH_MAX];
    if (beside_find(places, ARRAY_SIZE(places), "collocd", path, sizeof path) == 0)
        execv(path, serving->words);
    execv(COLLOCD_PATH, serving->words);
    execvp("collocd", serving->words);
    print_error("cannot run collocd (%s): searched beside colloc, at %s and on PATH; install "
                "colloc, or add collocd's folder to PATH",
        strerror(errno), COLLOCD_PATH);
}

/* Removes --emulate from the arguments. Returns its value, or NULL. */
static const char *take_emulate(char **words, int *count)
{
    const char *gpus = NULL;
    int n = 0;
    for (int i = 0; i < *count; i++) {
        if (strncmp(words[i], "--emulate=", 10) == 0)
            gpus = words[i] + 10;
        else if (strcmp(words[i], "--emulate") == 0)
            gpus = i + 1 < *count ? words[++i] : "";
        else
            words[n++] = words[i];
    }
    *count = n;
    words[n] = NULL;
    return gpus;
}

/*
 * Puts collocd's command line together, in which of two equal options the last one wins:
 *
 *     collocd  --socket, and what emulated GPUs need  the user's own words
 */
static int run_collocd(const struct invocation *invocation, struct serving *serving, char **given)
{
    char library[PATH_MAX - 32], without_gate[] = WITHOUT_GATE;
    const struct option_value *socket = &invocation->common[COMMON_SOCKET];
    int count = invocation->operand_count, own = 0;
    memcpy(given, invocation->operands, (size_t)count * sizeof *given);
    const char *gpus = take_emulate(given, &count);
    serving->words[own++] = (char[]){"collocd"};
    if (socket->set) {
        snprintf(
            serving->socket_option, sizeof serving->socket_option, "--socket=%s", socket->text);
        serving->words[own++] = serving->socket_option;
    }
    if (gpus && emulate_library(library, sizeof library)) {
        snprintf(
            serving->library_option, sizeof serving->library_option, "--nvml-library=%s", library);
        serving->words[own++] = serving->library_option;
        serving->words[own++] = without_gate;
    }
    memcpy(serving->words + own, given, ((size_t)count + 1) * sizeof *given);
    if (gpus)
        return emulate_run(gpus, become_collocd, serving);
    become_collocd(serving);
    return EXIT_REFUSED;
}

static int run(const struct invocation *invocation)
{
    struct serving serving = {.words = NULL};
    size_t room = (size_t)invocation->operand_count + OWN_WORDS_MAX;
    char **given = calloc(room, sizeof *given);
    serving.words = calloc(room, sizeof *serving.words);
    int status = given && serving.words ? run_collocd(invocation, &serving, given) : EXIT_REFUSED;
    free(serving.words);
    free(given);
    return status;
}

static const struct option_spec options[] = {
    OPTION("emulate", TEXT, "GPUS",
        .help = "run on emulated GPUs, such as 4xA100-40GB or 2xH200,1xA100-80GB; "
                "each kind of data/gpu-kinds.txt, from V100-16GB and T4 to B200"),
};

const struct command command_serve = {
    .name = "serve",
    .usage = "[--emulate=GPUS] [COLLOCD-OPTION...]",
    .summary = "run the daemon, collocd, in the foreground",
    .description = "Runs collocd with the options that follow (`collocd --help` lists them). On "
                   "a server, start it as a service instead: `systemctl enable --now "
                   "collocd`.\n\n"
                   "--emulate=4xA100-40GB runs it on emulated GPUs, to try colloc without a "
                   "GPU: `colloc-pretend-train` (its path is printed) is a training for them. "
                   "The emulated GPUs and the tasks on them end together with collocd.\n\n"
                   "SIGTERM, Ctrl-C or closing the terminal (unless nohup is used) ends "
                   "collocd; tasks on real GPUs continue, and the next collocd adopts them. Any "
                   "other SIGHUP makes collocd reload its configuration.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_NONE,
    .max_operands = -1,
    .takes_words = true,
    .run = run,
};
