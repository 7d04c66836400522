/* SPDX-License-Identifier: Apache-2.0 */
/* Values from the file and the command line, and changes at a reload, by the table of settings
 * (config_table.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "daemon/config.h"
#include "daemon/config_table.h"
#include "service/setting_file.h"
#include "taskfile/option_words.h"

#define DEFAULT_FILE "/etc/colloc/collocd.yaml"

/* ---- the file ---- */

/* All settings as options of a command line. Returns how many. */
static size_t list_specs(struct option_spec specs[static CONFIG_ROWS_MAX])
{
    size_t n = config_row_count();
    for (size_t i = 0; i < n; i++) {
        const struct config_row row = config_row_at(i);
        specs[i] = config_row_spec(&row);
    }
    return n;
}

static int set_row(
    struct config *config, const struct config_row *row, const char *value, struct fault *fault)
{
    char help[OPTION_HELP_MAX];
    const struct option_spec spec = config_row_spec(row);
    void *field = (char *)config + row->offset;
    if (setting_parse(row->kind, value, field, row->size) == 0)
        return 0;
    option_help_text(&spec, help, sizeof help);
    return fault_set(fault, EINVAL, "%s: invalid value '%s': give %s (%s)", row->name, value,
        row->kind->expects, help);
}

/* What a file has set so far. */
struct file_settings {
    struct config *config;
    bool is_set[CONFIG_ROWS_MAX];
};

/* A bare number is MiB, which an administrator may not have meant. */
static void warn_without_unit(const struct config_row *row, const char *value)
{
    if (row->kind->type == SETTING_SIZE && !value[strspn(value, "0123456789.")] &&
        value[strspn(value, "0.")])
        log_warning("%s: '%s' has no unit, so it is MiB: write %sMiB, or %sGiB if you mean that",
            row->name, value, value, value);
}

static int take_setting(
    void *context, const char *name, const char *value, bool is_list, struct fault *fault)
{
    struct file_settings *file = context;
    struct option_spec specs[CONFIG_ROWS_MAX];
    size_t n = list_specs(specs);
    const struct option_spec *spec = option_find(specs, n, name);
    if (spec) {
        size_t i = (size_t)(spec - specs);
        const struct config_row row = config_row_at(i);
        if (file->is_set[i])
            log_warning("%s: is set twice in the configuration: the last line counts", name);
        file->is_set[i] = true;
        if (is_list && strcmp(row.takes, "LIST") != 0)
            return fault_set(
                fault, EINVAL, "%s: a list is no value of it: give %s", name, row.kind->expects);
        warn_without_unit(&row, value);
        return set_row(file->config, &row, value, fault);
    }
    const char *near = option_find_near(&(struct option_set){specs, n, NULL}, 1, name);
    if (near)
        return fault_set(fault, EINVAL, "%s: unknown setting: did you mean %s?", name, near);
    return fault_set(
        fault, EINVAL, "%s: unknown setting: `collocd --help` lists all settings", name);
}

/* ---- the command line ---- */

/* The options of a command line beside the settings. */
enum { ARGUMENT_CONFIG, ARGUMENT_CHECK, ARGUMENTS };
static const struct option_spec own_arguments[ARGUMENTS] = {
    [ARGUMENT_CONFIG] = {.name = "config", .kind = OPTION_FILE, .argument = "FILE"},
    [ARGUMENT_CHECK] = {.name = "check", .kind = OPTION_FLAG},
};

/* The values of a command line. */
struct arguments {
    struct config *config; /* takes the settings; NULL: they are skipped */
    const char *file;      /* the first --config, or NULL */
    bool only_check;
};

static int take_argument(
    struct arguments *arguments, const struct option_word *word, struct fault *fault)
{
    if (word->spec == &own_arguments[ARGUMENT_CHECK]) {
        arguments->only_check = true;
        return strcmp(word->value, "yes") == 0
                   ? 0
                   : fault_set(fault, EINVAL, "--check: takes no value");
    }
    if (word->spec == &own_arguments[ARGUMENT_CONFIG]) {
        if (!arguments->file)
            arguments->file = word->value;
        return 0;
    }
    if (!arguments->config)
        return 0;
    const struct config_row row = config_row_at((size_t)(word->spec - word->set->specs));
    return set_row(arguments->config, &row, word->value, fault);
}

