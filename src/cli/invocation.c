/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a command line: the command's name, then its options and operands; `--` ends the options.
 *
 *     colloc submit --gpus=2 train.py --lr 0.1
 *            |      |        |        |
 *            |      |        operand  and so is all behind it (rest_is_operands): the program's own
 *            command option, by three tables: the command's, the common ones, those of tasks
 *
 * Options may stand before the command's name, too (`colloc --json queue`). Commands that submit
 * tasks also take Slurm's options; of a name that both have, colloc's counts, or Slurm's if the
 * program was called by a name of Slurm (`sbatch`).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/command.h"
#include "taskfile/option_words.h"
#include "taskfile/slurm_options.h"

/* The tables of a command's options: its own, the common ones, and its part of the task options. */
struct option_tables {
    struct option_set sets[3];
    struct option_spec task_specs[TASK_OPTION_MAX];
    struct option_value task_values[TASK_OPTION_MAX];
};

static void gather_tables(struct invocation *invocation, struct option_tables *ret)
{
    const struct command *command = invocation->command;
    size_t n = 0;
    *ret = (struct option_tables){0};
    for (size_t i = 0; i < task_option_count; i++)
        if (command && command->task_options & TASK_OPTION_BIT(i))
            ret->task_specs[n++] = task_options[i];
    if (command)
        ret->sets[0] = (struct option_set){
            command->options, command->option_count, invocation->values};
    ret->sets[1] = (struct option_set){common_options, COMMON_OPTIONS, invocation->common};
    ret->sets[2] = (struct option_set){ret->task_specs, n, ret->task_values};
}

/* Copies the values of the task options to their places in the table of all task options. */
static void scatter_task_values(struct invocation *invocation, struct option_tables *tables)
{
    for (size_t i = 0; i < tables->sets[2].count; i++) {
        if (!tables->task_values[i].set)
            continue;
        const struct option_spec *spec = option_find(
            task_options, task_option_count, tables->task_specs[i].name);
        struct option_value *value = &invocation->task_values[spec - task_options];
        free(value->text);
        *value = tables->task_values[i];
    }
}

/* ---- Slurm's options ---- */

/* --gpus=a100:2 and --time=UNLIMITED: values that only Slurm's option has. */
static bool has_slurm_form(const struct option_spec *spec, const char *value)
{
    const char *field = spec->field ? spec->field : "";
    return (strcmp(field, "gpus") == 0 && strchr(value, ':')) ||
           (strcmp(field, "time_limit_s") == 0 &&
               (strcasecmp(value, "UNLIMITED") == 0 || strcasecmp(value, "INFINITE") == 0));
}

/* Has the word a name of colloc's tables? Not by an alias that is there because Slurm has it, and
 * not by the letter of such an option: these are Slurm's. */
static bool is_own_word(
    const struct option_tables *tables, enum slurm_program program, const char *const *words)
{
    char name[64];
    const char *word = words[0], *value = strchr(word, '=');
    size_t size = strcspn(word, "=");
    bool is_long = word[1] == '-';
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : 0, word);
    for (size_t s = 0; s < ARRAY_SIZE(tables->sets); s++)
        for (size_t i = 0; i < tables->sets[s].count; i++) {
            const struct option_spec *spec = &tables->sets[s].specs[i];
            bool is_alias = spec->alias && (is_long ? strcmp(spec->alias, name + 2) == 0
                                                    : spec->letter == word[1]);
            if (!is_alias &&
                (is_long ? strcmp(spec->name, name + 2) != 0 : spec->letter != word[1]))
                continue;
            const char *given = value ? value + 1 : word[2] && !is_long ? word + 2 : words[1];
            return !has_slurm_form(spec, given ? given : "") &&
                   !(is_alias && slurm_option_find(program, spec->alias));
        }
    return false;
}

/* Is the word one of Slurm's? Not the beginning of a name if one of colloc's begins so, too: that
 * is a typing mistake. */
static bool may_be_slurm(
    const struct option_tables *tables, enum slurm_program program, const char *const *words)
{
    char name[64];
    size_t size = strcspn(words[0], "=");
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : 0, words[0]);
    if (is_own_word(tables, program, words))
        return false;
    if (words[0][1] != '-' || slurm_option_find(program, name + 2))
        return true;
    for (size_t s = 0; s < ARRAY_SIZE(tables->sets); s++)
        for (size_t i = 0; i < tables->sets[s].count; i++)
            if (strncmp(tables->sets[s].specs[i].name, name + 2, strlen(name + 2)) == 0)
                return false;
    return true;
}

static int keep_given(
    struct invocation *invocation, const struct slurm_given *given, struct fault *fault)
{
    struct slurm_given *list = realloc(
        invocation->slurm, (invocation->slurm_count + 1) * sizeof *list);
    if (!list)
        return fault_set(fault, ENOMEM, "out of memory");
    list[invocation->slurm_count++] = *given;
    invocation->slurm = list;
    return 0;
}

/* The option is one of colloc's command: --parsable is --slurm=id. */
static int take_command_option(
    struct option_tables *tables, const struct slurm_option *option, struct fault *fault)
{
    char word[64];
    const char *const words[] = {word, NULL};
    snprintf(word, sizeof word, "--%s", option->command);
    int r = option_take_one(tables->sets, ARRAY_SIZE(tables->sets), words, 1, fault);
    return r < 0 ? r : 0;
}

