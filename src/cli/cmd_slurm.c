/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc slurm`: prepares a Slurm cluster for colloc, checks it, and takes colloc out again. What
 * the texts must be is decided in src/slurmconf; here the files are read and written, and scontrol
 * is run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/tcp_address.h"
#include "cli/check_table.h"
#include "cli/command.h"
#include "cli/controller_link.h"
#include "cli/print.h"
#include "cli/slurm_folder.h"
#include "cli/slurm_plan.h"
#include "slurmconf/slurm_check.h"

enum {
    SLURM_FOLDER,
    SLURM_WRITE,
    SLURM_INTAKE,
    SLURM_RUN,
    SLURM_TAKE,
    SLURM_SHARDS,
    SLURM_WAKE,
    SLURM_SPANK,
    SLURM_ESTIMATES,
    SLURM_GPU_MEMORY,
    SLURM_LOGIN,
    SLURM_CONTROLLER_USER,
};

static const struct option_spec options[] = {
    [SLURM_FOLDER] = {.name = "folder",
        .kind = OPTION_FILE,
        .argument = "DIR",
        .help = "folder of slurm.conf; default: that of SLURM_CONF, otherwise /etc/slurm"},
    [SLURM_WRITE] = {.name = "write",
        .kind = OPTION_FLAG,
        .help = "setup, remove: write the files; without it, print what would change"},
    [SLURM_INTAKE] = {.name = "intake",
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .max = 64,
        .default_text = "gpu",
        .help = "partition that users submit to; default: {default}"},
    [SLURM_RUN] = {.name = "run",
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .max = 64,
        .default_text = "gpu-run",
        .help = "partition that colloc moves jobs to, where they run; default: {default}"},
    [SLURM_TAKE] = {.name = "take-partition",
        .kind = OPTION_FLAG,
        .help = "setup: an existing partition of the intake's name becomes colloc's"},
    [SLURM_SHARDS] = {.name = "shards",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 2,
        .max = 10000,
        .default_text = "80",
        .help = "shards of each GPU, the unit in which its memory is shared; default: {default}"},
    [SLURM_WAKE] = {.name = "wake-file",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .default_text = "/run/colloc/wake",
        .help =
            "file that slurmctld writes a line to for each submission and end, and colloc-slurm "
            "watches; default: {default}"},
    [SLURM_SPANK] = {.name = "spank",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "SPANK plugin of the node agents; default: the installed one, if there is one"},
    [SLURM_ESTIMATES] = {.name = "estimates-only",
        .kind = OPTION_FLAG,
        .help = "setup: only the first tier, without any daemon: sbatch estimates and asks for "
                "shards, Slurm places"},
    [SLURM_GPU_MEMORY] = {.name = "gpu-memory",
        .kind = OPTION_SIZE,
        .argument = "SIZE",
        .min = (int64_t)1 << 30,
        .max = (int64_t)1 << 50,
        .needs_unit = true,
        .help = "with --estimates-only: memory of a GPU, the smallest where they differ"},
    [SLURM_LOGIN] = {.name = "login",
        .kind = OPTION_TEXT,
        .argument = "HOST:PORT",
        .max = LOGIN_HOST_SIZE - 1,
        .help = "setup: where colloc's commands on login nodes reach colloc-slurm; default: they "
                "do not"},
    [SLURM_CONTROLLER_USER] = {.name = "controller-user",
        .kind = OPTION_TEXT,
        .argument = "USER",
        .max = LOGIN_USER_SIZE - 1,
        .default_text = "root",
        .help = "user that colloc-slurm runs as, for --login; default: {default}"},
};

static const char *text_option(const struct invocation *invocation, int option)
{
    const char *text = invocation->values[option].text;
    return text ? text : options[option].default_text;
}

static struct slurm_choices choices_of(const struct invocation *invocation)
{
    const struct option_value *shards = &invocation->values[SLURM_SHARDS];
    return (struct slurm_choices){
        .intake = text_option(invocation, SLURM_INTAKE),
        .run = text_option(invocation, SLURM_RUN),
        .wake_file = text_option(invocation, SLURM_WAKE),
        .spank = invocation->values[SLURM_SPANK].text,
        .takes_partition = invocation->values[SLURM_TAKE].number,
        .estimates_only = invocation->values[SLURM_ESTIMATES].number,
        .shards = shards->set ? (int)shards->number : atoi(options[SLURM_SHARDS].default_text),
        .gpu_memory_bytes = invocation->values[SLURM_GPU_MEMORY].number,
        .login = invocation->values[SLURM_LOGIN].text,
        .controller_user = text_option(invocation, SLURM_CONTROLLER_USER),
    };
}

static bool is_partition_name(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_-.") == strlen(name);
}

static int check_options(const struct invocation *invocation, struct fault *fault)
{
    const char *intake = text_option(invocation, SLURM_INTAKE);
    const char *run = text_option(invocation, SLURM_RUN);
    if (!is_partition_name(intake) || !is_partition_name(run))
        return fault_set(fault, EINVAL, "slurm: --intake and --run are names of partitions");
    if (strcasecmp(intake, run) == 0)
        return fault_set(
            fault, EINVAL, "slurm: --intake and --run must be two partitions, not %s twice", run);
    if (invocation->values[SLURM_ESTIMATES].number && !invocation->values[SLURM_GPU_MEMORY].set)
        return fault_set(fault, EINVAL,
            "slurm: --estimates-only needs --gpu-memory=SIZE, of which a share is asked for");
    const char *login = invocation->values[SLURM_LOGIN].text;
    if (login && !tcp_address_is_host_port(login))
        return fault_set(
            fault, EINVAL, "slurm: --login: %s: give a host and a port such as ctl1:7491", login);
    if (!is_partition_name(text_option(invocation, SLURM_CONTROLLER_USER)))
        return fault_set(
            fault, EINVAL, "slurm: --controller-user is the name of a user, or a number");
    return 0;
}

static const char *find_folder(const struct invocation *invocation, char *buffer, size_t size)
{
    const char *given = invocation->values[SLURM_FOLDER].text;
    return given ? given : slurm_conf_folder(buffer, size);
}

/* ---- actions ---- */

/* Prints or writes the planned changes. */
static int carry_out(const struct invocation *invocation, struct slurm_folder *folder,
    bool removing, struct fault *fault)
{
    int r = 0;
    if (!invocation->values[SLURM_WRITE].number) {
        if (slurm_folder_print(folder) == 0)
            printf("Nothing is to be changed in %s.\n", folder->path);
        else
            printf("Nothing was written; add --write to do it.\n");
        return 0;
    }
    r = slurm_folder_write(folder, removing, fault);
    if (r == 0)
        printf("Nothing was to be changed in %s.\n", folder->path);
    else if (r > 0)
        printf("%d files in %s were changed. Copy them to all nodes, then restart slurmctld and "
               "every slurmd.\n",
            r, folder->path);
    return r < 0 ? r : 0;
}

static int set_up_slurm(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    const struct slurm_choices choices = choices_of(invocation);
    int r = 0;
    if (invocation->values[SLURM_WRITE].number)
        r = slurm_plan_require_controller(&choices, fault);
    if (r == 0)
        r = slurm_plan_setup(&choices, folder, fault);
    if (r == 0)
        r = carry_out(invocation, folder, false, fault);
    return r < 0 ? r : EXIT_OK;
}

static int take_out(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    int r = slurm_plan_remove(folder, fault);
    if (r == 0)
        r = carry_out(invocation, folder, true, fault);
    return r < 0 ? r : EXIT_OK;
}

static int print_script(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    const struct slurm_choices choices = choices_of(invocation);
    char *text = slurm_plan_script(&choices, folder, invocation->operands[1]);
    if (!text)
        return fault_set(fault, EINVAL,
            "slurm script: there is no script '%.80s': give job_submit.lua, jobcomp.lua or "
            "cli_filter.lua",
            invocation->operands[1]);
    fputs(text, stdout);
    free(text);
    return EXIT_OK;
}

/* Returns the output of a command, on the heap; "" if it cannot be run. `command` is never a user's
 * text. */
static char *read_command(const char *command, int *ret_status)
{
    char *text = NULL, buffer[4096];
    size_t size, n;
    FILE *out = open_memstream(&text, &size), *pipe = popen(command, "r");
    while (out && pipe && (n = fread(buffer, 1, sizeof buffer, pipe)) > 0)
        fwrite(buffer, 1, n, out);
    *ret_status = pipe ? pclose(pipe) : -1;
    if (out)
        fclose(out);
    return text ? text : strdup("");
}

/* What Slurm's own clients print is gathered first, and src/slurmconf judges the texts: so each
 * check has a test without a cluster. A client that is missing gives an empty text. */
static int check_cluster(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    static const char *const queries[] = {"LC_ALL=C scontrol ping 2>&1",
        "LC_ALL=C scontrol show config 2>/dev/null",
        "LC_ALL=C scontrol --oneliner show node 2>/dev/null",
        "LC_ALL=C scontrol --oneliner show partition 2>/dev/null",
        "munge -n </dev/null 2>/dev/null"};
    char *texts[ARRAY_SIZE(queries)];
    int status[ARRAY_SIZE(queries)];
    struct doctor_check checks[SLURM_CHECKS_MAX];
    const struct slurm_choices choices = choices_of(invocation);
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
        texts[i] = read_command(queries[i], &status[i]);
    char *wanted = slurm_plan_script(&choices, folder, "job_submit.lua");
    const struct folder_file *guard = slurm_folder_find(folder, "job_submit.lua");
    const struct slurm_facts_read facts = {texts[0], status[1] == 0 ? texts[1] : "", texts[2],
        texts[3], status[1] == 0 || status[4] == 0, choices.intake, choices.run,
        guard ? guard->old_text : NULL, wanted ? wanted : "", time(NULL)};
    size_t count = slurm_check_run(&facts, checks);
    bool is_ok = check_table_print(checks, count, invocation->common[COMMON_JSON].number);
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
        free(texts[i]);
    free(wanted);
    return is_ok ? EXIT_OK : EXIT_REFUSED;
}

static const struct {
    const char *name;
    int operands;
    bool prints_json;
    /* Returns an exit code, or -errno with a fault. */
    int (*run)(const struct invocation *, struct slurm_folder *, struct fault *);
} actions[] = {
    {"setup", 1, false, set_up_slurm},
    {"check", 1, true, check_cluster},
    {"remove", 1, false, take_out},
    {"script", 2, false, print_script},
};

/* Each action has its number of words, and says whether it can print JSON. */
static int find_action(const struct invocation *invocation, struct fault *fault, size_t *ret_i)
{
    const char *name = invocation->operands[0];
    size_t i = 0;
    while (i < ARRAY_SIZE(actions) && strcmp(actions[i].name, name) != 0)
        i++;
    if (i == ARRAY_SIZE(actions))
        return fault_set(fault, EINVAL,
            "slurm: unknown action '%.40s': give setup, check, remove or script", name);
    if (invocation->operand_count != actions[i].operands)
        return fault_set(fault, EINVAL, "slurm %s: give %s", name,
            actions[i].operands == 2 ? "the name of one script" : "no further argument");
    if (invocation->common[COMMON_JSON].number && !actions[i].prints_json)
        return fault_set(fault, EINVAL, "slurm %s: --json is not supported", name);
    *ret_i = i;
    return 0;
}

static int run(const struct invocation *invocation)
{
    struct fault fault = {0};
    struct slurm_folder folder = {0};
    char buffer[4096];
    size_t i = 0;
    int r = find_action(invocation, &fault, &i);
    if (r == 0)
        r = check_options(invocation, &fault);
    if (r < 0) {
        print_error("%s", fault.text);
        return EXIT_USAGE;
    }
    r = slurm_folder_open(find_folder(invocation, buffer, sizeof buffer), &fault, &folder);
    if (r == 0)
        r = actions[i].run(invocation, &folder, &fault);
    if (r < 0)
        print_error("%s", fault.text);
    slurm_folder_close(&folder);
    return r < 0 ? EXIT_REFUSED : r;
}

const struct command command_slurm = {
    .name = "slurm",
    .usage = "[OPTION...] setup|check|remove|script [NAME]",
    .summary = "prepare a Slurm cluster for sharing GPUs, check it, and undo that",
    .description =
        "setup prints what slurm.conf, gres.conf, plugstack.conf and Slurm's Lua scripts "
        "need so that colloc can share the GPUs of the nodes in slurm.conf; with "
        "--write it changes the files, between markers and only in the folder of "
        "slurm.conf. Run it on slurmctld's machine; Slurm has to be restarted "
        "afterwards.\n\n"
        "check tests the running cluster: slurmctld, munge, Slurm's version, nodes, "
        "partitions, the Lua script, clocks. The exit status is 0 if all checks pass, "
        "else 1. Give it the options that setup was given.\n\n"
        "remove takes out what setup wrote; the files are then what they were, byte "
        "for byte.\n\n"
        "script prints job_submit.lua, jobcomp.lua or cli_filter.lua, for a site that "
        "has one already.\n\n"
        "docs/slurm.md is the guide.",
    .operand = OPERAND_NONE,
    .min_operands = 1,
    .max_operands = 2,
    .common_without = WITHOUT_SOCKET,
    COMMAND_OPTIONS(options),
    .run = run,
};
