/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program under one of Slurm's names: a link `sbatch` to colloc is `colloc submit`.
 *
 *     sbatch --parsable -J net job.sbatch     colloc submit --slurm=id -J net job.sbatch
 *     sbatch --wrap="python train.py"         colloc submit --slurm=line -- /bin/sh -c "python ..."
 *     squeue --me                             colloc queue --user=ada
 *     scancel -u ada 12                       colloc cancel -u ada 12
 *     srun -n 1 python train.py               colloc run python train.py
 *       in a task                             colloc run --step python train.py
 *
 * Options that the command of colloc has too, such as -J, --array or -u, stay as they are; others
 * are refused by it. What sbatch prints is read by scripts: "Submitted batch job 12".
 */
#include "cli/slurm_names.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/session.h"
#include "taskfile/description.h"

static const struct {
    const char *program, *command;
} programs[] = {
    {"sbatch", "submit"},
    {"squeue", "queue"},
    {"scancel", "cancel"},
    {"sacct", "history"},
    {"sinfo", "gpus"},
    {"srun", "run"},
};

/* Options with another name here. */
static const struct {
    const char *program, *option, *here;
} renamed[] = {
    {"sbatch", "--parsable", "--slurm=id"},
    {"scancel", "--me", "--mine"},
    {"sacct", "-S", "--since"},
    {"sacct", "--starttime", "--since"},
    {"sacct", "-E", "--until"},
    {"sacct", "--endtime", "--until"},
    {"sacct", "-X", NULL}, /* steps are not shown anyway */
    {"srun", "--unbuffered", NULL},
    {"srun", "--cpu-bind", NULL}, /* it is so, or not needed */
    {"srun", "--exact", NULL},
    {"srun", "--overlap", NULL},
};

static int add_word(struct slurm_words *words, const char *before, const char *word)
{
    char *text;
    if (asprintf(&text, "%s%s", before, word) < 0)
        return -ENOMEM;
    words->word[words->count++] = text;
    return 0;
}

static int add_own_tasks(struct slurm_words *words)
{
    char name[LOGIN_NAME_MAX];
    return add_word(words, "--user=", own_user_name(name, sizeof name));
}

/* Translates an argument, with what follows its '='. */
static int add_argument(struct slurm_words *words, const char *program, const char *argument)
{
    size_t size = strcspn(argument, "=");
    if (strcmp(program, "squeue") == 0 && strcmp(argument, "--me") == 0)
        return add_own_tasks(words);
    for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
        if (strcmp(renamed[i].program, program) == 0 && strlen(renamed[i].option) == size &&
            strncmp(renamed[i].option, argument, size) == 0)
            return renamed[i].here ? add_word(words, renamed[i].here, argument + size) : 0;
    return add_word(words, "", argument);
}

/* Takes "--wrap=COMMAND" or "--wrap COMMAND". Returns how many arguments that are. */
static int take_wrap(const char *const *arguments, const char **ret_wrap)
{
    if (arguments[0] && strncmp(arguments[0], "--wrap=", 7) == 0) {
        *ret_wrap = arguments[0] + 7;
        return 1;
    }
    bool is_wrap = arguments[0] && strcmp(arguments[0], "--wrap") == 0 && arguments[1];
    *ret_wrap = is_wrap ? arguments[1] : *ret_wrap;
    return is_wrap ? 2 : 0;
}

/* A task is one process on one node: takes "-n 1", "--nodes=1" and the like, which say so. Returns
 * how many arguments that are. */
static int take_one(const char *const *arguments)
{
    static const char *const counts[] = {"-n", "--ntasks", "-N", "--nodes"};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        const char *name = counts[i], *value = arguments[0] + strlen(name);
        bool is_long = name[1] == '-';
        if (strncmp(arguments[0], name, strlen(name)) != 0)
            continue;
        if (!*value && arguments[1] && strcmp(arguments[1], "1") == 0)
            return 2;
        if (strcmp(value, is_long ? "=1" : "1") == 0)
            return 1;
    }
    return 0;
}

/* Is the next argument the value of this option of `colloc submit`? */
static bool takes_next(const char *argument)
{
    bool is_long = strncmp(argument, "--", 2) == 0;
    const struct option_spec *spec = is_long ? option_find(
                                                   task_options, task_option_count, argument + 2)
                                             : NULL;
    for (size_t i = 0; i < task_option_count && !is_long && argument[1] && !argument[2]; i++)
        if (task_options[i].letter == argument[1])
            spec = &task_options[i];
    return spec ? spec->kind != OPTION_FLAG
                : strcmp(argument, "--estimate") == 0 || strcmp(argument, "--socket") == 0;
}

/* The script, and what follows it, is not translated. */
static bool is_script(const char *argument, const char *before)
{
    return argument[0] != '-' && !(before && before[0] == '-' && takes_next(before));
}

/*
 *     sbatch -J net --wrap="python a.py"      submit --slurm=line -J net -- /bin/sh -c "python a.py"
 *            |      |
 *            |      taken out, and comes last
 *            as it is
 */
static int translate_command(
    struct slurm_words *words, const char *program, const char *const *arguments)
{
    const char *wrap = NULL, *before = NULL;
    bool in_script = false;
    bool is_sbatch = strcmp(program, "sbatch") == 0, is_srun = strcmp(program, "srun") == 0;
    int r = is_sbatch                             ? add_word(words, "", "--slurm=line")
            : is_srun && getenv("COLLOC_TASK_ID") ? add_word(words, "", "--step")
                                                  : 0;
    for (int used; *arguments && r == 0; arguments += used ? used : 1) {
        used = in_script   ? 0
               : is_sbatch ? take_wrap(arguments, &wrap)
               : is_srun   ? take_one(arguments)
                           : 0;
        in_script |= !used && (is_sbatch || is_srun) && is_script(*arguments, before);
        if (used == 0)
            r = in_script ? add_word(words, "", *arguments)
                          : add_argument(words, program, *arguments);
        before = used ? NULL : *arguments;
    }
    const char *const command[] = {"--", "/bin/sh", "-c", wrap};
    for (size_t i = 0; i < ARRAY_SIZE(command) && r == 0 && wrap; i++)
        r = add_word(words, "", command[i]);
    return r;
}

/* By the last part of the path under which the program was called. Any other name gives no
 * words. */
int slurm_words_make(
    const char *called, const char *const *arguments, int count, struct slurm_words *ret_words)
{
    const char *slash = called ? strrchr(called, '/') : NULL;
    const char *program = slash ? slash + 1 : called ? called : "";
    *ret_words = (struct slurm_words){0};
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        if (strcmp(programs[i].program, program) != 0)
            continue;
        ret_words->word = calloc((size_t)count + 8, sizeof *ret_words->word);
        int r = ret_words->word ? add_word(ret_words, "", programs[i].command) : -ENOMEM;
        return r < 0 ? r : translate_command(ret_words, program, arguments);
    }
    return 0;
}

void slurm_words_fini(struct slurm_words *words)
{
    for (int i = 0; i < words->count; i++)
        free(words->word[i]);
    free(words->word);
}
