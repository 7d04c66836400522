/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans the changes of slurm.conf. Users submit to the intake partition, which is DOWN: Slurm
 * queues there and starts nothing. colloc-slurm moves a job to the run partition with a node and
 * shards of particular GPUs. So slurm.conf needs
 *
 *   - GPUs and shards typed by index (gres_text.c), in place of each NodeName line with GPUs;
 *   - GresTypes with shard, and the Lua plugins, in place of these settings or added at the end;
 *   - the two partitions: new ones, or the existing intake partition made DOWN and a copy of it.
 *
 * A line is replaced where it stands, because the order of slurm.conf's lines has a meaning
 * (NodeName=DEFAULT).
 */
#include "slurmconf/slurm_setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/span_parts.h"
#include "slurmconf/gres_text.h"
#include "slurmconf/setup_plan.h"

/* A setting that must contain a word: as one of a list, or alone. */
struct wanted_setting {
    const char *key, *word;
    bool is_list;
    bool first_tier; /* needed without the controller, too */
    bool full_tier;  /* needed with it */
};

static const struct wanted_setting wanted[] = {
    {"GresTypes", "gpu", true, true, true},
    {"GresTypes", "shard", true, true, true},
    {"JobSubmitPlugins", "lua", true, false, true},
    {"JobCompType", "jobcomp/lua", false, false, true},
    {"CliFilterPlugins", "lua", true, true, false},
};

static bool is_wanted(const struct setup_plan *plan, const struct wanted_setting *setting)
{
    return plan->options->without_controller ? setting->first_tier : setting->full_tier;
}

static bool list_has(struct span list, const char *word)
{
    while (list.size > 0)
        if (span_is_nocase(span_take_until(&list, ','), word))
            return true;
    return false;
}

/* Replaces part of a line by another text. Returns 0 or -ENOMEM. */
static int replace_span(char **line, struct span old, const char *new_text)
{
    char *result;
    const char *after = old.at + old.size;
    if (asprintf(&result, "%.*s%s%s", (int)(old.at - *line), *line, new_text, after) < 0)
        return -ENOMEM;
    free(*line);
    *line = result;
    return 0;
}

/* ---- settings ---- */

/* Adds the word to the setting in this line. Returns 0 or -ENOMEM. */
static int extend_setting(
    struct setup_plan *plan, const struct wanted_setting *setting, char **line, struct span value)
{
    char *extended;
    bool is_none = value.size == 0 || span_is_nocase(value, "none") ||
                   span_is_nocase(value, "jobcomp/none");
    if (list_has(value, setting->word))
        return 0;
    if (!setting->is_list && !is_none) {
        fprintf(plan->notes,
            "%s=%.*s stays: colloc-slurm notices the end of jobs within seconds, not at once\n",
            setting->key, (int)value.size, value.at);
        return 0;
    }
    if (is_none)
        return replace_span(line, value, setting->word);
    if (asprintf(&extended, "%.*s,%s", (int)value.size, value.at, setting->word) < 0)
        return -ENOMEM;
    int r = replace_span(line, value, extended);
    free(extended);
    return r;
}

static int edit_settings(struct setup_plan *plan, char **line, unsigned *found)
{
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(wanted) && r == 0; i++) {
        struct span value;
        if (!is_wanted(plan, &wanted[i]) || !conf_find(*line, wanted[i].key, &value))
            continue;
        *found |= 1U << i;
        r = extend_setting(plan, &wanted[i], line, value);
    }
    return r;
}

/* The settings that no line has, as new lines. */
static void write_settings(const struct setup_plan *plan, unsigned found, FILE *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        if (!is_wanted(plan, &wanted[i]) || found & (1U << i))
            continue;
        bool goes_on = i > 0 && strcmp(wanted[i - 1].key, wanted[i].key) == 0;
        bool is_followed = i + 1 < ARRAY_SIZE(wanted) &&
                           strcmp(wanted[i + 1].key, wanted[i].key) == 0;
        fprintf(out, goes_on ? "%s%s" : "%s=%s", goes_on ? "," : wanted[i].key, wanted[i].word);
        if (!is_followed)
            fputc('\n', out);
    }
}

static int check_settings(const struct setup_plan *plan, const char *line)
{
    struct span value;
    if (conf_find(line, "SelectType", &value) && !span_is_nocase(value, "select/cons_tres"))
        return fault_set(plan->fault, ENOTSUP,
            "SelectType=%.*s: shards of GPUs need select/cons_tres: change it and start Slurm with "
            "it first",
            (int)value.size, value.at);
    return 0;
}

/* ---- nodes ---- */

static int add_nodes(struct setup_plan *plan, struct span names, int gpus)
{
    struct gpu_nodes nodes = {strndup(names.at, names.size), gpus};
    if (!nodes.names || ARRAY_APPEND(plan->nodes, plan->n_nodes, plan->nodes_capacity, nodes) < 0) {
        free(nodes.names);
        return -ENOMEM;
    }
    return 0;
}

