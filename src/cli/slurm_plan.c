/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans what `colloc slurm setup` makes of each file: the configuration by src/slurmconf, a line
 * for the SPANK plugin, and the Lua scripts. A file that the chosen tier does not need loses what
 * an earlier setup wrote there.
 */
#include "cli/slurm_plan.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/tcp_address.h"
#include "slurmconf/login_conf.h"
#include "slurmconf/lua_text.h"

/* The values for the scripts; `administrators` and `colloc` have to outlive it. */
struct script_context {
    struct lua_settings settings;
    uid_t administrators[2];
    char program[4096];
};

/* Of a name or a number; `unknown` for a name that this machine does not know. */
static uid_t read_user(const char *name, uid_t unknown)
{
    const struct passwd *entry = getpwnam(name);
    if (entry)
        return entry->pw_uid;
    return isdigit((unsigned char)*name) ? (uid_t)strtoul(name, NULL, 10) : unknown;
}

/* Without a line it is root. */
static uid_t find_slurm_user(const struct slurm_folder *folder)
{
    char name[256];
    return slurm_folder_setting(folder, "SlurmUser", name, sizeof name) ? read_user(name, 0) : 0;
}

/* The settings of the Lua scripts are written into them: they run inside slurmctld, where another
 * file may be missing. */
