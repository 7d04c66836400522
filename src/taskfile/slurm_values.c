/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the values of Slurm's options that have another form than colloc's. What they mean follows
 * from several of them together, so these readers only keep it: slurm_lines.c decides.
 *
 *     --mem=32GB             32 GiB: Slurm's units are powers of two, with a B and without
 *     --gres=gpu:a100:2      --gpus=2 --gpu-kind=a100
 *     --mail-type=END        added to the types of the lines before
 */
#include "taskfile/slurm_values.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"
#include "taskfile/output_pattern.h"
#include "taskfile/signal_spec.h"

enum { KIND_SIZE = 64 }; /* chosen: Slurm's types are short words */

static const char *marker_of(const struct slurm_context *context)
{
    return context->line ? "#SBATCH " : "";
}

void slurm_warn(struct slurm_context *context, const char *name, const char *words)
{
    char place[40] = "", *text, *before = context->facts->warnings;
    if (context->line)
        snprintf(place, sizeof place, "line %zu: ", context->line);
    if (asprintf(&text, "%s%s%s%s--%s is ignored: %s", before ? before : "", before ? "\n" : "",
            place, marker_of(context), name, words) < 0)
        return;
    free(before);
    context->facts->warnings = text;
}

int slurm_refuse(
    struct slurm_context *context, const char *name, const char *value, const char *words)
{
    return fault_set(context->fault, ENOTSUP, "%s--%s%s%.60s: %s", marker_of(context), name,
        value ? "=" : "", value ? value : "", words);
}

int slurm_set(struct slurm_context *context, int option, const char *name, const char *value)
{
    char shown[64];
    struct option_value *target = &context->values[option];
    snprintf(shown, sizeof shown, "%s--%s", marker_of(context), name);
    int r = option_set_text(&task_options[option], shown, value, target, context->fault);
    if (r == 0)
        target->line = (int)context->line;
    return r;
}

static int keep_text(struct slurm_context *context, char **text, const char *value)
{
    char *copy = strdup(value);
    if (!copy)
        return fault_set(context->fault, ENOMEM, "out of memory");
    free(*text);
    *text = copy;
    return 0;
}

/* ---- flags and texts ---- */

int slurm_read_flag(struct slurm_context *context, const char *name, const char *value)
{
    if (strcmp(name, "label") == 0)
        context->facts->is_labelled = true;
    else if (strcmp(name, "hold") == 0)
        return slurm_set(context, TASK_HOLD, name, "yes");
    else if (strcmp(name, "exclusive") == 0)
        return slurm_set(context, TASK_EXCLUSIVE, name, "yes");
    else
        return slurm_set(
            context, TASK_REQUEUE, name, strcmp(name, "no-requeue") == 0 ? "no" : "yes");
    return 0;
}

int slurm_read_kill_on_exit(struct slurm_context *context, const char *name, const char *value)
{
    context->facts->kills_on_exit = !value || strcmp(value, "0") != 0;
    return 0;
}

int slurm_read_text(struct slurm_context *context, const char *name, const char *value)
{
    static const char *const of_a_server[] = {"partition", "account", "qos"};
    static const char *const why[] = {"this server is all there is", "a task is its user's",
        "--priority has the classes of colloc"};
    struct slurm_facts *facts = context->facts;
    char **texts[] = {&facts->partition, &facts->account, &facts->qos};
    for (size_t i = 0; i < ARRAY_SIZE(of_a_server); i++)
        if (strcmp(name, of_a_server[i]) == 0) {
            slurm_warn(context, name, why[i]);
            return keep_text(context, texts[i], value);
        }
    if (!*value)
        return slurm_refuse(context, name, NULL, "needs a value");
    return keep_text(
        context, strcmp(name, "mail-user") == 0 ? &facts->mail_user : &facts->folder, value);
}

/* A batch script's standard input is empty. */
int slurm_read_input(struct slurm_context *context, const char *name, const char *value)
{
    if (strcmp(value, "/dev/null") == 0 || strcasecmp(value, "none") == 0)
        value = "/dev/null";
    else if (context->line)
        return slurm_refuse(
            context, name, value, "redirect the command's input in the script: command <FILE");
    return keep_text(context, &context->facts->input, value);
}

