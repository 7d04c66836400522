/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of Slurm's options, and how a word finds its row.
 *
 *   an option of colloc     --job-name, --begin, --array: read as that
 *   a reader                --gres, --mem, --nice ...: the value has another form
 *   ignored, with a warning --partition, --account ...: the task computes the same without
 *   ignored                 --wait-all-nodes, --mpi ...: on one server it has no meaning
 *   refused                 --licenses ...: the task would run when or where it should not
 *
 * Slurm reads its options with getopt_long, which also takes the beginning of a name where only one
 * name begins so (`--depend`, `--out`). That is why the table has all options of sbatch 22.05, also
 * rare ones: without --nodelist, `--node=2` would be --nodes here and ambiguous there. An option
 * without a row is refused: ignoring it might change what the script does.
 */
#include "taskfile/slurm_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "taskfile/slurm_values.h"

#define ONE_SERVER    "this server is all there is"
#define NO_CPU_LAYOUT "colloc counts CPUs, it does not choose them"
#define NO_ACCOUNTS   "a task is its user's"
#define OWN_USER      "a task runs as the user that submits it"

enum {
    BATCH = SLURM_SBATCH,
    STEP = SLURM_SRUN,
    ALLOC = SLURM_SALLOC,
    JOBS = BATCH | ALLOC,
    RUNS = STEP | ALLOC,
    ALL = BATCH | STEP | ALLOC,
};

#define FLAG  SLURM_NO_VALUE
#define VALUE SLURM_NEEDS_VALUE
#define MAYBE SLURM_MAY_HAVE_VALUE

/* The kinds of rows. */
#define SAME(name, letter, programs, form, task_option)                                            \
    {                                                                                              \
        name, letter, programs, form, NULL, task_option, NULL, NULL, NULL                          \
    }
#define READ(name, letter, programs, form, reader)                                                 \
    {                                                                                              \
        name, letter, programs, form, slurm_read_##reader, -1, NULL, NULL, NULL                    \
    }
#define IGNORE(name, letter, programs, form, why)                                                  \
    {                                                                                              \
        name, letter, programs, form, NULL, -1, why, NULL, NULL                                    \
    }
#define REFUSE(name, letter, programs, form, why)                                                  \
    {                                                                                              \
        name, letter, programs, form, NULL, -1, NULL, why, NULL                                    \
    }
/* An option of the command itself; `why`: of no effect in a #SBATCH line. */
#define COMMAND(name, letter, programs, form, here, why)                                           \
    {                                                                                              \
        name, letter, programs, form, NULL, -1, why, NULL, here                                    \
    }