static int type_gres(struct setup_plan *plan, char **line, struct span gres, uint64_t indices)
{
    char *typed = NULL;
    size_t size;
    FILE *out = open_memstream(&typed, &size);
    if (!out)
        return -ENOMEM;
    gres_write_typed(out, gres, indices, plan->options->shards);
    int r = fclose(out) == 0 ? replace_span(line, gres, typed) : -ENOMEM;
    free(typed);
    return r;
}

/* Refuses resources that colloc cannot share as they are. */
static int check_gres(struct setup_plan *plan, struct span names, struct span gres)
{
    struct gres_item item;
    if (gres_count(gres, "mps") > 0)
        return fault_set(plan->fault, ENOTSUP,
            "NodeName=%.*s has gres/mps, which cannot stand beside shards: remove it first",
            (int)names.size, names.at);
    while (gres_next(&gres, &item))
        if (strcmp(item.name, "gpu") == 0 && gres_is_mig_type(item.type))
            return fault_set(plan->fault, ENOTSUP,
                "NodeName=%.*s has gpu:%s: shards are parts of whole GPUs, and an instance of MIG "
                "has no device file: leave these nodes out, or turn MIG off there",
                (int)names.size, names.at, item.type);
    return 0;
}

/* Shards that the nodes have already are replaced, and jobs ask for them by number. */
static void note_other_shards(
    const struct setup_plan *plan, struct span names, struct span gres, int64_t gpus)
{
    int64_t shards = gres_count(gres, "shard");
    if (shards == 0 || gpus == 0 || shards == gpus * plan->options->shards)
        return;
    fprintf(plan->notes,
        "NodeName=%.*s has %lld shards of a GPU, and gets %d: a job that asks for more than that "
        "of one GPU can no longer start. --shards=%lld keeps the number\n",
        (int)names.size, names.at, (long long)(shards / gpus), plan->options->shards,
        (long long)(shards / gpus));
}

/* The types of the first GPUs: what a NodeName=DEFAULT line gives. */
static uint64_t first_indices(int gpus)
{
    return gpus >= GRES_INDEX_MAX ? UINT64_MAX : (UINT64_C(1) << gpus) - 1;
}

/* The numbers of the line's device files. Those of a line without Gres= have to be those of its
 * default. */
static int find_indices(const struct setup_plan *plan, struct span names, int gpus, bool has_gres,
    uint64_t *ret_indices)
{
    struct gpu_nodes nodes = {strndup(names.at, names.size), gpus};
    int r = nodes.names ? gres_setup_indices(plan, &nodes, ret_indices) : -ENOMEM;
    if (r == 0 && !has_gres && *ret_indices != first_indices(gpus))
        r = fault_set(plan->fault, ENOTSUP,
            "NodeName=%s has its GPUs from NodeName=DEFAULT, and their device files do not begin "
            "with number 0: give the line its own Gres=gpu:%d",
            nodes.names, gpus);
    free(nodes.names);
    return r;
}

/* `default_gpus`: of the last NodeName=DEFAULT line. */
static int edit_node(struct setup_plan *plan, char **line, int *default_gpus)
{
    struct span names, gres;
    if (!conf_begins_with(*line, "NodeName", &names))
        return 0;
    bool has_gres = conf_find(*line, "Gres", &gres), is_default = span_is_nocase(names, "DEFAULT");
    int64_t gpus = has_gres ? gres_count(gres, "gpu") : *default_gpus;
    int r = has_gres ? check_gres(plan, names, gres) : 0;
    if (r < 0)
        return r;
    if (gpus > GRES_INDEX_MAX)
        return fault_set(plan->fault, ERANGE, "NodeName=%.*s has %lld GPUs; at most %d",
            (int)names.size, names.at, (long long)gpus, GRES_INDEX_MAX);
    if (is_default && has_gres)
        *default_gpus = (int)gpus;
    uint64_t indices = first_indices((int)gpus);
    if (!is_default && gpus > 0)
        r = find_indices(plan, names, (int)gpus, has_gres, &indices);
    if (r == 0 && !is_default && gpus > 0)
        r = add_nodes(plan, names, (int)gpus);
    if (has_gres)
        note_other_shards(plan, names, gres, gpus);
    if (r == 0 && has_gres && gpus > 0)
        r = type_gres(plan, line, gres, indices);
    return r;
}

/* ---- partitions ---- */

static int set_value(char **line, const char *key, const char *value)
{
    struct span old;
    char *longer;
    if (conf_find(*line, key, &old))
        return replace_span(line, old, value);
    if (asprintf(&longer, "%s %s=%s", *line, key, value) < 0)
        return -ENOMEM;
    free(*line);
    *line = longer;
    return 0;
}

/* The existing intake partition becomes DOWN; the run partition is a copy of it. */
static int split_partition(const struct setup_plan *plan, char **line)
{
    char *run = strdup(*line), *both = NULL;
    int r = run ? set_value(line, "State", "DOWN") : -ENOMEM;
    if (r == 0)
        r = set_value(&run, "PartitionName", plan->options->run);
    if (r == 0)
        r = set_value(&run, "State", "UP");
    if (r == 0)
        r = set_value(&run, "Default", "NO");
    if (r == 0 && asprintf(&both, "%s\n%s", *line, run) < 0)
        r = -ENOMEM;
    free(run);
    if (r == 0) {
        free(*line);
        *line = both;
    }
    return r;
}

