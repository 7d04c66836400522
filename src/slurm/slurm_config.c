/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of colloc-slurm. They are one table, as those of collocd
 * (daemon/config_table.h): each row names a field, the kind of its value and its help. */
#include "slurm/slurm_config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "api/client_socket.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "policy/policies.h"
#include "service/setting_file.h"
#include "service/setting_kind.h"
#include "taskfile/option_words.h"

#define DEFAULT_FILE "/etc/colloc/slurm.yaml"
#define FIELD(name)  NULL, SETTING_AT(struct slurm_config, name)

/* CORE: a setting of the core, by its ID in core/settings.def. */
#define CORE(id)                                                                                   \
    {                                                                                              \
        .core = &core_setting_table[CORE_SETTING_##id]                                             \
    }

static const struct row {
    const char *name;
    const struct core_setting *core; /* NULL: it is none of the core's */
    size_t offset, size;
    const struct setting_kind *kind;
    const char *argument, *help;
} rows[] = {
    {"intake-partition", FIELD(intake_partition), &setting_text, "NAME",
        "partition that users submit to; it is DOWN, so Slurm starts nothing there"},
    {"run-partition", FIELD(run_partition), &setting_text, "NAME",
        "partition that colloc-slurm moves a job to when it has GPUs for it"},
    {"shards-per-gpu", FIELD(shards_per_gpu), &setting_count, "N",
        "shards that gres.conf gives each GPU"},
    {"gpu-memory", FIELD(gpu_memory_bytes), &setting_size, "SIZE",
        "memory of a GPU of which no agent has reported; 0: 1 GiB for each shard"},
    {"wake-file", FIELD(wake_file), &setting_text, "FILE",
        "file to which Slurm's Lua scripts append a line for each submission and end; none: only "
        "polls"},
    {"poll", FIELD(poll_us), &setting_period, "TIME", "interval at which Slurm is asked anyway"},
    {"listen", FIELD(listen), &setting_address, "ADDRESS:PORT",
        "where the agents of the nodes report their GPUs, such as 10.0.0.1:7482; none: estimates "
        "alone decide"},
    {"socket", FIELD(socket), &setting_text, "PATH",
        "socket that `colloc queue`, `show`, `gpus`, `top` and `info` ask; none: they cannot"},
    {"login-listen", FIELD(login_listen), &setting_address, "ADDRESS:PORT",
        "where these commands on other machines ask, each request signed by munge, such as "
        "10.0.0.1:7491; none: only this machine's can"},
    {"login-name", FIELD(login_name), &setting_host_port, "HOST:PORT",
        "the line Controller= of colloc.conf: requests that are meant for another controller are "
        "refused; none: any with the port of login-listen is accepted"},
    {"web", FIELD(web), &setting_web, "ADDRESS:PORT",
        "where the web page is served, such as 127.0.0.1:7480; on-demand: at 127.0.0.1 after the "
        "first `colloc web`; none: never"},
    {"node-auth", FIELD(node_auth), &setting_node_auth, "HOW",
        "how the agents authenticate: munge; or tls, by a key that they share, for clusters without "
        "munge"},
    {"node-key-file", FIELD(node_key_file), &setting_text, "FILE",
        "file of that key; empty: " NODE_KEY_USUAL},
    {"munge-socket", FIELD(munge_socket), &setting_text, "PATH",
        "socket of munged; empty: the usual one"},
    {"state-dir", FIELD(state_dir), &setting_text, "FOLDER",
        "folder of the lock that keeps a second controller from starting"},
    {"policy", FIELD(core.policy), &setting_policy, "NAME", "placement policy: {choices}"},
    {"sharing", FIELD(sharing), &setting_sharing, "HOW",
        "how a job without --sharing shares a GPU: streams, mps or auto"},
    {"estimator", FIELD(estimator), &setting_text, "NAME",
        "estimator of the GPU memory of jobs with a model summary"},
    {"reserve-quantile", FIELD(reserve_quantile), &setting_quantile, "Q",
        "memory to reserve for a job: this quantile of the estimate (0.5, 0.9 or 0.99)"},
    CORE(BACKFILL),
    CORE(SMACT_MAX),
    CORE(MIN_FREE),
    CORE(MARGIN),
    CORE(SLOWDOWN_MAX),
    CORE(TASKS_PER_GPU),
    CORE(MPS_USERS_TOGETHER),
    CORE(WINDOW),
    CORE(SETTLE),
    CORE(SETTLE_MAX),
    CORE(RECOVERIES),
    CORE(CAN_SUSPEND),
    CORE(PREEMPT),
    CORE(SUSPEND_UNUSED),
    CORE(RANKS_AWAY),
    {"log-level", FIELD(log_level), &setting_log_level, "LEVEL",
        "the least important messages to log: error, warning, info or debug"},
};
enum { SETTINGS = ARRAY_SIZE(rows) };

static struct setting setting_at(size_t i)
{
    const struct row *row = &rows[i];
    if (row->core)
        return core_setting_as(
            row->core, offsetof(struct slurm_config, core), row->core->slurm_help);
    return (struct setting){row->name, row->offset, row->size, row->kind, row->argument, row->help};
}

static void set_defaults(struct slurm_config *config)
{
    *config = (struct slurm_config){.intake_partition = "gpu",
        .run_partition = "gpu-run",
        .wake_file = "/run/colloc-slurm/wake",
        .state_dir = "/var/lib/colloc-slurm",
        .listen = "none",
        .login_listen = "none",
        .login_name = "none",
        .web = "on-demand",
        .socket = SLURM_SOCKET_USUAL,
        .estimator = ESTIMATOR_USUAL,
        .reserve_quantile = ESTIMATE_RESERVED_QUANTILE,
        .sharing = SHARING_STREAMS,
        .shards_per_gpu = 80,
        .poll_us = 5 * SECOND_US,
        .core = core_settings_default(),
        .log_level = LOG_LEVEL_INFO};
    config->core.policy = &policy_magm;
    config->core.can_suspend = true;
}

static int set_named(void *context, const char *name, const char *value, struct fault *fault)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting setting = setting_at(i);
        if (strcmp(setting.name, name) != 0)
            continue;
        void *member = (char *)context + setting.offset;
        if (setting_parse(setting.kind, value, member, setting.size) == 0)
            return 0;
        return fault_set(
            fault, EINVAL, "%s: invalid value '%s': give %s", name, value, setting.kind->expects);
    }
    return fault_set(
        fault, EINVAL, "%s: unknown setting: `colloc-slurm --help` lists all settings", name);
}

