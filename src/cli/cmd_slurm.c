/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc slurm`: prepares a Slurm cluster for colloc, checks it, and takes colloc out again. What
 * the texts must be is decided in src/slurmconf; here the files are read and written, and scontrol
 * is run.
 */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "cli/check_table.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/slurm_folder.h"
#include "slurmconf/conf_text.h"
#include "slurmconf/lua_text.h"
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
        .default_text = "/run/colloc-slurm/wake",
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
};

static const char *text_option(const struct invocation *invocation, int option)
{
    const char *text = invocation->values[option].text;
    return text ? text : options[option].default_text;
}

/* The number of shards of a GPU. */
static int shards_option(const struct invocation *invocation)
{
    const struct option_value *value = &invocation->values[SLURM_SHARDS];
    return value->set ? (int)value->number : atoi(options[SLURM_SHARDS].default_text);
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
    return 0;
}

static const char *find_folder(const struct invocation *invocation, char *buffer, size_t size)
{
    const char *given = invocation->values[SLURM_FOLDER].text, *conf = getenv("SLURM_CONF");
    const char *slash = conf ? strrchr(conf, '/') : NULL;
    if (given || !slash)
        return given ? given : "/etc/slurm";
    span_copy((struct span){conf, (size_t)(slash - conf)}, buffer, size);
    return buffer;
}

/* ---- the texts ---- */

/* What the scripts get; `administrators` and `colloc` have to outlive it. */
struct script_context {
    struct lua_settings settings;
    uid_t administrators[2];
    char program[4096];
};

static uid_t find_slurm_user(const struct slurm_folder *folder)
{
    uid_t user = 0;
    for (size_t i = 0; i < folder->n_confs; i++) {
        struct conf_text conf;
        if (conf_text_parse(span_of(folder->files[i].text), &conf) == 0)
            for (size_t k = 0; k < conf.count; k++) {
                struct span value;
                char name[256];
                if (!conf_find(conf.lines[k].text, "SlurmUser", &value) ||
                    !span_copy(value, name, sizeof name))
                    continue;
                const struct passwd *entry = getpwnam(name);
                user = entry ? entry->pw_uid : user;
            }
        conf_text_fini(&conf);
    }
    return user;
}

static void prepare_scripts(const struct invocation *invocation, const struct slurm_folder *folder,
    struct script_context *context)
{
    static const char *const places[] = {"."};
    *context = (struct script_context){.administrators = {0, find_slurm_user(folder)}};
    if (beside_find(places, 1, "colloc", context->program, sizeof context->program) < 0)
        snprintf(context->program, sizeof context->program, "colloc");
    context->settings = (struct lua_settings){
        .intake = text_option(invocation, SLURM_INTAKE),
        .run = text_option(invocation, SLURM_RUN),
        .wake_file = text_option(invocation, SLURM_WAKE),
        .administrators = context->administrators,
        .n_administrators = context->administrators[1] ? 2 : 1,
        .shards = shards_option(invocation),
        .colloc = context->program,
        .gpu_memory_bytes = invocation->values[SLURM_GPU_MEMORY].number,
    };
}

static int finish_text(
    struct folder_file *file, const struct text_edits *edits, struct fault *fault)
{
    free(file->new_text);
    file->new_text = marked_text_apply(span_of(file->text), edits, file->comment);
    return file->new_text ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

/* Adds lines at the end of a file. */
static int add_lines(struct folder_file *file, char *lines, struct fault *fault)
{
    struct text_edits edits = {0};
    struct span end = {file->text + strlen(file->text), 0};
    int r = text_edits_add(&edits, end, lines);
    if (r == 0)
        r = finish_text(file, &edits, fault);
    text_edits_fini(&edits);
    return r < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}

/* A script of the site stays as it is; what colloc needs in it is for the administrator to add. */
static int plan_script(struct folder_file *file, const char *name,
    const struct script_context *context, struct fault *fault)
{
    if (strspn(file->text, " \t\r\n") == strlen(file->text))
        return add_lines(file, lua_text_make(name, &context->settings), fault);
    printf("%s is this site's own and stays as it is: add the output of `colloc slurm script %s` "
           "(with the same options) at its end, before a last `return`.\n",
        file->path, name);
    return 0;
}

static int plan_scripts(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    struct script_context context;
    bool first_tier = invocation->values[SLURM_ESTIMATES].number;
    int r = 0;
    prepare_scripts(invocation, folder, &context);
    for (size_t i = 0; lua_names[i] && r == 0; i++) {
        bool is_first = strcmp(lua_names[i], "cli_filter.lua") == 0;
        if (is_first == first_tier)
            r = plan_script(slurm_folder_find(folder, lua_names[i]), lua_names[i], &context, fault);
    }
    return r;
}

static int plan_spank(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    static const char *const places[] = {"../" COLLOC_LIB_DIR "/colloc", "../spank"};
    char found[4096], *line;
    const char *path = invocation->values[SLURM_SPANK].text;
    if (!path &&
        beside_find(places, ARRAY_SIZE(places), "spank_colloc.so", found, sizeof found) == 0)
        path = found;
    if (!path || invocation->values[SLURM_ESTIMATES].number)
        return 0;
    if (asprintf(&line, "optional %s\n", path) < 0)
        line = NULL;
    return add_lines(slurm_folder_find(folder, "plugstack.conf"), line, fault);
}

/* ---- actions ---- */

static int plan_files(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    struct setup_file confs[FOLDER_FILES_MAX] = {0}, gres = {.name = "gres.conf", .comment = "#"};
    const struct setup_options setup = {.intake = text_option(invocation, SLURM_INTAKE),
        .run = text_option(invocation, SLURM_RUN),
        .takes_partition = invocation->values[SLURM_TAKE].number,
        .shards = shards_option(invocation),
        .without_controller = invocation->values[SLURM_ESTIMATES].number};
    struct folder_file *gres_file = slurm_folder_find(folder, "gres.conf");
    struct setup_files files = {confs, folder->n_confs, &gres};
    char *notes = NULL;
    size_t nodes;
    for (size_t i = 0; i < folder->n_confs; i++)
        confs[i] = (struct setup_file){
            .name = folder->files[i].path, .comment = "#", .text = span_of(folder->files[i].text)};
    gres.text = span_of(gres_file->text);
    int r = slurm_setup_plan(&files, &setup, fault, &notes, &nodes);
    for (size_t i = 0; i < folder->n_confs && r == 0; i++)
        r = finish_text(&folder->files[i], &confs[i].edits, fault);
    if (r == 0)
        r = finish_text(gres_file, &gres.edits, fault);
    if (r == 0 && notes)
        fputs(notes, stdout);
    for (size_t i = 0; i < folder->n_confs; i++)
        text_edits_fini(&confs[i].edits);
    text_edits_fini(&gres.edits);
    free(notes);
    return r;
}

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

/* Without colloc-slurm no job of the intake would ever start. */
static int require_controller(const struct invocation *invocation, struct fault *fault)
{
    static const char *const places[] = {".", "../" COLLOC_SBIN_DIR, "../slurm"};
    char path[4096];
    if (!invocation->values[SLURM_WRITE].number || invocation->values[SLURM_ESTIMATES].number ||
        beside_find(places, ARRAY_SIZE(places), "colloc-slurm", path, sizeof path) == 0)
        return 0;
    return fault_set(fault, ENOENT,
        "colloc-slurm is not installed on this machine, and without it no job would start: install "
        "it first, or use --estimates-only, which needs no daemon");
}

static int setup(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    int r = require_controller(invocation, fault);
    if (r == 0)
        r = plan_files(invocation, folder, fault);
    if (r == 0)
        r = plan_scripts(invocation, folder, fault);
    if (r == 0)
        r = plan_spank(invocation, folder, fault);
    if (r == 0)
        r = carry_out(invocation, folder, false, fault);
    return r < 0 ? r : EXIT_OK;
}

static int take_out(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    for (size_t i = 0; i < folder->count; i++) {
        struct folder_file *file = &folder->files[i];
        if (file->old_text && !(file->new_text = strdup(file->text)))
            return fault_set(fault, ENOMEM, "out of memory");
    }
    int r = carry_out(invocation, folder, true, fault);
    return r < 0 ? r : EXIT_OK;
}

static int print_script(
    const struct invocation *invocation, struct slurm_folder *folder, struct fault *fault)
{
    struct script_context context;
    prepare_scripts(invocation, folder, &context);
    char *text = lua_text_make(invocation->operands[1], &context.settings);
    if (!text)
        return fault_set(fault, EINVAL,
            "slurm script: there is no script '%.80s': give job_submit.lua, jobcomp.lua or "
            "cli_filter.lua",
            invocation->operands[1]);
    fputs(text, stdout);
    free(text);
    return EXIT_OK;
}

/* What a command prints, on the heap; "" when it cannot be run. `command` is no user's text. */
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

static int check(
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
    struct script_context context;
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
        texts[i] = read_command(queries[i], &status[i]);
    prepare_scripts(invocation, folder, &context);
    char *wanted = lua_text_make("job_submit.lua", &context.settings);
    const struct folder_file *guard = slurm_folder_find(folder, "job_submit.lua");
    const struct slurm_facts_read facts = {texts[0], status[1] == 0 ? texts[1] : "", texts[2],
        texts[3], status[1] == 0 || status[4] == 0, context.settings.intake, context.settings.run,
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
    {"setup", 1, false, setup},
    {"check", 1, true, check},
    {"remove", 1, false, take_out},
    {"script", 2, false, print_script},
};

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
        "check looks at the running cluster: slurmctld, munge, Slurm's version, nodes, "
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