int slurm_read_job(struct slurm_context *context, const char *name, const char *value)
{
    const char *own = getenv("SLURM_JOB_ID"), *task = getenv("COLLOC_TASK_ID");
    if ((own && strcmp(own, value) == 0) || (task && strcmp(task, value) == 0))
        return 0;
    return slurm_refuse(context, name, value,
        "a step can only be started inside its own task; colloc attach ID opens its terminal");
}

/* ---- GPUs ---- */

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static int set_gpus(struct slurm_context *context, const char *name, const char *count)
{
    int64_t gpus;
    if (strspn(count, "0") == strlen(count))
        return slurm_set(context, TASK_GPUS, name, "0");
    if (strcmp(name, "gpus-per-task") != 0)
        return slurm_set(context, TASK_GPUS, name, count);
    if (parse_int64(count, 1, task_options[TASK_GPUS].max, &gpus) < 0)
        return slurm_refuse(context, name, count, "not a number of GPUs");
    context->facts->gpus_per_task = (int)gpus;
    context->facts->is_count_of_command |= !context->line;
    return 0;
}

/* `given`: the value as the user wrote it. */
static int read_gpus(
    struct slurm_context *context, const char *name, const char *given, const char *value)
{
    char kind[KIND_SIZE];
    const char *colon = strchr(value, ':');
    struct span name_of_kind = {value, colon ? (size_t)(colon - value) : strlen(value)};
    const char *count = colon ? colon + 1 : "1";
    if (is_number(value))
        return set_gpus(context, name, value);
    if (!name_of_kind.size || strchr(value, ',') || !isalpha((unsigned char)*value) ||
        !is_number(count) || !span_copy(name_of_kind, kind, sizeof kind))
        return slurm_refuse(context, name, given, "give a number of GPUs, or a kind: a100:2");
    if (strspn(count, "0") == strlen(count))
        return slurm_refuse(context, name, given, "a task without a GPU has no kind: leave it out");
    int r = slurm_set(context, TASK_GPU_KIND, name, kind);
    return r < 0 ? r : set_gpus(context, name, count);
}

int slurm_read_gpus(struct slurm_context *context, const char *name, const char *value)
{
    return read_gpus(context, name, value, value);
}

int slurm_read_gres(struct slurm_context *context, const char *name, const char *value)
{
    if (strcasecmp(value, "none") == 0)
        return set_gpus(context, name, "0");
    for (const char *at = value; at == value || at[-1] == ','; at += strcspn(at, ",") + 1) {
        if (strncmp(at, "gpu", 3) != 0 || (at[3] && !strchr(":,", at[3])))
            return slurm_refuse(context, name, value,
                "colloc has no generic resource but gpu: leave the others out");
        if (!at[strcspn(at, ",")])
            break;
    }
    return read_gpus(context, name, value, value[3] == ':' ? value + 4 : value[3] ? value : "1");
}

/* Features that clusters give to their nodes with GPUs, and that no kind of data/gpu-kinds.txt has
 * in its name: every GPU here has them. */
static bool is_of_all_gpus(const char *word)
{
    static const char *const words[] = {"gpu", "gpus", "cuda", "nvidia"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcasecmp(word, words[i]) == 0)
            return true;
    return false;
}

/* Removes such features from "gpu-a100,h100", in place. Where a kind has no other word, every GPU
 * is of it, and nothing is left of the list. */
static void drop_features_of_all(char *kinds)
{
    char *copy = strdup(kinds), *rest = copy, *to = kinds;
    for (char *kind; copy && (kind = strsep(&rest, ","));) {
        if (to > kinds)
            *to++ = ',';
        char *first = to;
        for (char *word; (word = strsep(&kind, "-"));)
            if (!is_of_all_gpus(word))
                to += sprintf(to, "%s%s", to > first ? "-" : "", word);
        if (to == first) {
            to = kinds;
            break;
        }
    }
    if (copy)
        *to = '\0';
    free(copy);
}

/* "[a100|h100&80gb]" becomes "a100,h100-80gb": of one kind all words must be in the GPU's name. */
int slurm_read_constraint(struct slurm_context *context, const char *name, const char *value)
{
    size_t size = strlen(value);
    bool has_brackets = size > 1 && value[0] == '[' && value[size - 1] == ']';
    const char *inner = value + has_brackets;
    size -= has_brackets ? 2 : 0;
    char *kinds = strndup(inner, size);
    if (!kinds)
        return fault_set(context->fault, ENOMEM, "out of memory");
    for (char *at = kinds; *at; at++)
        *at = *at == '|' ? ',' : *at == '&' ? '-' : *at;
    bool is_simple = *kinds && !strpbrk(kinds, "[]()*: ") && strlen(kinds) < 2 * KIND_SIZE - 1;
    if (is_simple)
        drop_features_of_all(kinds);
    int r = is_simple ? keep_text(context, &context->facts->constraint, kinds)
                      : slurm_refuse(context, name, value,
                            "give kinds of GPUs, with | between them: a100|h100");
    free(kinds);
    return r;
}