static int read_arguments(
    struct arguments *arguments, const char *const *words, int count, struct fault *fault)
{
    struct option_spec specs[CONFIG_ROWS_MAX];
    size_t n = list_specs(specs);
    const struct option_set sets[] = {{own_arguments, ARGUMENTS, NULL}, {specs, n, NULL}};
    for (int i = 0; i < count;) {
        struct option_word word;
        int taken = option_next(sets, ARRAY_SIZE(sets), words + i, count - i, &word, fault);
        if (taken == 0)
            return fault_set(fault, EINVAL,
                "%s: unexpected argument: collocd takes only options (`collocd --help` lists them)",
                words[i]);
        int r = taken < 0 ? taken : take_argument(arguments, &word, fault);
        if (r < 0)
            return r;
        i += taken;
    }
    return 0;
}

/* Checks what no single value shows. Shims run in other folders, so they need the whole path. */
static int check_settings(const struct config *config, struct fault *fault)
{
    if (config->state_dir[0] != '/')
        return fault_set(
            fault, EINVAL, "state-dir: '%s': give an absolute path", config->state_dir);
    int r = core_settings_check(&config->core, fault);
    if (r < 0)
        return r;
    if (config->core.preempt && config->slots)
        return fault_set(fault, EINVAL,
            "slots: with preempt, the policy decides which task gives way: set only one of the two");
    if (config->gpu_filter && config->core.can_suspend)
        return fault_set(fault, EINVAL,
            "gpu-filter: a task that sees only its own GPUs cannot be put on others: set suspend: no");
    return 0;
}

/*
 * MPS gets the most done (docs/collocation.md), but NVIDIA's driver does not suspend its clients,
 * and its server opens the GPUs for them, whatever the filter of their cgroup says. Where a setting
 * needs these, tasks are time-sliced by default.
 */
static enum sharing default_sharing(const struct config *config)
{
    const struct core_settings *core = &config->core;
    bool suspends = core->preempt || core->make_room || core->suspend_unused_us > 0 ||
                    config->slots;
    return suspends || config->gpu_filter ? SHARING_STREAMS : SHARING_AUTO;
}

int config_read_arguments(struct config *config, int argc, char **argv,
    setting_file_on_mistake *on_mistake, struct fault *fault)
{
    const char *const *words = (const char *const *)argv + 1;
    struct arguments first = {0}, second = {.config = config};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return CONFIG_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return CONFIG_VERSION;
    }
    int r = read_arguments(&first, words, argc - 1, fault);
    if (r == 0 && !first.file && geteuid() == 0 && access(DEFAULT_FILE, F_OK) == 0)
        first.file = DEFAULT_FILE;
    if (r == 0 && first.file)
        r = setting_file_read(
            first.file, take_setting, &(struct file_settings){.config = config}, on_mistake, fault);
    if (r == 0)
        r = read_arguments(&second, words, argc - 1, fault);
    if (r == 0)
        r = check_settings(config, fault);
    config->core.carries_mps = config->carrier && config->preload;
    if (config->sharing == SHARING_NOT_SET)
        config->sharing = default_sharing(config);
    return r == 0 && first.only_check ? CONFIG_CHECK : r;
}

/* ---- a reload ---- */

void config_change(
    struct config *config, const struct config *wanted, config_on_change *on_change, void *context)
{
    for (size_t i = 0; i < config_row_count(); i++) {
        const struct config_row row = config_row_at(i);
        char from[CONFIG_VALUE_SIZE] = "?", to[CONFIG_VALUE_SIZE] = "?";
        config_row_format(&row, config, from, sizeof from);
        config_row_format(&row, wanted, to, sizeof to);
        if (strcmp(from, to) == 0)
            continue;
        if (row.is_live)
            memcpy((char *)config + row.offset, (const char *)wanted + row.offset, row.size);
        on_change(context, row.name, from, to, row.is_live);
    }
}
