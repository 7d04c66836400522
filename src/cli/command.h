/* SPDX-License-Identifier: Apache-2.0 */
/* A subcommand is one file that exports one struct command, and one line in the table of
 * commands.c. */
#ifndef COLLOC_CLI_COMMAND_H
#define COLLOC_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "taskfile/description.h"

/* Exit codes; `wait` and `submit --wait` give the task's own as well (cli/task_end.h). */
enum exit_code { EXIT_OK = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

/* The kind of the operands: for completion. */
enum operand_kind {
    OPERAND_NONE,
    OPERAND_TASK,     /* that waits or runs */
    OPERAND_ANY_TASK, /* also one that has ended */
    OPERAND_FILE,
    OPERAND_COMMAND,
    OPERAND_PROGRAM, /* a command of the user's, then files */
};

/* Options every subcommand takes. */
enum common_option {
    COMMON_SOCKET,
    COMMON_CONTROLLER,
    COMMON_JSON,
    COMMON_HELP,
    COMMON_OPTIONS,
};
extern const struct option_spec common_options[COMMON_OPTIONS];

enum { COMMAND_MOST_OPTIONS = 57 };

struct invocation;

struct command {
    const char *name;
    const char *usage;       /* what follows the name: "[OPTION...] ID..." */
    const char *summary;     /* one line, no full stop */
    const char *description; /* paragraphs with an empty line between */
    const struct option_spec *options;
    size_t option_count;   /* at most COMMAND_MOST_OPTIONS */
    uint64_t task_options; /* which task options it takes, too: bits 1 << enum task_option */
    enum operand_kind operand;
    const char *const *actions; /* what the first operand may be, for completion; ended by NULL */
    int min_operands, max_operands; /* max -1: any number */
    bool rest_is_operands;          /* after the first operand, no argument is an option */
    bool takes_words;               /* it passes all arguments on: none is an option of colloc */
    uint32_t common_without;        /* common options that have no effect here and are not shown:
                                       bits 1 << enum common_option */
    uint64_t usual_options;         /* of task_options, those that its help explains; 0: all */
    enum slurm_program slurm;       /* whose options it takes besides its own; 0: no program's */
    int (*run)(const struct invocation *);
};

/* A table of more than COMMAND_MOST_OPTIONS does not compile. */
#define COMMAND_OPTIONS(table)                                                                     \
    .options = (table),                                                                            \
    .option_count = sizeof(                                                                        \
        char[ARRAY_SIZE(table) <= COMMAND_MOST_OPTIONS ? (int)ARRAY_SIZE(table) : -1])
#define TASK_OPTION_BIT(option) ((uint64_t)1 << (option))
#define TASK_OPTIONS_ALL        UINT64_MAX

/* What a user of an interactive task gives. */
#define TASK_OPTIONS_USUAL                                                                         \
    (TASK_OPTION_BIT(TASK_NAME) | TASK_OPTION_BIT(TASK_GPUS) | TASK_OPTION_BIT(TASK_GPU_KIND) |    \
        TASK_OPTION_BIT(TASK_EXCLUSIVE) | TASK_OPTION_BIT(TASK_TIME) |                             \
        TASK_OPTION_BIT(TASK_MEMORY) | TASK_OPTION_BIT(TASK_HOST_MEMORY) |                         \
        TASK_OPTION_BIT(TASK_CPUS))

/* For `common_without`: a command that needs no daemon; one that prints no JSON. */
#define WITHOUT_SOCKET ((uint32_t)1 << COMMON_SOCKET | (uint32_t)1 << COMMON_CONTROLLER)
#define WITHOUT_JSON   ((uint32_t)1 << COMMON_JSON)

/* A parsed command line. */
struct invocation {
    const struct command *command;
    struct option_value common[COMMON_OPTIONS];
    struct option_value values[COMMAND_MOST_OPTIONS]; /* by the command's own options */
    struct option_value task_values[TASK_OPTION_MAX];
    const char **operands; /* NULL-terminated */
    int operand_count;
    bool after_dashes;         /* the first operand follows "--" */
    struct slurm_given *slurm; /* Slurm's options (taskfile/slurm_options.h) */
    size_t slurm_count;
    bool is_slurm; /* the program was called by a name of Slurm or docker */
};

/* All commands in the order in which help lists them; ended by NULL. */
extern const struct command *const commands[];

/* The same by what a user wants to do with them; ended by a NULL title. */
struct command_group {
    const char *title;
    const struct command *const *commands; /* ended by NULL */
};
extern const struct command_group command_groups[];

/* Returns the command of this name, or NULL. */
const struct command *command_find(const char *name);

/* For a command of another tool, such as "squeue": returns a sentence that says which command of
 * colloc does this; or NULL. */
const char *command_hint(const char *word);

/* Returns the command name nearest to a misspelt one, or NULL. */
const char *command_near(const char *name);

/*
 * Parses a command line.
 *
 * words:    `count` arguments, without the program's name; borrowed until invocation_fini.
 * is_slurm: the program was called by a name of Slurm: an option that Slurm has, too, is Slurm's
 *
 * Returns 0, or -errno with the mistake in the fault; invocation_fini must follow in both cases.
 */
int invocation_parse(const char *const *words, int count, bool is_slurm, struct fault *fault,
    struct invocation *ret_invocation);

/* Releases the options' texts and the list of operands. */
void invocation_fini(struct invocation *invocation);

#endif
