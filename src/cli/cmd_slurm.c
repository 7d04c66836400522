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
#include "cli/slurm_link.h"
#include "cli/slurm_plan.h"
#include "slurmconf/link_conf.h"
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
    SLURM_NODE_AUTH,
    SLURM_SETTINGS,
};

static const struct option_spec options[] = {
    [SLURM_FOLDER] = OPTION("folder", FILE, "DIR",
        .help = "folder of slurm.conf; default: that of SLURM_CONF, otherwise /etc/slurm"),
    [SLURM_WRITE] = FLAG_OPTION(
        "write", .help = "setup, remove: write the files; without it, print what would change"),
    [SLURM_INTAKE] = OPTION("intake", TEXT, "NAME", .max = 64, .default_text = "gpu",
        .help = "partition that users submit to; default: {default}"),
    [SLURM_RUN] = OPTION("run", TEXT, "NAME", .max = 64, .default_text = "gpu-run",
        .help = "partition that colloc moves jobs to, where they run; default: {default}"),
    [SLURM_TAKE] = FLAG_OPTION("take-partition",
        .help = "setup: an existing partition of the intake's name becomes colloc's"),
    [SLURM_SHARDS] = OPTION("shards", INTEGER, "N", .min = 2, .max = 10000, .default_text = "80",
        .help = "shards of each GPU, the unit in which its memory is shared; default: {default}"),
    [SLURM_WAKE] = OPTION("wake-file", FILE, "FILE",
        .help =
            "file that slurmctld writes a line to for each submission and end, and colloc-slurm "
            "watches; default: colloc-wake in the StateSaveLocation of slurm.conf, which is "
            "SlurmUser's"),
    [SLURM_SPANK] = OPTION("spank", FILE, "FILE",
        .help = "SPANK plugin of the node agents; default: the installed one, if there is one"),
    [SLURM_ESTIMATES] = FLAG_OPTION("estimates-only",
        .help = "setup: only the first tier, without any daemon: sbatch estimates and asks for "
                "shards, Slurm places"),
    [SLURM_GPU_MEMORY] = OPTION("gpu-memory", SIZE, "SIZE", .min = (int64_t)1 << 30,
        .max = (int64_t)1 << 50, .needs_unit = true,
        .help = "with --estimates-only: memory of a GPU, the smallest where they differ"),
    [SLURM_LOGIN] = OPTION("login", TEXT, "HOST:PORT", .max = LOGIN_HOST_SIZE - 1,
        .help = "setup: where colloc's commands on login nodes reach colloc-slurm; default: they "
                "do not"),
    [SLURM_CONTROLLER_USER] = OPTION("controller-user", TEXT, "USER", .max = LOGIN_USER_SIZE - 1,
        .default_text = "root",
        .help = "user that colloc-slurm runs as, for --login and the key of node-auth tls; "
                "default: {default}"),
    [SLURM_NODE_AUTH] = OPTION("node-auth", TEXT, "HOW", .max = 16,
        .help =
            "setup: how the nodes' agents and colloc-slurm prove their identity: munge; or tls, "
            "by a shared key; default: as slurm.yaml says, else tls if AuthType of slurm.conf "
            "is not auth/munge"),
    [SLURM_SETTINGS] = OPTION("settings", FILE, "DIR", .default_text = "/etc/colloc",
        .help = "folder of slurm.yaml, collocd.yaml and node.key; default: {default}"),
};

/* What an action works on. */
struct slurm_target {
    struct slurm_folder slurm;
    struct slurm_link link;
};

static const char *text_option(const struct invocation *invocation, int option)
{
    const char *text = invocation->values[option].text;
    return text ? text : options[option].default_text;
}

/* slurmctld must be able to write the file, as SlurmUser: its own folder is always there. */
static void find_wake_file(
    const struct invocation *invocation, const struct slurm_folder *folder, char *path, size_t size)
{
    const char *given = invocation->values[SLURM_WAKE].text;
    char state[4000];
    if (given)
        snprintf(path, size, "%s", given);
    else if (slurm_folder_setting(folder, "StateSaveLocation", state, sizeof state))
        snprintf(path, size, "%s/colloc-wake", state);
    else
        snprintf(path, size, WAKE_FILE_USUAL);
}