/* ---- numbers ---- */

/* A number of servers, or "MIN-MAX". */
int slurm_read_nodes(struct slurm_context *context, const char *name, const char *value)
{
    if (value[0] == '1' && (!value[1] || (value[1] == '-' && is_number(value + 2))))
        return 0;
    return slurm_refuse(context, name, value,
        "colloc runs a task on one server: write --nodes=1, with all processes and GPUs on it");
}

int slurm_read_count(struct slurm_context *context, const char *name, const char *value)
{
    struct slurm_facts *facts = context->facts;
    const struct {
        const char *name;
        int *place;
    } counts[] = {{"ntasks", &facts->tasks}, {"ntasks-per-node", &facts->tasks_per_node},
        {"tasks-per-node", &facts->tasks_per_node}, {"ntasks-per-gpu", &facts->tasks_per_gpu},
        {"cpus-per-task", &facts->cpus_per_task}, {"cpus-per-gpu", &facts->cpus_per_gpu}};
    int64_t n;
    if (parse_int64(value, 1, task_options[TASK_CPUS].max, &n) < 0)
        return slurm_refuse(context, name, value, "not a number from 1 to 10000");
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        if (strcmp(counts[i].name, name) == 0)
            *counts[i].place = (int)n;
    facts->is_count_of_command |= !context->line;
    return 0;
}

int slurm_read_time(struct slurm_context *context, const char *name, const char *value)
{
    bool is_unlimited = strcasecmp(value, "UNLIMITED") == 0 || strcasecmp(value, "INFINITE") == 0 ||
                        strcmp(value, "0") == 0 || strcmp(value, "-1") == 0;
    if (!is_unlimited)
        return slurm_set(context, TASK_TIME, name, value);
    context->values[TASK_TIME].set = false;
    return 0;
}

/* Parses a size as Slurm does: 32G and 32GB are both 32 * 2^30. Returns 0 or -EINVAL. */
static int slurm_parse_size(const char *text, int64_t *ret_bytes)
{
    char number[32];
    size_t size = strlen(text), digits = strspn(text, "0123456789.");
    bool has_b = size == digits + 2 && toupper((unsigned char)text[size - 1]) == 'B' &&
                 strchr("KMGT", toupper((unsigned char)text[digits]));
    if (size >= sizeof number || size == 0)
        return -EINVAL;
    memcpy(number, text, size + 1);
    number[size - has_b] = '\0';
    return parse_size(number, ret_bytes);
}

/* Slurm takes the last of --mem, --mem-per-cpu and --mem-per-gpu. 0 is all memory of a node, which
 * no task has to itself here: it is as if nothing was given. */
int slurm_read_memory(struct slurm_context *context, const char *name, const char *value)
{
    struct slurm_facts *facts = context->facts;
    const struct option_spec *spec = &task_options[TASK_HOST_MEMORY];
    struct option_value *memory = &context->values[TASK_HOST_MEMORY];
    int64_t bytes;
    if (slurm_parse_size(value, &bytes) < 0 || bytes > spec->max)
        return slurm_refuse(context, name, value, "not a size; write 32G or 512M");
    *memory = (struct option_value){0};
    facts->memory_per_cpu_bytes = strcmp(name, "mem-per-cpu") == 0 ? bytes : 0;
    facts->memory_per_gpu_bytes = strcmp(name, "mem-per-gpu") == 0 ? bytes : 0;
    facts->is_count_of_command |= !context->line;
    if (strcmp(name, "mem") == 0 && bytes > 0)
        *memory = (struct option_value){.set = true,
            .number = bytes < spec->min ? spec->min : bytes,
            .line = (int)context->line};
    return 0;
}

int slurm_read_nice(struct slurm_context *context, const char *name, const char *value)
{
    if (value && value[0] == '-')
        slurm_warn(context, name, "only root and operators raise a priority, with --priority");
    else if (!value || strspn(value, "0") != strlen(value))
        return slurm_set(context, TASK_PRIORITY, name, "low");
    return 0;
}