static const struct slurm_option slurm_options[] = {
    /* what it is, and when it starts */
    SAME("job-name", 'J', ALL, VALUE, TASK_NAME),
    SAME("array", 'a', BATCH, VALUE, TASK_ARRAY),
    SAME("begin", 'b', ALL, VALUE, TASK_BEGIN),
    READ("dependency", 'd', ALL, VALUE, dependency),
    READ("hold", 'H', ALL, FLAG, flag),
    READ("nice", 0, ALL, MAYBE, nice),
    READ("requeue", 0, BATCH, FLAG, flag),
    READ("no-requeue", 0, BATCH, FLAG, flag),
    READ("signal", 0, ALL, VALUE, signal),
    READ("time", 't', ALL, VALUE, time),
    IGNORE("time-min", 0, ALL, VALUE, "the limit is that of --time"),
    READ("priority", 0, ALL, VALUE, priority),
    REFUSE("deadline", 0, ALL, VALUE, "colloc has no deadlines: limit the run time with --time"),
    IGNORE("kill-on-invalid-dep", 0, BATCH, VALUE, "a task that can never start is cancelled"),
    IGNORE("immediate", 'I', RUNS, MAYBE, "it waits until GPUs are free"),

    /* GPUs */
    READ("gres", 0, ALL, VALUE, gres),
    READ("gpus", 'G', ALL, VALUE, gpus),
    READ("gpus-per-node", 0, ALL, VALUE, gpus),
    READ("gpus-per-task", 0, ALL, VALUE, gpus),
    READ("gpus-per-socket", 0, ALL, VALUE, gpus),
    READ("constraint", 'C', ALL, VALUE, constraint),
    IGNORE("prefer", 0, ALL, VALUE, "colloc chooses the GPUs; --constraint requires a kind"),
    READ("exclusive", 0, ALL, MAYBE, flag),
    IGNORE("oversubscribe", 's', ALL, FLAG, "tasks share GPUs where the policy allows it"),
    IGNORE("gpu-bind", 0, ALL, VALUE, "a task sees its GPUs only"),
    IGNORE("gres-flags", 0, ALL, VALUE, "colloc chooses the CPUs near its GPUs"),
    IGNORE("gpu-freq", 0, ALL, VALUE, "colloc does not set clocks"),
    IGNORE("accel-bind", 0, STEP, VALUE, "a task sees its GPUs only"),

    /* processes, CPUs, memory */
    READ("nodes", 'N', ALL, VALUE, nodes),
    READ("ntasks", 'n', ALL, VALUE, count),
    READ("ntasks-per-node", 0, ALL, VALUE, count),
    READ("tasks-per-node", 0, ALL, VALUE, count),
    READ("ntasks-per-gpu", 0, ALL, VALUE, count),
    IGNORE("ntasks-per-tres", 0, ALL, VALUE, "give --ntasks-per-gpu"),
    IGNORE("ntasks-per-core", 0, ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("ntasks-per-socket", 0, ALL, VALUE, NO_CPU_LAYOUT),
    READ("cpus-per-task", 'c', ALL, VALUE, count),
    READ("cpus-per-gpu", 0, ALL, VALUE, count),
    READ("mem", 0, ALL, VALUE, memory),
    READ("mem-per-cpu", 0, ALL, VALUE, memory),
    READ("mem-per-gpu", 0, ALL, VALUE, memory),
    IGNORE("mincpus", 0, ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("overcommit", 'O', ALL, FLAG, NO_CPU_LAYOUT),
    IGNORE("threads-per-core", 0, ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("cores-per-socket", 0, ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("sockets-per-node", 0, ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("extra-node-info", 'B', ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("hint", 0, ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("distribution", 'm', ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("core-spec", 'S', ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("thread-spec", 0, ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("cpu-bind", 0, RUNS, VALUE, ""),
    IGNORE("mem-bind", 0, ALL, VALUE, NO_CPU_LAYOUT),
    IGNORE("cpu-freq", 0, ALL, VALUE, "colloc does not set clocks"),
    IGNORE("tmp", 0, ALL, VALUE, "temporary disk space is not counted"),

    /* its environment and its files */
    READ("chdir", 'D', ALL, VALUE, text),
    READ("workdir", 0, ALL, VALUE, text), /* its name in old scripts */
    READ("export", 0, BATCH | STEP, VALUE, export),
    REFUSE("export-file", 0, BATCH, VALUE, "set the variables in the script, or with --export"),
    IGNORE("get-user-env", 0, JOBS, MAYBE, "a first line `#!/bin/bash -l` reads your profile"),
    IGNORE("propagate", 0, BATCH | STEP, MAYBE, "the daemon sets the limits of tasks"),
    READ("output", 'o', BATCH | STEP, VALUE, output),
    READ("error", 'e', BATCH | STEP, VALUE, output),
    READ("input", 'i', BATCH | STEP, VALUE, input),
    IGNORE("open-mode", 0, BATCH | STEP, VALUE,
        "the first attempt empties its output files, later ones append"),
    READ("mail-type", 0, ALL, VALUE, mail_type),
    READ("mail-user", 0, ALL, VALUE, text),
    IGNORE("comment", 0, ALL, VALUE, "a task has no comment"),

    /* where, and for which account */
    READ("partition", 'p', ALL, VALUE, text),
    READ("account", 'A', ALL, VALUE, text),
    READ("qos", 'q', ALL, VALUE, text),
    IGNORE("clusters", 'M', JOBS, VALUE, ONE_SERVER),
    IGNORE("cluster-constraint", 0, BATCH, VALUE, ONE_SERVER),
    IGNORE("nodelist", 'w', ALL, VALUE, ONE_SERVER),
    IGNORE("nodefile", 'F', ALL, VALUE, ONE_SERVER),
    IGNORE("exclude", 'x', ALL, VALUE, ONE_SERVER),
    IGNORE("no-kill", 'k', ALL, MAYBE, ""),
    IGNORE("wait-all-nodes", 0, JOBS, VALUE, ""),
    IGNORE("contiguous", 0, ALL, FLAG, ""),
    IGNORE("spread-job", 0, ALL, FLAG, ""),
    IGNORE("use-min-nodes", 0, ALL, FLAG, ""),
    IGNORE("switches", 0, ALL, VALUE, ""),
    IGNORE("delay-boot", 0, ALL, VALUE, ""),
    IGNORE("network", 0, ALL, VALUE, ""),
    IGNORE("power", 0, ALL, VALUE, ""),
    IGNORE("ignore-pbs", 0, BATCH, FLAG, ""),
    IGNORE("acctg-freq", 0, ALL, VALUE, ""),
    IGNORE("profile", 0, ALL, VALUE, "colloc samples every task; its --profile is another option"),
    IGNORE("wckey", 0, ALL, VALUE, "a task has no such key"),
    IGNORE("mcs-label", 0, ALL, VALUE, "a task has no such label"),
    IGNORE("batch", 0, BATCH, VALUE, ONE_SERVER),
    REFUSE("licenses", 'L', ALL, VALUE,
        "colloc counts no licences: limit how many run with --array=...%N or --dependency"),
    REFUSE("reservation", 0, ALL, VALUE,
        "GPUs reserved for you (colloc reserve) need no option: leave it out"),
    REFUSE("bb", 0, ALL, VALUE, "colloc has no burst buffers: copy the files in the script"),
    REFUSE("bbf", 0, ALL, VALUE, "colloc has no burst buffers: copy the files in the script"),
    REFUSE("reboot", 0, ALL, FLAG, "a task cannot restart the server"),
    REFUSE("container", 0, BATCH | STEP, VALUE,
        "start the container in the script, with podman or apptainer"),
    REFUSE("uid", 0, ALL, VALUE, OWN_USER),
    REFUSE("gid", 0, ALL, VALUE, OWN_USER),

    /* of sbatch itself */
    COMMAND("wait", 'W', BATCH, FLAG, "wait", "give it to colloc submit"),
    COMMAND("parsable", 0, BATCH, FLAG, "slurm=id", "colloc submit --json is for programs"),
    COMMAND("test-only", 0, BATCH, FLAG, "test-only", "give it to colloc submit"),
    COMMAND("wrap", 0, BATCH, VALUE, NULL, ""),
    COMMAND("help", 'h', ALL, FLAG, "help", ""),
    COMMAND("usage", 0, ALL, FLAG, "help", ""),
    IGNORE("quiet", 'Q', ALL, FLAG, ""),
    IGNORE("verbose", 'v', ALL, FLAG, ""),

    /* of srun and salloc */
    COMMAND("pty", 0, STEP, MAYBE, "pty", ""),
    READ("label", 'l', STEP, FLAG, flag),
    READ("kill-on-bad-exit", 'K', STEP, MAYBE, kill_on_exit),
    READ("jobid", 0, STEP, VALUE, job),
    IGNORE("unbuffered", 'u', STEP, FLAG, ""),
    IGNORE("wait", 'W', STEP, VALUE, ""),
    IGNORE("mpi", 0, STEP, VALUE, ""),
    IGNORE("exact", 0, STEP, FLAG, ""),
    IGNORE("overlap", 0, STEP, FLAG, ""),
    IGNORE("whole", 0, STEP, FLAG, ""),
    IGNORE("interactive", 0, STEP, FLAG, ""),
    IGNORE("preserve-env", 'E', STEP, FLAG, ""),
    IGNORE("relative", 'r', STEP, VALUE, ONE_SERVER),
    IGNORE("threads", 'T', STEP, VALUE, ""),
    IGNORE("disable-status", 'X', STEP, FLAG, ""),
    IGNORE("quit-on-interrupt", 0, STEP, FLAG, ""),
    IGNORE("slurmd-debug", 0, STEP, VALUE, ""),
    IGNORE("msg-timeout", 0, STEP, VALUE, ""),
    IGNORE("resv-ports", 0, STEP, MAYBE, ""),
    IGNORE("x11", 0, RUNS, MAYBE, ""),
    IGNORE("bell", 0, ALLOC, FLAG, ""),
    IGNORE("no-bell", 0, ALLOC, FLAG, ""),
    IGNORE("kill-command", 'K', ALLOC, MAYBE, ""),
    REFUSE("no-shell", 0, ALLOC, FLAG,
        "a task without a process holds no GPU: give a command, or submit `sleep TIME`"),
    REFUSE("multi-prog", 0, STEP, FLAG, "start each program in the script, with & and wait"),
    REFUSE("bcast", 0, STEP, MAYBE, ONE_SERVER ": leave it out"),
    REFUSE("het-group", 0, STEP, VALUE, "colloc has no heterogeneous jobs: submit a task for each"),
    REFUSE("prolog", 0, STEP, VALUE, "call it in the script"),
    REFUSE("epilog", 0, STEP, VALUE, "call it in the script"),
    REFUSE("task-prolog", 0, STEP, VALUE, "call it in the script"),
    REFUSE("task-epilog", 0, STEP, VALUE, "call it in the script"),
};

const struct slurm_option *slurm_option_find(enum slurm_program program, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(slurm_options); i++)
        if (slurm_options[i].programs & program && strcmp(slurm_options[i].name, name) == 0)
            return &slurm_options[i];
    return NULL;
}

/* ---- a word's row ---- */

/* Says which names begin so. */
static int refuse_ambiguous(
    enum slurm_program program, const char *marker, const char *name, struct fault *fault)
{
    char all[240] = "";
    for (size_t i = 0, used = 0; i < ARRAY_SIZE(slurm_options) && used < sizeof all; i++)
        if (slurm_options[i].programs & program &&
            strncmp(slurm_options[i].name, name, strlen(name)) == 0)
            used += (size_t)snprintf(
                all + used, sizeof all - used, "%s--%s", used ? ", " : "", slurm_options[i].name);
    return fault_set(
        fault, EINVAL, "%s--%.60s: write the whole name; so begin %s", marker, name, all);
}

static int find_long(enum slurm_program program, const char *marker, const char *word,
    struct slurm_given *ret, struct fault *fault)
{
    char name[64];
    size_t size = strcspn(word, "="), n_begin = 0;
    ret->value = word[size] ? word + size + 1 : NULL;
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : 63, word);
    ret->option = slurm_option_find(program, name);
    if (ret->option)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(slurm_options) && *name; i++)
        if (slurm_options[i].programs & program &&
            strncmp(slurm_options[i].name, name, strlen(name)) == 0) {
            ret->option = &slurm_options[i];
            n_begin++;
        }
    if (n_begin > 1)
        return refuse_ambiguous(program, marker, name, fault);
    return n_begin == 1 ? 0 : -ENOENT;
}

static int find_letter(enum slurm_program program, const char *word, struct slurm_given *ret)
{
    ret->value = word[1] ? word + 1 : NULL;
    for (size_t i = 0; i < ARRAY_SIZE(slurm_options); i++)
        if (slurm_options[i].programs & program && slurm_options[i].letter == word[0]) {
            ret->option = &slurm_options[i];
            return 0;
        }
    return -ENOENT;
}

int slurm_option_next(enum slurm_program program, const char *marker, struct slurm_cursor *cursor,
    struct slurm_given *ret_given, struct fault *fault)
{
    const char *word = cursor->count > 0 ? cursor->words[0] : "";
    bool is_long = strncmp(word, "--", 2) == 0;
    if (!cursor->cluster && (word[0] != '-' || !word[1] || strcmp(word, "--") == 0))
        return 0;
    const char *letters = cursor->cluster ? cursor->cluster : word + 1;
    int r = is_long ? find_long(program, marker, word + 2, ret_given, fault)
                    : find_letter(program, letters, ret_given);
    if (r == -ENOENT)
        fault_set(fault, ENOENT,
            "%s%.60s: not supported: without it the script might do something else", marker, word);
    if (r < 0)
        return r;
    enum slurm_form form = ret_given->option->form;
    bool is_cluster = !is_long && form == SLURM_NO_VALUE && ret_given->value;
    cursor->cluster = is_cluster ? ret_given->value : NULL;
    if (is_cluster)
        ret_given->value = NULL;
    if (form == SLURM_NO_VALUE && ret_given->value)
        return fault_set(fault, EINVAL, "%s%.60s: takes no value", marker, word);
    if (form == SLURM_NEEDS_VALUE && !ret_given->value && cursor->count < 2)
        return fault_set(fault, EINVAL, "%s%.60s: needs a value", marker, word);
    bool takes_next = form == SLURM_NEEDS_VALUE && !ret_given->value;
    if (takes_next)
        ret_given->value = cursor->words[1];
    int used = is_cluster ? 0 : takes_next ? 2 : 1;
    cursor->words += used;
    cursor->count -= used;
    return 1;
}

int slurm_option_apply(struct slurm_context *context, const struct slurm_given *given)
{
    const struct slurm_option *option = given->option;
    if (option->refused)
        return slurm_refuse(context, option->name, given->value, option->refused);
    if (option->read)
        return option->read(context, option->name, given->value);
    if (option->option >= 0)
        return slurm_set(context, option->option, option->name, given->value);
    if (*option->ignored)
        slurm_warn(context, option->name, option->ignored);
    return 0;
}