static int edit_partition(struct setup_plan *plan, char **line, bool *has_intake)
{
    struct span name;
    const struct setup_options *options = plan->options;
    if (options->without_controller || !conf_begins_with(*line, "PartitionName", &name))
        return 0;
    if (span_is(name, options->run))
        return fault_set(plan->fault, EEXIST,
            "slurm.conf has a partition %s already: name another one with --run", options->run);
    if (!span_is(name, options->intake))
        return 0;
    if (!options->takes_partition)
        return fault_set(plan->fault, EEXIST,
            "slurm.conf has a partition %s already: --take-partition makes it colloc's (its jobs "
            "then share GPUs), --intake=NAME names another one",
            options->intake);
    *has_intake = true;
    return split_partition(plan, line);
}

static void write_partitions(const struct setup_plan *plan, FILE *out)
{
    const char *names[] = {plan->options->intake, plan->options->run};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        fprintf(out, "PartitionName=%s Nodes=", names[i]);
        for (size_t k = 0; k < plan->n_nodes; k++)
            fprintf(out, "%s%s", k ? "," : "", plan->nodes[k].names);
        fprintf(out, " State=%s\n", i == 0 ? "DOWN" : "UP");
    }
}

/* ---- the whole ---- */

/* The findings in all files so far. */
struct progress {
    unsigned settings; /* bits by the rows of `wanted` */
    int default_gpus;
    bool has_intake;
};

/* Edits one logical line. Returns 0, or -errno with a fault. */
static int edit_line(struct setup_plan *plan, struct setup_file *file, const struct conf_line *line,
    struct progress *progress)
{
    char *text = strdup(line->text), *lines = NULL;
    int r = text ? check_settings(plan, text) : -ENOMEM;
    if (r == 0)
        r = edit_settings(plan, &text, &progress->settings);
    if (r == 0)
        r = edit_node(plan, &text, &progress->default_gpus);
    if (r == 0)
        r = edit_partition(plan, &text, &progress->has_intake);
    if (r == 0 && strcmp(text, line->text) != 0)
        r = asprintf(&lines, "%s\n", text) < 0 ? -ENOMEM
                                               : text_edits_add(&file->edits, line->bytes, lines);
    free(text);
    return r;
}

static int edit_file(struct setup_plan *plan, struct setup_file *file, struct progress *progress)
{
    struct conf_text conf;
    int r = conf_text_parse(file->text, &conf);
    for (size_t i = 0; i < conf.count && r == 0; i++) {
        r = edit_line(plan, file, &conf.lines[i], progress);
        if (r < 0)
            fault_prefix(plan->fault, r, "%s", file->name);
    }
    conf_text_fini(&conf);
    return r;
}

/* The lines that slurm.conf gets at its end. */
static int add_end(
    const struct setup_plan *plan, struct setup_file *file, const struct progress *progress)
{
    char *lines = NULL;
    size_t size;
    FILE *out = open_memstream(&lines, &size);
    if (!out)
        return -ENOMEM;
    write_settings(plan, progress->settings, out);
    if (!progress->has_intake && !plan->options->without_controller)
        write_partitions(plan, out);
    if (fclose(out) != 0) {
        free(lines);
        return -ENOMEM;
    }
    return text_edits_add(&file->edits, (struct span){file->text.at + file->text.size, 0}, lines);
}

static int plan_all(struct setup_plan *plan, struct setup_files *files)
{
    struct progress progress = {0};
    int r = gres_setup_read(plan, files->gres);
    for (size_t i = 0; i < files->n_confs && r == 0; i++)
        r = edit_file(plan, &files->confs[i], &progress);
    if (r == 0 && plan->n_nodes == 0)
        r = fault_set(plan->fault, ENOENT,
            "%s: no NodeName line has Gres=gpu:...: there is no GPU to share",
            files->confs[0].name);
    if (r == 0)
        r = add_end(plan, &files->confs[0], &progress);
    return r == 0 ? gres_setup_plan(plan, files->gres) : r;
}

int slurm_setup_plan(struct setup_files *files, const struct setup_options *options,
    struct fault *fault, char **ret_notes, size_t *ret_nodes)
{
    struct setup_plan plan = {.options = options, .fault = fault};
    size_t size;
    *ret_notes = NULL;
    plan.notes = open_memstream(ret_notes, &size);
    int r = plan.notes ? plan_all(&plan, files) : -ENOMEM;
    if (plan.notes && fclose(plan.notes) != 0)
        r = -ENOMEM;
    *ret_nodes = plan.n_nodes;
    for (size_t i = 0; i < plan.n_nodes; i++)
        free(plan.nodes[i].names);
    free(plan.nodes);
    gres_setup_fini(&plan);
    if (r == -ENOMEM)
        fault_set(fault, ENOMEM, "out of memory");
    return r;
}
