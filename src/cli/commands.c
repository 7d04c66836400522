/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of subcommands, the options that all of them take, and hints for commands of other
 * tools.
 *
 *     colloc sbatch job.sh     unknown command: `colloc submit FILE` submits a script
 *     colloc quue              unknown command: did you mean `colloc queue`?
 */
#include <string.h>

#include "base/array.h"
#include "cli/command.h"
#include "slurmconf/login_conf.h"

#if HAVE_GPUMEMNET
#define MEMNET(X) X(memnet)
#else
#define MEMNET(X)
#endif

/* The subcommands by what a user wants to do, in the order in which help shows them. */
#define SUBMITTING(X)                                                                              \
    X(submit) X(run) X(shell) X(attach) X(jupyter) X(container) X(docker) X(ssh_proxy) X(ssh_serve)
#define WATCHING(X) X(queue) X(show) X(logs) X(wait) X(history)
#define CONTROLLING(X)                                                                             \
    X(cancel)                                                                                      \
    X(requeue) X(rerun) X(hold) X(release) X(update) X(suspend) X(resume) X(move)
#define USING_GPUS(X) X(gpus) X(top) X(web) X(share) X(report) X(reserve) X(mig) X(mps)
#define MEASURING(X)                                                                               \
    X(estimate) MEMNET(X) X(record) X(profile) X(step) X(metric) X(bench) X(calibrate)
#define SIMULATING(X) X(simulate) X(sweep) X(trace) X(replay)
#define SETTING_UP(X) X(doctor) X(info) X(check) X(slurm) X(serve) X(help) X(version)

#define GROUPS(GROUP)                                                                              \
    GROUP("Submit tasks", SUBMITTING)                                                              \
    GROUP("See what waits, runs and has ended", WATCHING)                                          \
    GROUP("Control tasks", CONTROLLING)                                                            \
    GROUP("GPUs, and how they are shared", USING_GPUS)                                             \
    GROUP("Estimate and measure trainings", MEASURING)                                             \
    GROUP("Simulate a cluster", SIMULATING)                                                        \
    GROUP("Set up colloc and check it", SETTING_UP)

#define DECLARE(name)              extern const struct command command_##name;
#define DECLARE_GROUP(title, list) list(DECLARE)
GROUPS(DECLARE_GROUP)

#define ENTRY(name)                &command_##name,
#define GROUP_ENTRIES(title, list) list(ENTRY)
const struct command *const commands[] = {GROUPS(GROUP_ENTRIES) NULL};

#define GROUP_OF(title, list) {title, (const struct command *const[]){list(ENTRY) NULL}},
const struct command_group command_groups[] = {GROUPS(GROUP_OF){NULL, NULL}};

const struct option_spec common_options[COMMON_OPTIONS] = {
    [COMMON_SOCKET] = OPTION("socket", FILE, "PATH",
        .help = "Unix socket of the daemon; default: COLLOC_SOCKET, otherwise the first "
                "default place with a daemon"),
    [COMMON_CONTROLLER] = OPTION("controller", TEXT, "HOST:PORT", .max = LOGIN_HOST_SIZE - 1,
        .help = "ask the controller of a Slurm cluster on another machine; default: "
                "COLLOC_CONTROLLER, otherwise that of colloc.conf where no daemon runs here"),
    [COMMON_JSON] = FLAG_OPTION("json", .help = "print JSON instead of a table"),
    [COMMON_HELP] = FLAG_OPTION("help", .letter = 'h', .help = "print this help"),
};

const struct command *command_find(const char *name)
{
    for (const struct command *const *command = commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
}

/* Commands of other tools, and the sentence about colloc's command for it. */
static const struct {
    const char *word, *hint;
} hints[] = {
    {"kill", "`colloc cancel ID` ends a task"},
    {"scancel", "`colloc cancel ID` ends a task"},
    {"stop", "`colloc cancel ID` ends a task"},
    {"rm", "`colloc cancel ID` ends a task"},
    {"delete", "`colloc cancel ID` ends a task"},
    {"ls", "`colloc queue` lists the tasks, `colloc history` those that have ended"},
    {"list", "`colloc queue` lists the tasks, `colloc history` those that have ended"},
    {"ps", "`colloc queue` lists the tasks, `colloc gpus` the processes on the GPUs"},
    {"status", "`colloc queue` lists the tasks, `colloc show ID` shows one"},
    {"why", "`colloc show ID` says why a task waits, and what it did"},
    {"explain", "`colloc show ID` says why a task waits, and what it did"},
    {"describe", "`colloc show ID` prints all about a task"},
    {"jobs", "`colloc queue` lists the tasks"},
    {"squeue", "`colloc queue` lists the tasks"},
    {"start", "`colloc submit -- COMMAND` submits a task"},
    {"salloc", "`colloc shell` opens a shell on a GPU"},
    {"sbatch", "`colloc submit FILE` submits a script"},
    {"srun", "`colloc run -- COMMAND` runs a command and waits for its end (--pty: in a terminal)"},
    {"stats", "`colloc history` shows the resources of ended tasks, `colloc gpus` the activity "
              "of the GPUs"},
    {"sshare", "`colloc share` shows whose tasks come first by fair share"},
    {"sacct", "`colloc history` shows the resources of ended tasks (--since, --csv)"},
    {"log", "`colloc logs ID` prints the output of a task"},
    {"tail", "`colloc logs -f ID` follows the output of a task"},
    {"sinfo", "`colloc gpus` shows the GPUs"},
    {"nodes", "`colloc gpus` shows the GPUs"},
    {"watch", "`colloc top` shows GPUs and tasks continuously"},
    {"restart", "`colloc rerun ID` submits an ended task again"},
    {"resubmit", "`colloc rerun ID` submits an ended task again"},
    {"retry", "`colloc rerun ID` submits an ended task again"},
    {"pause", "`colloc suspend ID` takes a task off its GPUs, `colloc hold ID` keeps one waiting"},
    {"continue", "`colloc resume ID` lets a suspended task go on"},
    {"priority", "`colloc update --priority=CLASS ID` changes the priority of a task"},
    {"nice", "`colloc update --priority=low ID` puts a task behind the others"},
    {"usage", "`colloc report` shows who used the GPUs"},
    {"users", "`colloc share` shows the users by fair share, `colloc report` what they used"},
    {"me", "`colloc queue --user=NAME` lists the tasks of a user"},
    {"drain", "`drain: 3` in collocd.yaml, and a reload, takes a GPU out of use (docs/install.md)"},
    {"undrain", "collocd.yaml without `drain`, and a reload, uses the GPU again (docs/install.md)"},
    {"config", "`colloc info` shows the server's settings, which are in collocd.yaml"},
    {"settings", "`colloc info` shows the server's settings, which are in collocd.yaml"},
    {"ssh", "`colloc shell` opens a shell on a GPU, `colloc attach ID` the terminal of a task"},
    {"bash", "`colloc shell` opens a shell on a GPU"},
    {"notebook", "`colloc jupyter` runs Jupyter on a GPU"},
    {"exec", "`colloc run -- COMMAND` runs a command and waits for its end"},
    {"scontrol", "`colloc show ID` shows a task, `colloc update` changes it"},
    {"nvidia-smi", "`colloc gpus` shows the GPUs and what runs on them"},
};

const char *command_hint(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
        if (strcmp(hints[i].word, word) == 0)
            return hints[i].hint;
    return NULL;
}

const char *command_near(const char *name)
{
    struct near_name near = {0};
    for (const struct command *const *command = commands; *command; command++)
        near_name_try(&near, name, (*command)->name);
    return near.best;
}