static int take_setting(
    void *context, const char *name, const char *value, bool is_list, struct fault *fault)
{
    return is_list ? fault_set(fault, EINVAL, "%s: a list is no value of it", name)
                   : set_named(context, name, value, fault);
}

/* ---- the command line ---- */

enum { ARGUMENT_CONFIG = SETTINGS, ARGUMENT_CHECK, ARGUMENTS };

static void list_specs(struct option_spec specs[static ARGUMENTS])
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting setting = setting_at(i);
        specs[i] = (struct option_spec){.name = setting.name,
            .kind = OPTION_TEXT,
            .argument = setting.argument,
            .help = setting.help,
            .choice_at = policy_name_at};
    }
    specs[ARGUMENT_CONFIG] = (struct option_spec){
        .name = "config", .kind = OPTION_FILE, .argument = "FILE"};
    specs[ARGUMENT_CHECK] = (struct option_spec){.name = "check", .kind = OPTION_FLAG};
}

/* Takes the settings; with a NULL config only finds the file and --check. */
static int take_arguments(struct slurm_config *config, int argc, char **argv, const char **ret_file,
    bool *ret_check, struct fault *fault)
{
    struct option_spec specs[ARGUMENTS];
    const char *const *words = (const char *const *)argv;
    list_specs(specs);
    const struct option_set set = {specs, ARGUMENTS, NULL};
    for (int i = 1, taken; i < argc; i += taken) {
        struct option_word word;
        taken = option_next(&set, 1, words + i, argc - i, &word, fault);
        if (taken <= 0)
            return taken < 0 ? taken
                             : fault_set(fault, EINVAL,
                                   "%s: unexpected argument: colloc-slurm takes only options "
                                   "(`colloc-slurm --help` lists them)",
                                   words[i]);
        if (word.spec == &specs[ARGUMENT_CONFIG])
            *ret_file = word.value;
        else if (word.spec == &specs[ARGUMENT_CHECK])
            *ret_check = true;
        else if (config && set_named(config, word.spec->name, word.value, fault) < 0)
            return -EINVAL;
    }
    return 0;
}

static int check_config(const struct slurm_config *config, struct fault *fault)
{
    if (strcmp(config->intake_partition, config->run_partition) == 0)
        return fault_set(fault, EINVAL,
            "intake-partition and run-partition are both %s: users would start their jobs "
            "themselves",
            config->run_partition);
    if (*config->wake_file != '/' && strcmp(config->wake_file, "none") != 0)
        return fault_set(
            fault, EINVAL, "wake-file: %s: give an absolute path, or none", config->wake_file);
    if (*config->socket != '/' && strcmp(config->socket, "none") != 0)
        return fault_set(
            fault, EINVAL, "socket: %s: give an absolute path, or none", config->socket);
    if (config->shards_per_gpu < 1)
        return fault_set(fault, EINVAL, "shards-per-gpu: give at least 1");
    if (!estimator_find(config->estimator))
        return fault_set(fault, EINVAL, "estimator: there is no '%s'", config->estimator);
    return 0;
}

int slurm_config_read(struct slurm_config *config, int argc, char **argv, struct fault *fault)
{
    const char *file = NULL;
    bool only_check = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return SLURM_CONFIG_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return SLURM_CONFIG_VERSION;
    }
    set_defaults(config);
    int r = take_arguments(NULL, argc, argv, &file, &only_check, fault);
    if (r == 0 && !file && access(DEFAULT_FILE, F_OK) == 0)
        file = DEFAULT_FILE;
    if (r == 0 && file)
        r = setting_file_read(file, take_setting, config, NULL, fault);
    if (r == 0)
        r = take_arguments(config, argc, argv, &file, &only_check, fault);
    if (r == 0)
        r = check_config(config, fault);
    if (!config->gpu_memory_bytes)
        config->gpu_memory_bytes = config->shards_per_gpu * GIB;
    return r == 0 && only_check ? SLURM_CONFIG_CHECK : r;
}

void slurm_config_print(FILE *out)
{
    struct slurm_config defaults;
    struct option_spec specs[ARGUMENTS];
    set_defaults(&defaults);
    list_specs(specs);
    for (size_t i = 0; i < SETTINGS; i++) {
        char value[512], help[OPTION_HELP_MAX];
        const struct setting setting = setting_at(i);
        setting_format(setting.kind, (const char *)&defaults + setting.offset, value, sizeof value);
        option_help_text(&specs[i], help, sizeof help);
        fprintf(out, "  --%s=%s\n      %s (default: %s)\n", setting.name, setting.argument, help,
            *value ? value : "none");
    }
}
