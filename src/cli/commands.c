#include <string.h>

#include "cli/command.h"

/* The table: one line for each subcommand, in the order help shows them. */
#define COMMANDS(X)                                                                                \
    X(submit)                                                                                      \
    X(queue)                                                                                       \
    X(show)                                                                                        \
    X(logs)                                                                                        \
    X(wait)                                                                                        \
    X(cancel)                                                                                      \
    X(hold)                                                                                        \
    X(release)                                                                                     \
    X(history)                                                                                     \
    X(gpus)                                                                                        \
    X(mig)                                                                                         \
    X(mps)                                                                                         \
    X(top)                                                                                         \
    X(record)                                                                                      \
    X(bench)                                                                                       \
    X(estimate)                                                                                    \
    X(memnet)                                                                                      \
    X(simulate)                                                                                    \
    X(sweep)                                                                                       \
    X(trace)                                                                                       \
    X(replay)                                                                                      \
    X(info)                                                                                        \
    X(serve)                                                                                       \
    X(help)                                                                                        \
    X(version)

#define DECLARE(name) extern const struct command command_##name;
COMMANDS(DECLARE)

#define ENTRY(name) &command_##name,
const struct command *const commands[] = {COMMANDS(ENTRY) NULL};

const struct option_spec common_options[COMMON_OPTIONS] = {
    [COMMON_SOCKET] = {.name = "socket",
        .kind = OPTION_FILE,
        .argument = "PATH",
        .help = "socket of the daemon; default: COLLOC_SOCKET, else where collocd is found"},
    [COMMON_JSON] = {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, for programs"},
    [COMMON_HELP] = {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "print help"},
};

const struct command *command_find(const char *name)
{
    for (const struct command *const *command = commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
}

const char *command_near(const char *name)
{
    struct near_name near = {0};
    for (const struct command *const *command = commands; *command; command++)
        near_name_try(&near, name, (*command)->name);
    return near.best;
}