static struct slurm_choices choices_of(
    const struct invocation *invocation, const struct slurm_folder *folder)
{
    const struct option_value *shards = &invocation->values[SLURM_SHARDS];
    struct slurm_choices choices = {
        .intake = text_option(invocation, SLURM_INTAKE),
        .run = text_option(invocation, SLURM_RUN),
        .spank = invocation->values[SLURM_SPANK].text,
        .takes_partition = invocation->values[SLURM_TAKE].number,
        .estimates_only = invocation->values[SLURM_ESTIMATES].number,
        .shards = shards->set ? (int)shards->number : atoi(options[SLURM_SHARDS].default_text),
        .gpu_memory_bytes = invocation->values[SLURM_GPU_MEMORY].number,
        .login = invocation->values[SLURM_LOGIN].text,
        .controller_user = text_option(invocation, SLURM_CONTROLLER_USER),
    };
    find_wake_file(invocation, folder, choices.wake_file, sizeof choices.wake_file);
    return choices;
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
    const char *auth = invocation->values[SLURM_NODE_AUTH].text;
    if (auth && strcmp(auth, "munge") != 0 && strcmp(auth, "tls") != 0)
        return fault_set(fault, EINVAL, "slurm: --node-auth: %s: give munge or tls", auth);
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

/* Prints or writes the planned changes of a folder. Returns how many files, or -errno with a
 * fault. */
static int carry_out(const struct invocation *invocation, struct slurm_folder *folder,
    bool removing, struct fault *fault)
{
    return invocation->values[SLURM_WRITE].number ? slurm_folder_write(folder, removing, fault)
                                                  : slurm_folder_print(folder);
}

static void report_changes(
    const struct invocation *invocation, const struct slurm_target *target, int slurm, int settings)
{
    bool writes = invocation->values[SLURM_WRITE].number;
    if (slurm == 0)
        printf("Nothing %s to be changed in %s.\n", writes ? "was" : "is", target->slurm.path);
    if (writes && slurm > 0)
        printf("%d files in %s were changed. Copy them to all nodes, then restart slurmctld and "
               "every slurmd.\n",
            slurm, target->slurm.path);
    if (writes && settings > 0)
        printf("%d files in %s were changed.\n", settings, target->link.files.path);
    if (!writes && slurm + settings > 0)
        printf("Nothing was written; add --write to do it.\n");
}

/* The key is no file of a folder: it is not copied with others, and never printed. Returns 1 when
 * it changes, 0, or -errno with a fault. */
static int carry_out_key(const struct invocation *invocation, const struct slurm_link *link,
    bool removing, struct fault *fault)
{
    static const char *const done[2][2] = {
        {" (new): a random key that only colloc-slurm's user can read",
            " was made: a random key that only colloc-slurm's user can read"},
        {" would be removed", " was removed: remove the copies on the nodes, too"}};
    bool writes = invocation->values[SLURM_WRITE].number;
    bool is_changed = removing ? slurm_link_made_key(link) : link->is_tls && !link->has_key;
    int r = 0;
    if (is_changed && writes)
        r = removing
                ? slurm_link_remove_key(link, fault)
                : slurm_link_make_key(link, text_option(invocation, SLURM_CONTROLLER_USER), fault);
    if (is_changed && r >= 0)
        printf("%s%s\n\n", link->key_path, done[removing][writes]);
    return r < 0 ? r : is_changed;
}

/* Slurm's files first: they are refused as a whole where one cannot be written. */
static int carry_out_all(const struct invocation *invocation, struct slurm_target *target,
    bool removing, struct fault *fault)
{
    int slurm = carry_out(invocation, &target->slurm, removing, fault);
    int settings = slurm < 0 ? slurm : carry_out(invocation, &target->link.files, removing, fault);
    int key = settings < 0 ? settings : carry_out_key(invocation, &target->link, removing, fault);
    if (key < 0)
        return key;
    if (!removing && target->link.is_tls)
        slurm_link_print_nodes(&target->link);
    report_changes(invocation, target, slurm, settings + key);
    return EXIT_OK;
}

static enum link_choice link_choice_of(const struct invocation *invocation)
{
    const char *auth = invocation->values[SLURM_NODE_AUTH].text;
    return !auth ? LINK_AS_SLURM : strcmp(auth, "tls") == 0 ? LINK_TLS : LINK_MUNGE;
}

/* The first tier has no agents. */
static int set_up_slurm(
    const struct invocation *invocation, struct slurm_target *target, struct fault *fault)
{
    const struct slurm_choices choices = choices_of(invocation, &target->slurm);
    int r = 0;
    if (invocation->values[SLURM_WRITE].number)
        r = slurm_plan_require_controller(&choices, fault);
    if (r == 0)
        r = slurm_plan_setup(&choices, &target->slurm, fault);
    if (r == 0)
        r = choices.estimates_only
                ? slurm_plan_remove(&target->link.files, fault)
                : slurm_link_plan(&target->link, &target->slurm, link_choice_of(invocation), fault);
    return r == 0 ? carry_out_all(invocation, target, false, fault) : r;
}

static int take_out(
    const struct invocation *invocation, struct slurm_target *target, struct fault *fault)
{
    int r = slurm_plan_remove(&target->slurm, fault);
    if (r == 0)
        r = slurm_plan_remove(&target->link.files, fault);
    return r == 0 ? carry_out_all(invocation, target, true, fault) : r;
}

static int print_script(
    const struct invocation *invocation, struct slurm_target *target, struct fault *fault)
{
    const struct slurm_choices choices = choices_of(invocation, &target->slurm);
    char *text = slurm_plan_script(&choices, &target->slurm, invocation->operands[1]);
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
    const struct invocation *invocation, struct slurm_target *target, struct fault *fault)
{
    static const char *const queries[] = {"LC_ALL=C scontrol ping 2>&1",
        "LC_ALL=C scontrol show config 2>/dev/null",
        "LC_ALL=C scontrol --oneliner show node 2>/dev/null",
        "LC_ALL=C scontrol --oneliner show partition 2>/dev/null",
        "munge -n </dev/null 2>/dev/null"};
    char *texts[ARRAY_SIZE(queries)];
    int status[ARRAY_SIZE(queries)];
    struct doctor_check checks[SLURM_CHECKS_MAX];
    const struct slurm_choices choices = choices_of(invocation, &target->slurm);
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
        texts[i] = read_command(queries[i], &status[i]);
    char *wanted = slurm_plan_script(&choices, &target->slurm, "job_submit.lua");
    const struct folder_file *guard = slurm_folder_find(&target->slurm, "job_submit.lua");
    const struct folder_file *gres = slurm_folder_find(&target->slurm, "gres.conf");
    struct slurm_facts_read facts = {.ping = texts[0],
        .config = status[1] == 0 ? texts[1] : "",
        .nodes = texts[2],
        .partitions = texts[3],
        .gres = gres ? gres->old_text : NULL,
        .munge_works = status[1] == 0 || status[4] == 0,
        .intake = choices.intake,
        .run = choices.run,
        .guard = guard ? guard->old_text : NULL,
        .guard_wanted = wanted ? wanted : "",
        .now_s = time(NULL),
        .agents = slurm_link_ask_agents(&target->link)};
    char wake_file[LINK_PATH_SIZE];
    slurm_link_find_sides(&target->link, &facts.controller, &facts.agent);
    slurm_link_find_wake_file(&target->link, wake_file, sizeof wake_file);
    facts.wake_file = wake_file;
    facts.wake_wanted = choices.wake_file;
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
    int (*run)(const struct invocation *, struct slurm_target *, struct fault *);
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
    struct slurm_target target = {0};
    char buffer[4096];
    size_t i = 0;
    int r = find_action(invocation, &fault, &i);
    if (r == 0)
        r = check_options(invocation, &fault);
    if (r < 0) {
        print_error("%s", fault.text);
        return EXIT_USAGE;
    }
    r = slurm_folder_open(find_folder(invocation, buffer, sizeof buffer), &fault, &target.slurm);
    if (r == 0)
        r = slurm_link_open(text_option(invocation, SLURM_SETTINGS), &fault, &target.link);
    if (r == 0)
        r = actions[i].run(invocation, &target, &fault);
    if (r < 0)
        print_error("%s", fault.text);
    slurm_folder_close(&target.slurm);
    slurm_link_close(&target.link);
    return r < 0 ? EXIT_REFUSED : r;
}

const struct command command_slurm = {
    .name = "slurm",
    .usage = "[OPTION...] setup|check|remove|script [NAME]",
    .summary = "prepare a Slurm cluster for sharing GPUs, check it, and undo that",
    .description =
        "setup prints the changes of slurm.conf, gres.conf, plugstack.conf and Slurm's Lua "
        "scripts that colloc needs to share the GPUs of the nodes in slurm.conf. With --write it "
        "changes the files, between markers and only in the folder of slurm.conf. If the nodes' "
        "agents do not use munge, it also sets node-auth in slurm.yaml and makes the key. Run it "
        "on slurmctld's machine, and restart Slurm afterwards.\n\n"
        "check tests the running cluster: slurmctld, munge, Slurm's version, nodes, "
        "partitions, the Lua script, clocks, and how the agents prove their identity, which can "
        "be checked on a node, too. The exit status is 0 if all checks pass, "
        "else 1. Give it the options that setup was given.\n\n"
        "remove takes back the changes of setup and restores the files, byte for byte.\n\n"
        "script prints job_submit.lua, jobcomp.lua or cli_filter.lua, for a site that "
        "has one already.\n\n"
        "docs/slurm.md is the guide.",
    .operand = OPERAND_NONE,
    .actions = (const char *const[]){"setup", "check", "remove", "script", NULL},
    .min_operands = 1,
    .max_operands = 2,
    .common_without = WITHOUT_SOCKET,
    COMMAND_OPTIONS(options),
    .run = run,
};