static void prepare_scripts(const struct slurm_choices *choices, const struct slurm_folder *folder,
    struct script_context *context)
{
    static const char *const places[] = {"."};
    *context = (struct script_context){.administrators = {0, find_slurm_user(folder)}};
    if (beside_find(places, 1, "colloc", context->program, sizeof context->program) < 0)
        snprintf(context->program, sizeof context->program, "colloc");
    context->settings = (struct lua_settings){
        .intake = choices->intake,
        .run = choices->run,
        .wake_file = choices->wake_file,
        .administrators = context->administrators,
        .n_administrators = context->administrators[1] ? 2 : 1,
        .shards = choices->shards,
        .colloc = context->program,
        .gpu_memory_bytes = choices->gpu_memory_bytes,
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

/* A script of the site is not changed; the administrator adds colloc's part. */
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
    const struct slurm_choices *choices, struct slurm_folder *folder, struct fault *fault)
{
    struct script_context context;
    bool first_tier = choices->estimates_only;
    int r = 0;
    prepare_scripts(choices, folder, &context);
    for (size_t i = 0; lua_names[i] && r == 0; i++) {
        bool is_first = strcmp(lua_names[i], "cli_filter.lua") == 0;
        if (is_first == first_tier)
            r = plan_script(slurm_folder_find(folder, lua_names[i]), lua_names[i], &context, fault);
    }
    return r;
}

/* Without the plugin colloc works, but steps do not get MPS; so it is left out where it is not
 * installed. */
static int plan_spank(
    const struct slurm_choices *choices, struct slurm_folder *folder, struct fault *fault)
{
    static const char *const places[] = {"../" COLLOC_LIB_DIR "/colloc", "../spank"};
    char found[4096], *line;
    const char *path = choices->spank;
    if (!path &&
        beside_find(places, ARRAY_SIZE(places), "spank_colloc.so", found, sizeof found) == 0)
        path = found;
    if (!path || choices->estimates_only)
        return 0;
    if (asprintf(&line, "optional %s\n", path) < 0)
        line = NULL;
    return add_lines(slurm_folder_find(folder, "plugstack.conf"), line, fault);
}

/* "/run/munge/socket" of AuthInfo=socket=/run/munge/socket,ttl=60. */
static void find_munge_socket(const struct slurm_folder *folder, char *path, size_t size)
{
    static const char key[] = "socket=";
    char info[1024];
    const char *at = slurm_folder_setting(folder, "AuthInfo", info, sizeof info) ? strstr(info, key)
                                                                                 : NULL;
    if (at)
        snprintf(path, size, "%.*s", (int)strcspn(at + strlen(key), ","), at + strlen(key));
}

/* The file in which commands on login nodes find the controller. */
static int plan_login(
    const struct slurm_choices *choices, struct slurm_folder *folder, struct fault *fault)
{
    struct login_conf conf = {0};
    if (!choices->login || choices->estimates_only)
        return 0;
    snprintf(conf.controller, sizeof conf.controller, "%s", choices->login);
    snprintf(conf.user, sizeof conf.user, "%s", choices->controller_user);
    find_munge_socket(folder, conf.munge_socket, sizeof conf.munge_socket);
    return add_lines(slurm_folder_find(folder, LOGIN_CONF_NAME), login_conf_text(&conf), fault);
}

/* The address that colloc-slurm listens at, and the name by which login nodes know it. */
static void print_login(const char *login)
{
    const char *port = strrchr(login, ':');
    struct tcp_address address;
    bool is_numeric = tcp_address_parse(login, &address) == 0;
    printf("    login-listen: %s%s\n", is_numeric ? "" : "0.0.0.0",
        is_numeric || !port ? login : port);
    printf("    login-name: %s\n", login);
}

/* Texts are planned together: a node's GRES are in slurm.conf and its devices in gres.conf. */
static int plan_files(
    const struct slurm_choices *choices, struct slurm_folder *folder, struct fault *fault)
{
    struct setup_file confs[FOLDER_FILES_MAX] = {0}, gres = {.name = "gres.conf", .comment = "#"};
    const struct setup_options setup = {.intake = choices->intake,
        .run = choices->run,
        .takes_partition = choices->takes_partition,
        .shards = choices->shards,
        .without_controller = choices->estimates_only};
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

static void print_settings(const struct slurm_choices *choices)
{
    printf("colloc-slurm needs these lines in /etc/colloc/slurm.yaml:\n"
           "    intake-partition: %s\n    run-partition: %s\n    shards-per-gpu: %d\n"
           "    wake-file: %s\n",
        choices->intake, choices->run, choices->shards, choices->wake_file);
    if (choices->login)
        print_login(choices->login);
    putchar('\n');
}

/* Begins with the text after a removal, so that a setup with other options replaces the former
 * one. */
int slurm_plan_setup(
    const struct slurm_choices *choices, struct slurm_folder *folder, struct fault *fault)
{
    int r = slurm_plan_remove(folder, fault);
    if (r == 0)
        r = plan_files(choices, folder, fault);
    if (r == 0)
        r = plan_scripts(choices, folder, fault);
    if (r == 0)
        r = plan_spank(choices, folder, fault);
    if (r == 0)
        r = plan_login(choices, folder, fault);
    if (r == 0 && !choices->estimates_only)
        print_settings(choices);
    return r;
}

int slurm_plan_remove(struct slurm_folder *folder, struct fault *fault)
{
    for (size_t i = 0; i < folder->count; i++) {
        struct folder_file *file = &folder->files[i];
        if (file->old_text && !(file->new_text = strdup(file->text)))
            return fault_set(fault, ENOMEM, "out of memory");
    }
    return 0;
}

char *slurm_plan_script(
    const struct slurm_choices *choices, const struct slurm_folder *folder, const char *name)
{
    struct script_context context;
    prepare_scripts(choices, folder, &context);
    return lua_text_make(name, &context.settings);
}

int slurm_plan_require_controller(const struct slurm_choices *choices, struct fault *fault)
{
    static const char *const places[] = {".", ("../" COLLOC_SBIN_DIR), "../slurm"};
    char path[4096];
    if (choices->estimates_only ||
        beside_find(places, ARRAY_SIZE(places), "colloc-slurm", path, sizeof path) == 0)
        return 0;
    return fault_set(fault, ENOENT,
        "colloc-slurm is not installed on this machine, and without it no job would start: install "
        "it first, or use --estimates-only, which needs no daemon");
}
