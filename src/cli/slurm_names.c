/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program under one of Slurm's names: a link `sbatch` to colloc is `colloc submit`.
 *
 *     sbatch -J net job.sbatch                colloc submit --slurm=line -J net job.sbatch
 *     sbatch <job.sbatch                      colloc submit --slurm=line -
 *     sbatch --wrap="python train.py"         colloc submit --slurm=line -- /bin/sh -c "python ..."
 *     srun -n 1 python train.py               colloc run python train.py
 *       in a task                             colloc run --step python train.py
 *     salloc -G 1                             colloc shell
 *     salloc -G 1 python train.py             colloc run --pty python train.py
 *     scontrol requeue 12                     colloc requeue 12
 *     squeue --me                             colloc queue --user=ada
 *     scancel -u ada 12                       colloc cancel -u ada 12
 *
 * The options of sbatch, srun and salloc stay as they are: invocation.c reads them by the table of
 * Slurm's options. Other programs take the options of colloc's command, and some with another name.
 * What sbatch prints is read by scripts: "Submitted batch job 12".
 */
#include "cli/slurm_names.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/slurm_accounts.h"
#include "cli/slurm_control.h"
#include "cli/slurm_list.h"
#include "cli/slurm_partition.h"
#include "cli/slurm_states.h"
#include "cli/slurm_version.h"
#include "taskfile/slurm_options.h"

static const struct {
    const char *program, *command;
} programs[] = {
    {"sbatch", "submit"}, {"squeue", "queue"}, {"scancel", "cancel"}, {"sacct", "history"},
    {"sinfo", "gpus"}, {"srun", "run"}, {"salloc", "shell"},
    {"scontrol", NULL}, /* slurm_control.c */
    {"sacctmgr", NULL}, /* slurm_accounts.c */
};

/* Options with another name here. */
static const struct {
    const char *program, *option, *here;
} renamed[] = {
    {"scancel", "--me", "--mine"},
    {"sacct", "-S", "--since"},
    {"sacct", "--starttime", "--since"},
    {"sacct", "-E", "--until"},
    {"sacct", "--endtime", "--until"},
    {"sacct", "-X", NULL}, /* steps are not shown anyway */
    {"sacct", "--allocations", NULL},
    {"scancel", "--jobname", "--name"},
    {"scancel", "--quiet", NULL},
    {"scancel", "-Q", NULL},
    {"scancel", "--verbose", NULL},
    {"scancel", "-v", NULL},
    {"scancel", "--full", NULL}, /* the whole task: as always */
    {"scancel", "-f", NULL},
};

static void add_word(struct slurm_words *words, const char *before, const char *word)
{
    word_list_add(&words->list, "%s%s", before, word);
}

static void add_own_tasks(struct slurm_words *words)
{
    char name[LOGIN_NAME_MAX];
    add_word(words, "--user=", own_user_name(name, sizeof name));
}

/* Translates an argument, with what follows its '='. */
static void add_argument(struct slurm_words *words, const char *program, const char *argument)
{
    size_t size = strcspn(argument, "=");
    if (strcmp(program, "squeue") == 0 && strcmp(argument, "--me") == 0) {
        add_own_tasks(words);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(renamed); i++) {
        if (strcmp(renamed[i].program, program) != 0 || strlen(renamed[i].option) != size ||
            strncmp(renamed[i].option, argument, size) != 0)
            continue;
        if (renamed[i].here)
            add_word(words, renamed[i].here, argument + size);
        return;
    }
    add_word(words, "", argument);
}

/* The value of "-t PD", "-tPD", "--state PD" or "--state=PD"; NULL: the word is another one. */
static const char *option_value(
    const char *const *arguments, int count, int *at, const char *letter, const char *name)
{
    const char *word = arguments[*at];
    size_t size = strlen(name);
    bool is_letter = strncmp(word, letter, 2) == 0;
    bool is_name = strncmp(word, name, size) == 0 && (!word[size] || word[size] == '=');
    if (!is_letter && !is_name)
        return NULL;
    const char *rest = word + (is_letter ? 2 : size);
    if (*rest)
        return rest + (is_name && *rest == '=');
    return *at + 1 < count ? arguments[++*at] : "";
}

/* The command was run here, or refused: nothing is left for one of colloc's. */
static void end_with(struct slurm_words *words, int exit_code)
{
    words->is_done = true;
    words->exit_code = exit_code;
}

static void refuse_cancel(
    struct slurm_words *words, const char *what, const char *value, const char *why)
{
    print_error("scancel --%s=%.40s: %s", what, value, why);
    end_with(words, EXIT_USAGE);
}

/* A task ends by SIGTERM, and after its grace time by SIGKILL: colloc sends no other signal. */
static bool ends_task(const char *signal)
{
    static const char *const names[] = {"TERM", "KILL", "15", "9"};
    signal += strncasecmp(signal, "SIG", 3) == 0 ? 3 : 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcasecmp(names[i], signal) == 0)
            return true;
    return false;
}

