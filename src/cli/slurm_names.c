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
static int end_with(struct slurm_words *words, int exit_code)
{
    words->is_done = true;
    words->exit_code = exit_code;
    return 0;
}

static int refuse_cancel(
    struct slurm_words *words, const char *what, const char *value, const char *why)
{
    print_error("scancel --%s=%.40s: %s", what, value, why);
    return end_with(words, EXIT_USAGE);
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
static int add_ids(struct slurm_words *words, const char *ids)
{
    static const char *const keys[] = {"jobid=", "job="};
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strncasecmp(ids, keys[i], strlen(keys[i])) == 0)
            ids += strlen(keys[i]);
    while (*ids && r == 0) {
        char id[256];
        bool is_within = false;
        size_t size = 0;
        for (; ids[size] && (ids[size] != ',' || is_within); size++)
            is_within = ids[size] == '[' || (is_within && ids[size] != ']');
        snprintf(id, sizeof id, "%.*s", (int)size, ids);
        r = add_word(words, "", size < sizeof id ? id : ids);
        ids += size + (ids[size] == ',');
    }
    return r;
}

static int translate_cancel(struct slurm_words *words, const char *const *arguments, int count)
{
    int r = 0;
    for (int i = 0; i < count && r == 0 && !words->is_done; i++) {
        const char *value = option_value(arguments, count, &i, "-s", "--signal");
        if (value && !ends_task(value))
            return refuse_cancel(words, "signal", value,
                "colloc sends a task SIGTERM and SIGKILL only; `#SBATCH --signal` sends one before "
                "the time limit");
        if (value)
            continue;
        value = option_value(arguments, count, &i, "-t", "--state");
        const char *state = value ? slurm_state_parse(value, strlen(value)) : NULL;
        if (value && !state)
            return refuse_cancel(words, "state", value, "give PENDING, RUNNING or SUSPENDED");
        if (!value && (value = option_value(arguments, count, &i, "-M", "--clusters")))
            continue;
        if (state)
            r = add_word(words, "--state=", state);
        else if (arguments[i][strspn(arguments[i], "0123456789,_[]-%")] == '\0')
            r = add_ids(words, arguments[i]);
        else
            r = add_argument(words, "scancel", arguments[i]);
    }
    return r;
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

static int add_variables(struct slurm_words *words)
{
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(batch_variables) && r == 0; i++) {
        const char *value = getenv(batch_variables[i].variable);
        bool has_value = strchr(batch_variables[i].option, '=') != NULL;
        if (value)
            r = add_word(words, batch_variables[i].option, has_value ? value : "");
    }
    return r;
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
static int translate_batch(struct slurm_words *words, const char *const *arguments, int count)
{
    const struct scan scan = scan_options(SLURM_SBATCH, arguments, count);
    int r = add_word(words, "", "--slurm=line");
    if (r == 0)
        r = add_variables(words);
    for (int i = 0; i < (scan.wrap ? scan.options : count) && r == 0; i++)
        r = add_word(words, "", arguments[i]);
    const char *const command[] = {"--", "/bin/sh", "-c", scan.wrap};
    for (size_t i = 0; i < ARRAY_SIZE(command) && r == 0 && scan.wrap; i++)
        r = add_word(words, "", command[i]);
    if (r == 0 && !scan.wrap && scan.options == count)
        r = add_word(words, "", "-");
    return r;
}

static int translate_run(
    struct slurm_words *words, const char *program, const char *const *arguments, int count)
{
    bool is_step = strcmp(program, "srun") == 0 && getenv("COLLOC_TASK_ID");
    bool runs = strcmp(program, "salloc") == 0 &&
                scan_options(SLURM_SALLOC, arguments, count).options < count;
    int r = is_step ? add_word(words, "", "--step") : 0;
    if (r == 0 && runs) { /* a command instead of a shell */
        free(words->word[0]);
        words->count = 0;
        r = add_word(words, "", "run");
        if (r == 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
            r = add_word(words, "", "--pty");
    }
    for (int i = 0; i < count && r == 0; i++)
        r = add_word(words, "", arguments[i]);
    return r;
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

/* "TimeLimit=60", minutes as with Slurm, is --time=60m. */
static int add_change(struct slurm_words *words, const char *word, bool *ret_is_known)
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
        return add_word(words, changes[i].option, is_minutes ? minutes : value);
    }
    *ret_is_known = false;
    return 0;
}

/* scontrol update JobId=12 TimeLimit=60           colloc update 12 --time=60m */
static int translate_update(struct slurm_words *words, const char *const *arguments, int count)
{
    int r = add_word(words, "", "update");
    for (int i = 0; i < count && r == 0; i++) {
        bool is_known = true, is_word = strcasecmp(arguments[i], "job") == 0 && i + 1 < count;
        r = is_word ? add_word(words, "", arguments[++i])
                    : add_change(words, arguments[i], &is_known);
        if (is_known)
            continue;
        print_error("scontrol update %.60s: colloc changes TimeLimit, JobName and StartTime of a "
                    "JobId; `colloc help update` has more",
            arguments[i]);
        return end_with(words, EXIT_USAGE);
    }
    return r;
}

static int run_control(
    struct slurm_words *words, const char *const *arguments, int count, bool is_one_line)
{
    if (count >= 2 && strcmp(arguments[0], "show") == 0 &&
        strncmp(arguments[1], "hostname", 8) == 0)
        return end_with(words, slurm_control_print_hosts(count > 2 ? arguments[2] : NULL));
    if (count >= 2 && strcmp(arguments[0], "show") == 0 && strncmp(arguments[1], "job", 3) == 0) {
        const char *value = strchr(arguments[1], '='), *ids = count > 2 ? arguments[2] : NULL;
        if (value)
            ids = value + 1;
        return end_with(words, slurm_list_show_jobs(ids, is_one_line));
    }
    if (count >= 2 && strcmp(arguments[0], "show") == 0 && strncmp(arguments[1], "node", 4) == 0)
        return end_with(words, slurm_node_show(count > 2 ? arguments[2] : NULL, is_one_line));
    if (count > 1 && strcmp(arguments[0], "update") == 0)
        return translate_update(words, arguments + 1, count - 1);
    if (count >= 2 && strcmp(arguments[0], "show") == 0 &&
        slurm_control_print(arguments[1], is_one_line))
        return end_with(words, EXIT_OK);
    int used = 0;
    const char *command = slurm_control_command(arguments, &used);
    if (!command) {
        print_error(
            "scontrol %.40s: colloc has show job, node, hostnames, partition and config, update, "
            "requeue, hold, release, suspend and resume",
            count > 0 ? arguments[0] : "");
        return end_with(words, EXIT_USAGE);
    }
    int r = add_word(words, "", command);
    for (int i = used; i < count && r == 0; i++)
        r = add_ids(words, arguments[i]);
    return r;
}

static int translate_control(struct slurm_words *words, const char *const *given, int n_given)
{
    bool is_one_line = false;
    const char **arguments = calloc((size_t)n_given + 1, sizeof *arguments);
    if (!arguments)
        return -ENOMEM;
    int count = drop_options(given, n_given, arguments, &is_one_line);
    int r = run_control(words, arguments, count, is_one_line);
    free(arguments);
    return r;
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
    bool is_list = false, is_asked = false;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        is_list |= strcmp(program, lists[i]) == 0;
    for (int i = 0; i < count && is_list; i++)
        is_asked |= strncmp(arguments[i], "--json", 6) == 0 ||
                    strncmp(arguments[i], "--yaml", 6) == 0;
    return is_asked;
}

static int translate_command(
    struct slurm_words *words, const char *program, const char *const *arguments, int count)
{
    if (strcmp(program, "sbatch") == 0)
        return translate_batch(words, arguments, count);
    if (strcmp(program, "srun") == 0 || strcmp(program, "salloc") == 0)
        return translate_run(words, program, arguments, count);
    if (strcmp(program, "scancel") == 0)
        return translate_cancel(words, arguments, count);
    int r = 0;
    for (int i = 0; i < count && r == 0; i++)
        r = add_argument(words, program, arguments[i]);
    return r;
}

/* By the last part of the path under which the program was called. Any other name gives no
 * words. */
int slurm_words_make(
    const char *called, const char *const *arguments, int count, struct slurm_words *ret_words)
{
    const char *slash = called ? strrchr(called, '/') : NULL, *program = called ? called : "";
    if (slash)
        program = slash + 1;
    *ret_words = (struct slurm_words){0};
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        if (strcmp(programs[i].program, program) != 0)
            continue;
        if (asks_version(arguments, count)) {
            puts("slurm " SLURM_VERSION);
            return end_with(ret_words, EXIT_OK);
        }
        if (asks_json(program, arguments, count)) {
            print_error("%s: colloc prints Slurm's columns, not its JSON; `colloc %s --json` has "
                        "JSON of another form",
                program, programs[i].command);
            return end_with(ret_words, EXIT_USAGE);
        }
        if (strcmp(program, "sacctmgr") == 0)
            return end_with(ret_words, slurm_accounts_run(arguments, count));
        ret_words->is_done = strcmp(program, "sinfo") == 0
                                 ? slurm_partition_run(arguments, count, &ret_words->exit_code)
                                 : slurm_list_run(program, arguments, count, &ret_words->exit_code);
        if (ret_words->is_done)
            return 0;
        ret_words->word = calloc(
            (size_t)count + 8 + ARRAY_SIZE(batch_variables), sizeof *ret_words->word);
        if (ret_words->word && !programs[i].command)
            return translate_control(ret_words, arguments, count);
        int r = ret_words->word ? add_word(ret_words, "", programs[i].command) : -ENOMEM;
        return r < 0 ? r : translate_command(ret_words, program, arguments, count);
    }
    return 0;
}

void slurm_words_fini(struct slurm_words *words)
{
    for (int i = 0; i < words->count; i++)
        free(words->word[i]);
    free(words->word);
}