int slurm_read_priority(struct slurm_context *context, const char *name, const char *value)
{
    if (option_is_choice(&task_options[TASK_PRIORITY], value))
        return slurm_set(context, TASK_PRIORITY, name, value);
    slurm_warn(context, name, "colloc has classes: low, normal, high and urgent");
    return 0;
}

/* ---- when it starts, what it gets ---- */

/* Slurm has kinds that colloc has not: they would start the task at another time. */
int slurm_read_dependency(struct slurm_context *context, const char *name, const char *value)
{
    static const char *const kinds[] = {"afterok:", "afterany:", "afternotok:", "aftercorr:"};
    if (!context->line && !islower((unsigned char)value[0]))
        return slurm_set(context, TASK_AFTER, name, value); /* submit_check.c refuses it */
    if (!context->line && strncmp(value, "after", 5) != 0 && strchr(value, ':'))
        return slurm_set(context, TASK_AFTER, name, value); /* colloc's: ok:12 */
    for (const char *at = value;; at++) {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
            is_known |= strncmp(at, kinds[i], strlen(kinds[i])) == 0;
        at += strcspn(at, ",?");
        if (!is_known || *at == '?')
            return slurm_refuse(context, name, value,
                strcmp(value, "singleton") == 0
                    ? "submit the tasks as an array with %1, which run one after the other"
                    : "only afterok, afterany, afternotok and aftercorr are supported, with commas");
        if (!*at)
            return slurm_set(context, TASK_AFTER, name, value);
    }
}

int slurm_read_signal(struct slurm_context *context, const char *name, const char *value)
{
    struct signal_spec spec;
    int r = signal_spec_parse(value, context->fault, &spec);
    return r < 0 ? r : slurm_set(context, TASK_SIGNAL, name, value);
}

static bool is_variable(struct span item)
{
    struct span name = {item.at, 0};
    while (name.size < item.size &&
           (isalnum((unsigned char)item.at[name.size]) || item.at[name.size] == '_'))
        name.size++;
    return name.size > 0 && !isdigit((unsigned char)*name.at) &&
           (name.size == item.size || item.at[name.size] == '=');
}

/* Slurm also adds what the user's login shell sets; here a script that wants this has the first
 * line `#!/bin/bash -l`. */
int slurm_read_export(struct slurm_context *context, const char *name, const char *value)
{
    size_t first = strcspn(value, ",");
    bool is_all = first == 3 && strncasecmp(value, "ALL", 3) == 0;
    bool is_none = strcasecmp(value, "NONE") == 0 || strcasecmp(value, "NIL") == 0;
    const char *list = is_none ? "" : is_all ? value + first + (value[first] == ',') : value;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (!is_variable((struct span){at, strcspn(at, ",")}))
            return slurm_refuse(
                context, name, value, "give ALL, NONE, or variables: A=1,B (with ALL before them)");
    context->facts->is_export_only = !is_all;
    return keep_text(context, &context->facts->exported, list);
}

int slurm_read_output(struct slurm_context *context, const char *name, const char *value)
{
    char unknown = output_pattern_unknown(value);
    char words[80];
    snprintf(
        words, sizeof words, "%%%c is not known: colloc has %s", unknown, OUTPUT_PATTERN_LETTERS);
    if (unknown)
        return slurm_refuse(context, name, value, words);
    return slurm_set(context, strcmp(name, "output") == 0 ? TASK_OUTPUT : TASK_ERROR, name, value);
}

int slurm_read_mail_type(struct slurm_context *context, const char *name, const char *value)
{
    static const char *const types[] = {
        "NONE", "BEGIN", "END", "FAIL", "TIME_LIMIT", "REQUEUE", "ALL"};
    char *before = context->facts->mail_types, *all;
    bool all_known = true;
    for (const char *at = value; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ","), i = 0;
        while (i < ARRAY_SIZE(types) &&
               (strlen(types[i]) != size || strncasecmp(types[i], at, size) != 0))
            i++;
        all_known &= i < ARRAY_SIZE(types);
    }
    if (!all_known)
        slurm_warn(
            context, name, "of its types BEGIN, END, FAIL, TIME_LIMIT, REQUEUE and ALL are known");
    if (asprintf(&all, "%s%s%s", before ? before : "", before ? "," : "", value) < 0)
        return fault_set(context->fault, ENOMEM, "out of memory");
    free(before);
    context->facts->mail_types = all;
    return 0;
}