/* "1,3_[0,2]", "JobId=7": the ids, each a word. */
static void add_ids(struct slurm_words *words, const char *ids)
{
    static const char *const keys[] = {"jobid=", "job="};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strncasecmp(ids, keys[i], strlen(keys[i])) == 0)
            ids += strlen(keys[i]);
    while (*ids) {
        bool is_within = false;
        size_t size = 0;
        for (; ids[size] && (ids[size] != ',' || is_within); size++)
            is_within = ids[size] == '[' || (is_within && ids[size] != ']');
        word_list_add(&words->list, "%.*s", (int)size, ids);
        ids += size + (ids[size] == ',');
    }
}

static void translate_cancel(struct slurm_words *words, const char *const *arguments, int count)
{
    for (int i = 0; i < count && !words->is_done; i++) {
        const char *value = option_value(arguments, count, &i, "-s", "--signal");
        if (value && !ends_task(value))
            refuse_cancel(words, "signal", value,
                "colloc sends a task SIGTERM and SIGKILL only; `#SBATCH --signal` sends one before "
                "the time limit");
        if (value)
            continue;
        value = option_value(arguments, count, &i, "-t", "--state");
        const char *state = value ? slurm_state_parse(value, strlen(value)) : NULL;
        if (value && !state) {
            refuse_cancel(words, "state", value, "give PENDING, RUNNING or SUSPENDED");
            return;
        }
        if (!value && (value = option_value(arguments, count, &i, "-M", "--clusters")))
            continue;
        if (state)
            add_word(words, "--state=", state);
        else if (arguments[i][strspn(arguments[i], "0123456789,_[]-%")] == '\0')
            add_ids(words, arguments[i]);
        else
            add_argument(words, "scancel", arguments[i]);
    }
}

/* Is the next argument the value of this option of `colloc submit`? */
static bool option_takes_next(const char *argument)
{
    bool is_long = strncmp(argument, "--", 2) == 0;
    const struct option_spec *spec = is_long ? option_find(
                                                   task_options, task_option_count, argument + 2)
                                             : NULL;
    return spec ? spec->kind != OPTION_FLAG
                : strcmp(argument, "--estimate") == 0 || strcmp(argument, "--socket") == 0;
}

/* Variables that sbatch reads: they count more than the script's lines, and less than the command
 * line. Those of options that colloc ignores are left out. */
static const struct {
    const char *variable, *option; /* with a '=': it has a value */
} batch_variables[] = {
    {"SBATCH_ARRAY_INX", "--array="},
    {"SBATCH_CONSTRAINT", "--constraint="},
    {"SBATCH_EXCLUSIVE", "--exclusive"},
    {"SBATCH_EXPORT", "--export="},
    {"SBATCH_GPUS", "--gpus="},
    {"SBATCH_GPUS_PER_NODE", "--gpus-per-node="},
    {"SBATCH_GPUS_PER_TASK", "--gpus-per-task="},
    {"SBATCH_GRES", "--gres="},
    {"SBATCH_JOB_NAME", "--job-name="},
    {"SBATCH_MEM_PER_CPU", "--mem-per-cpu="},
    {"SBATCH_MEM_PER_GPU", "--mem-per-gpu="},
    {"SBATCH_MEM_PER_NODE", "--mem="},
    {"SBATCH_NO_REQUEUE", "--no-requeue"},
    {"SBATCH_PARTITION", "--partition="},
    {"SBATCH_ACCOUNT", "--account="},
    {"SBATCH_QOS", "--qos="},
    {"SBATCH_REQUEUE", "--requeue"},
    {"SBATCH_SIGNAL", "--signal="},
    {"SBATCH_TIMELIMIT", "--time="},
};

static void add_variables(struct slurm_words *words)
{
    for (size_t i = 0; i < ARRAY_SIZE(batch_variables); i++) {
        const char *value = getenv(batch_variables[i].variable);
        bool has_value = strchr(batch_variables[i].option, '=') != NULL;
        if (value)
            add_word(words, batch_variables[i].option, has_value ? value : "");
    }
}

/* The part of a command line up to its first word that is no option. */
struct scan {
    const char *wrap; /* the value of --wrap; NULL: none */
    int options;      /* words before the script or the command */
};

static struct scan scan_options(enum slurm_program program, const char *const *arguments, int count)
{
    struct slurm_cursor cursor = {arguments, count, NULL};
    struct slurm_given given;
    struct scan scan = {0};
    struct fault fault;
    for (int r; (r = slurm_option_next(program, "", &cursor, &given, &fault)) != 0;)
        if (r == 1 && strcmp(given.option->name, "wrap") == 0)
            scan.wrap = given.value;
        else if (r < 0 && cursor.count > 0) { /* colloc's, or a mistake, which is reported later */
            bool has_value = strchr(cursor.words[0], '=') || !option_takes_next(cursor.words[0]);
            int used = has_value || cursor.count == 1 ? 1 : 2;
            cursor = (struct slurm_cursor){cursor.words + used, cursor.count - used, NULL};
        }
    scan.options = count - cursor.count;
    return scan;
}