/* Takes Slurm's options at the front. Returns how many words, 0 for none, or a fault. */
static int take_slurm(struct invocation *invocation, struct option_tables *tables,
    const char *const *words, int count, struct fault *fault)
{
    enum slurm_program program = invocation->command ? invocation->command->slurm : 0;
    struct slurm_cursor cursor = {words, count, NULL};
    struct slurm_given given;
    if (!program || (!invocation->is_slurm && !may_be_slurm(tables, program, words)))
        return 0;
    do {
        int r = slurm_option_next(program, "", &cursor, &given, fault);
        if (r <= 0)
            return r == -ENOENT ? 0 : r;
        if (strcmp(given.option->name, "wrap") == 0 && !invocation->is_slurm)
            return fault_set(fault, EINVAL, "--wrap: write colloc submit -- bash -c 'COMMAND'");
        r = given.option->command ? take_command_option(tables, given.option, fault)
                                  : keep_given(invocation, &given, fault);
        if (r < 0)
            return r;
    } while (cursor.cluster);
    return count - cursor.count;
}

static int take_options(
    struct invocation *invocation, const char *const *words, int count, struct fault *fault)
{
    struct option_tables tables;
    int i = 0, taken = 0;
    gather_tables(invocation, &tables);
    do {
        i += taken;
        bool is_option = i < count && words[i][0] == '-' && words[i][1] &&
                         strcmp(words[i], "--") != 0;
        taken = is_option ? take_slurm(invocation, &tables, words + i, count - i, fault) : 0;
        if (is_option && taken == 0)
            taken = option_take_one(tables.sets, 3, words + i, count - i, fault);
    } while (taken > 0);
    scatter_task_values(invocation, &tables);
    return taken < 0 ? taken : i;
}

static void add_operands(struct invocation *invocation, const char *const *words, int count)
{
    memcpy(invocation->operands + invocation->operand_count, words, (size_t)count * sizeof *words);
    invocation->operand_count += count;
}

/* Options may stand among the operands up to "--". What follows it belongs to the user's program,
 * and so does everything after the first operand of a command such as submit. */
static int take_words(
    struct invocation *invocation, const char *const *words, int count, struct fault *fault)
{
    const struct command *command = invocation->command;
    int i = 0;
    while (i < count && !command->takes_words) {
        int used = take_options(invocation, words + i, count - i, fault);
        if (used < 0)
            return used;
        i += used;
        if (i == count)
            break;
        if (strcmp(words[i], "--") == 0) {
            invocation->after_dashes = invocation->operand_count == 0;
            i++;
            break;
        }
        if (command->rest_is_operands)
            break;
        add_operands(invocation, &words[i++], 1);
    }
    add_operands(invocation, words + i, count - i);
    return 0;
}

static int check_operands(const struct invocation *invocation, struct fault *fault)
{
    const struct command *command = invocation->command;
    if (invocation->common[COMMON_HELP].number)
        return 0;
    if (invocation->operand_count < command->min_operands)
        return fault_set(fault, EINVAL, "%s: missing argument: usage: colloc %s %s", command->name,
            command->name, command->usage);
    if (command->max_operands >= 0 && invocation->operand_count > command->max_operands)
        return fault_set(fault, EINVAL, "%s: unexpected argument '%.80s': usage: colloc %s %s",
            command->name, invocation->operands[command->max_operands], command->name,
            command->usage);
    return 0;
}

static int find_command(const char *name, struct fault *fault, const struct command **ret)
{
    *ret = command_find(name);
    if (*ret)
        return 0;
    const char *hint = command_hint(name), *near = command_near(name);
    if (hint)
        return fault_set(fault, EINVAL, "%.80s: unknown command: %s", name, hint);
    if (near)
        return fault_set(
            fault, EINVAL, "%.80s: unknown command: did you mean `colloc %s`?", name, near);
    return fault_set(
        fault, EINVAL, "%.80s: unknown command: `colloc help` lists all commands", name);
}

/* Options before the command's name are the common ones: `colloc --json queue`. No command at all,
 * or --help, is the command help. */
int invocation_parse(const char *const *words, int count, bool is_slurm, struct fault *fault,
    struct invocation *ret_invocation)
{
    *ret_invocation = (struct invocation){.is_slurm = is_slurm};
    ret_invocation->operands = calloc((size_t)count + 1, sizeof *ret_invocation->operands);
    if (!ret_invocation->operands)
        return fault_set(fault, ENOMEM, "out of memory");
    int used = 0, r = 0;
    if (count > 0 && strcmp(words[0], "--version") == 0)
        return find_command("version", fault, &ret_invocation->command);
    used = take_options(ret_invocation, words, count, fault);
    if (used < 0)
        return used;
    if (used == count || ret_invocation->common[COMMON_HELP].number)
        return find_command("help", fault, &ret_invocation->command);
    r = find_command(words[used], fault, &ret_invocation->command);
    if (r == 0)
        r = take_words(ret_invocation, words + used + 1, count - used - 1, fault);
    return r < 0 ? r : check_operands(ret_invocation, fault);
}

void invocation_fini(struct invocation *invocation)
{
    option_values_fini(invocation->common, COMMON_OPTIONS);
    option_values_fini(invocation->values, COMMAND_MOST_OPTIONS);
    option_values_fini(invocation->task_values, TASK_OPTION_MAX);
    free(invocation->operands);
    free(invocation->slurm);
}