/*
 *     sbatch -J net --wrap="python a.py"      submit --slurm=line -J net -- /bin/sh -c "python a.py"
 *            |
 *            as it is; --wrap, too, which colloc then ignores
 */
static void translate_batch(struct slurm_words *words, const char *const *arguments, int count)
{
    const struct scan scan = scan_options(SLURM_SBATCH, arguments, count);
    add_word(words, "", "--slurm=line");
    add_variables(words);
    for (int i = 0; i < (scan.wrap ? scan.options : count); i++)
        add_word(words, "", arguments[i]);
    const char *const command[] = {"--", "/bin/sh", "-c", scan.wrap};
    for (size_t i = 0; i < ARRAY_SIZE(command) && scan.wrap; i++)
        add_word(words, "", command[i]);
    if (!scan.wrap && scan.options == count)
        add_word(words, "", "-");
}

static void translate_run(
    struct slurm_words *words, const char *program, const char *const *arguments, int count)
{
    bool runs = strcmp(program, "salloc") == 0 &&
                scan_options(SLURM_SALLOC, arguments, count).options < count;
    if (strcmp(program, "srun") == 0 && getenv("COLLOC_TASK_ID"))
        add_word(words, "", "--step");
    if (runs) { /* a command instead of a shell */
        word_list_fini(&words->list);
        words->list = (struct word_list){0};
        add_word(words, "", "run");
        if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
            add_word(words, "", "--pty");
    }
    for (int i = 0; i < count; i++)
        add_word(words, "", arguments[i]);
}

/* Of `words` those that are no option: "-o" (one line) is noted, "-M CLUSTER" names the only one. */
static int drop_options(
    const char *const *words, int count, const char **ret_words, bool *ret_one_line)
{
    static const char *const one_line[] = {"-o", "--oneliner"}, *const plain[] = {"-d", "-dd",
                                                                    "--details", "-a", "--all",
                                                                    "-Q", "--quiet", "-v",
                                                                    "--verbose"};
    int n = 0;
    for (int i = 0; i < count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < ARRAY_SIZE(one_line); k++)
            if (strcmp(words[i], one_line[k]) == 0)
                *ret_one_line = is_known = true;
        for (size_t k = 0; k < ARRAY_SIZE(plain); k++)
            is_known |= strcmp(words[i], plain[k]) == 0;
        if (!is_known && !option_value(words, count, &i, "-M", "--clusters"))
            ret_words[n++] = words[i];
    }
    ret_words[n] = NULL;
    return n;
}

/* "TimeLimit=60", minutes as with Slurm, is --time=60m. Returns whether the change is known. */
static bool add_change(struct slurm_words *words, const char *word)
{
    static const struct {
        const char *key, *option;
    } changes[] = {{"timelimit=", "--time="}, {"jobname=", "--name="}, {"name=", "--name="},
        {"starttime=", "--begin="}, {"jobid=", ""}, {"job=", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        size_t size = strlen(changes[i].key);
        if (strncasecmp(word, changes[i].key, size) != 0)
            continue;
        const char *value = word + size;
        char minutes[64];
        bool is_minutes = i == 0 && *value && !value[strspn(value, "0123456789")];
        snprintf(minutes, sizeof minutes, "%.60sm", value);
        add_word(words, changes[i].option, is_minutes ? minutes : value);
        return true;
    }
    return false;
}

/* scontrol update JobId=12 TimeLimit=60           colloc update 12 --time=60m */
static void translate_update(struct slurm_words *words, const char *const *arguments, int count)
{
    add_word(words, "", "update");
    for (int i = 0; i < count; i++) {
        bool is_word = strcasecmp(arguments[i], "job") == 0 && i + 1 < count;
        if (is_word)
            add_word(words, "", arguments[++i]);
        if (is_word || add_change(words, arguments[i]))
            continue;
        print_error("scontrol update %.60s: colloc changes TimeLimit, JobName and StartTime of a "
                    "JobId; `colloc help update` has more",
            arguments[i]);
        end_with(words, EXIT_USAGE);
        return;
    }
}

static void run_control(
    struct slurm_words *words, const char *const *arguments, int count, bool is_one_line)
{
    const char *verb = count > 0 ? arguments[0] : "", *what = count > 1 ? arguments[1] : "",
               *name = count > 2 ? arguments[2] : NULL;
    bool shows = strcmp(verb, "show") == 0;
    const char *command = slurm_control_command(verb);
    if (shows && strncmp(what, "hostname", 8) == 0) {
        end_with(words, slurm_control_print_hosts(name));
    } else if (shows && strncmp(what, "job", 3) == 0) {
        const char *value = strchr(what, '=');
        end_with(words, slurm_list_show_jobs(value ? value + 1 : name, is_one_line));
    } else if (shows && strncmp(what, "node", 4) == 0) {
        end_with(words, slurm_node_show(name, is_one_line));
    } else if (count > 1 && strcmp(verb, "update") == 0) {
        translate_update(words, arguments + 1, count - 1);
    } else if (shows && *what && slurm_control_print(what, is_one_line)) {
        end_with(words, EXIT_OK);
    } else if (command) {
        add_word(words, "", command);
        for (int i = 1; i < count; i++)
            add_ids(words, arguments[i]);
    } else {
        print_error(
            "scontrol %.40s: colloc has show job, node, hostnames, partition and config, update, "
            "requeue, hold, release, suspend and resume",
            verb);
        end_with(words, EXIT_USAGE);
    }
}

static void translate_control(struct slurm_words *words, const char *const *given, int n_given)
{
    bool is_one_line = false;
    const char **arguments = calloc((size_t)n_given + 1, sizeof *arguments);
    int count = arguments ? drop_options(given, n_given, arguments, &is_one_line) : 0;
    words->list.is_cut = !arguments;
    if (arguments)
        run_control(words, arguments, count, is_one_line);
    free(arguments);
}

/* Programs ask for the version before they use a command: that of Slurm whose forms are printed. */
static bool asks_version(const char *const *arguments, int count)
{
    return count == 1 &&
           (strcmp(arguments[0], "-V") == 0 || strcmp(arguments[0], "--version") == 0);
}

/* Slurm's JSON has other members than colloc's: a program that asks for it would read nothing. */
static bool asks_json(const char *program, const char *const *arguments, int count)
{
    static const char *const lists[] = {"squeue", "sacct", "sinfo"};
    bool is_list = span_place(span_of(program), lists, ARRAY_SIZE(lists)) >= 0, is_asked = false;
    for (int i = 0; i < count && is_list; i++)
        is_asked |= strncmp(arguments[i], "--json", 6) == 0 ||
                    strncmp(arguments[i], "--yaml", 6) == 0;
    return is_asked;
}

static void translate_command(
    struct slurm_words *words, const char *program, const char *const *arguments, int count)
{
    if (strcmp(program, "sbatch") == 0)
        translate_batch(words, arguments, count);
    else if (strcmp(program, "srun") == 0 || strcmp(program, "salloc") == 0)
        translate_run(words, program, arguments, count);
    else if (strcmp(program, "scancel") == 0)
        translate_cancel(words, arguments, count);
    else
        for (int i = 0; i < count; i++)
            add_argument(words, program, arguments[i]);
}

/* Runs the command, if no command of colloc has its form. Returns whether it was run, or refused.
 * `command`: that of colloc; or NULL. */
static bool run_here(struct slurm_words *words, const char *program, const char *command,
    const char *const *arguments, int count)
{
    if (asks_version(arguments, count)) {
        puts("slurm " SLURM_VERSION);
        end_with(words, EXIT_OK);
    } else if (asks_json(program, arguments, count)) {
        print_error("%s: colloc prints Slurm's columns, not its JSON; `colloc %s --json` has JSON "
                    "of another form",
            program, command);
        end_with(words, EXIT_USAGE);
    } else if (strcmp(program, "sacctmgr") == 0) {
        end_with(words, slurm_accounts_run(arguments, count));
    } else if (strcmp(program, "sinfo") == 0) {
        words->is_done = slurm_partition_run(arguments, count, &words->exit_code);
    } else {
        words->is_done = slurm_list_run(program, arguments, count, &words->exit_code);
    }
    return words->is_done;
}

/* By the last part of the path under which the program was called. Any other name gives no
 * words. */
int slurm_words_make(
    const char *called, const char *const *arguments, int count, struct slurm_words *ret_words)
{
    const char *program = called ? path_name(called) : "";
    size_t i = 0;
    *ret_words = (struct slurm_words){0};
    while (i < ARRAY_SIZE(programs) && strcmp(programs[i].program, program) != 0)
        i++;
    if (i == ARRAY_SIZE(programs) ||
        run_here(ret_words, program, programs[i].command, arguments, count))
        return 0;
    if (programs[i].command) {
        add_word(ret_words, "", programs[i].command);
        translate_command(ret_words, program, arguments, count);
    } else {
        translate_control(ret_words, arguments, count);
    }
    return word_list_end(&ret_words->list) ? 0 : -ENOMEM;
}

void slurm_words_fini(struct slurm_words *words)
{
    word_list_fini(&words->list);
}
