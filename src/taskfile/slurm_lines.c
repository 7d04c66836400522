/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each option of sbatch is a row: its names, whether it takes a value, and what it means here.
 *
 *   an option of colloc     --job-name, --time, --output, --array, --dependency ...
 *   a function              --gres, --mem, --nice ...: its value has another form
 *   ignored, with a warning --partition, --account ...: the task computes the same without
 *   refused                 --licenses, --constraint ...: the task would run where it should not
 *
 * An option without a row is refused: ignoring it might change what the script does.
 */
#include "taskfile/slurm_lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "taskfile/signal_spec.h"
#include "taskfile/word_split.h"

enum { KIND_SIZE = 64 }; /* chosen: Slurm's types are short words */

/* One option of a line on its way into the description. */
struct reading_of_line {
    struct option_value *values;
    struct slurm_facts *facts;
    size_t number; /* of the line */
    struct fault *fault;
};

typedef int slurm_read(struct reading_of_line *line, const char *name, const char *value);

enum value_form { NO_VALUE, NEEDS_VALUE, MAY_HAVE_VALUE };

struct slurm_option {
    const char *name;
    char letter; /* or 0 */
    enum value_form form;
    slurm_read *read;
    int option;        /* of enum task_option; -1: none */
    const char *words; /* why it is ignored or refused */
};

static void add_warning(struct reading_of_line *line, const char *name, const char *words)
{
    char *text, *before = line->facts->warnings;
    if (asprintf(&text, "%s%sline %zu: #SBATCH --%s is ignored: %s", before ? before : "",
            before ? "\n" : "", line->number, name, words) < 0)
        return;
    free(before);
    line->facts->warnings = text;
}

static int refuse_option(
    struct reading_of_line *line, const char *name, const char *value, const char *words)
{
    return fault_set(line->fault, ENOTSUP, "#SBATCH --%s%s%.60s: %s", name, value ? "=" : "",
        value ? value : "", words);
}

static int set_option(struct reading_of_line *line, int option, const char *name, const char *value)
{
    char shown[64];
    snprintf(shown, sizeof shown, "#SBATCH --%s", name);
    return option_set_text(&task_options[option], shown, value, &line->values[option], line->fault);
}

/* ---- values of other forms ---- */

static int read_yes(struct reading_of_line *line, const char *name, const char *value)
{
    int option = strcmp(name, "hold") == 0        ? TASK_HOLD
                 : strcmp(name, "exclusive") == 0 ? TASK_EXCLUSIVE
                                                  : TASK_REQUEUE;
    return set_option(line, option, name, strcmp(name, "no-requeue") == 0 ? "no" : "yes");
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* "2", "a100:2", "a100" */
static int read_gpus(struct reading_of_line *line, const char *name, const char *value)
{
    char kind[KIND_SIZE];
    const char *colon = strchr(value, ':');
    struct span name_of_kind = {value, colon ? (size_t)(colon - value) : strlen(value)};
    const char *count = colon ? colon + 1 : "1";
    if (!colon && !isalpha((unsigned char)*value))
        return set_option(line, TASK_GPUS, name, value);
    if (!name_of_kind.size || memchr(value, ',', strlen(value)) || !is_number(count) ||
        !span_copy(name_of_kind, kind, sizeof kind))
        return refuse_option(line, name, value, "give a number of GPUs, or a kind: a100:2");
    int r = set_option(line, TASK_GPU_KIND, name, kind);
    return r < 0 ? r : set_option(line, TASK_GPUS, name, count);
}

/* "gpu", "gpu:2", "gpu:a100:2" */
static int read_gres(struct reading_of_line *line, const char *name, const char *value)
{
    if (strcmp(value, "gpu") == 0)
        return set_option(line, TASK_GPUS, name, "1");
    if (strncmp(value, "gpu:", 4) != 0)
        return refuse_option(line, name, value, "colloc has no generic resource but gpu");
    return read_gpus(line, name, value + 4);
}

static int read_one(struct reading_of_line *line, const char *name, const char *value)
{
    if (strcmp(value, "1") == 0 || strcmp(value, "1-1") == 0)
        return 0;
    return refuse_option(line, name, value, "a task runs once, on this server");
}

static int read_time(struct reading_of_line *line, const char *name, const char *value)
{
    bool is_unlimited = strcasecmp(value, "UNLIMITED") == 0 || strcasecmp(value, "INFINITE") == 0 ||
                        strcmp(value, "0") == 0;
    return is_unlimited ? 0 : set_option(line, TASK_TIME, name, value);
}

/* 0 is all memory of a node. */
static int read_memory(struct reading_of_line *line, const char *name, const char *value)
{
    return strcmp(value, "0") == 0 ? 0 : set_option(line, TASK_HOST_MEMORY, name, value);
}

static int read_memory_per(struct reading_of_line *line, const char *name, const char *value)
{
    int64_t *bytes = strcmp(name, "mem-per-cpu") == 0 ? &line->facts->memory_per_cpu_bytes
                                                      : &line->facts->memory_per_gpu_bytes;
    return parse_size(value, bytes) == 0 ? 0 : refuse_option(line, name, value, "not a size");
}

static int read_cpus_per_gpu(struct reading_of_line *line, const char *name, const char *value)
{
    int64_t cpus;
    if (parse_int64(value, 1, task_options[TASK_CPUS].max, &cpus) < 0)
        return refuse_option(line, name, value, "not a number of CPUs");
    line->facts->cpus_per_gpu = (int)cpus;
    return 0;
}

static int read_nice(struct reading_of_line *line, const char *name, const char *value)
{
    if (value && value[0] == '-')
        add_warning(line, name, "only root and operators raise a priority, with --priority");
    else if (!value || strspn(value, "0") != strlen(value))
        return set_option(line, TASK_PRIORITY, name, "low");
    return 0;
}

/* Slurm has kinds that colloc has not: they would start the task at another time. */
static int read_dependency(struct reading_of_line *line, const char *name, const char *value)
{
    static const char *const kinds[] = {"afterok:", "afterany:", "afternotok:", "aftercorr:"};
    for (const char *at = value;; at++) {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
            is_known |= strncmp(at, kinds[i], strlen(kinds[i])) == 0;
        at += strcspn(at, ",?");
        if (!is_known || *at == '?')
            return refuse_option(line, name, value,
                "only afterok, afterany, afternotok and aftercorr are supported, with commas");
        if (!*at)
            return set_option(line, TASK_AFTER, name, value);
    }
}

static int read_signal(struct reading_of_line *line, const char *name, const char *value)
{
    struct signal_spec spec;
    int r = signal_spec_parse(value, line->fault, &spec);
    return r < 0 ? r : set_option(line, TASK_SIGNAL, name, value);
}

static int keep_text(struct reading_of_line *line, char **text, const char *value)
{
    char *copy = strdup(value);
    if (!copy)
        return fault_set(line->fault, ENOMEM, "out of memory");
    free(*text);
    *text = copy;
    return 0;
}

static int read_chdir(struct reading_of_line *line, const char *name, const char *value)
{
    return keep_text(line, &line->facts->folder, value);
}

/* "ALL", and "ALL,A=1" */
static int read_export(struct reading_of_line *line, const char *name, const char *value)
{
    if (strcasecmp(value, "ALL") == 0)
        return 0;
    if (strncasecmp(value, "ALL,", 4) != 0)
        return refuse_option(
            line, name, value, "the task gets the whole environment: ALL, and ALL,A=1");
    for (const char *at = value + 4; *at; at += strcspn(at, ","), at += *at == ',') {
        struct span item = {at, strcspn(at, ",")};
        if (item.size == 0 || item.at[0] == '=' || !memchr(item.at, '=', item.size))
            return refuse_option(line, name, value, "must be ALL, or ALL,NAME=VALUE");
    }
    return keep_text(line, &line->facts->exported, value + 4);
}

static int read_output(struct reading_of_line *line, const char *name, const char *value)
{
    for (const char *at = strchr(value, '%'); at && at[1]; at = strchr(at + 2, '%'))
        if (!strchr("jAax%", at[1]))
            return refuse_option(
                line, name, value, "of the patterns %j, %A, %a, %x and %% are known");
    return set_option(line, strcmp(name, "output") == 0 ? TASK_OUTPUT : TASK_ERROR, name, value);
}

/* Slurm's mail types and the messages of colloc; in the order of these. */
static const struct {
    const char *type, *message;
    bool is_in_all;
} mail_types[] = {
    {"BEGIN", "start", true},
    {"END", "end", true},
    {"FAIL", "fail", true},
    {"TIME_LIMIT", "fail", false},
    {"REQUEUE", "requeue", true},
};

static bool is_type(struct span word, const char *type)
{
    return word.size == strlen(type) && strncasecmp(word.at, type, word.size) == 0;
}

/* Sets the bits of the messages of one type. Returns false for a type that colloc has not. */
static bool add_mail_type(struct span type, unsigned *messages)
{
    bool is_all = is_type(type, "ALL"), is_known = is_all || is_type(type, "NONE");
    for (size_t i = 0; i < ARRAY_SIZE(mail_types); i++) {
        bool is_this = is_all ? mail_types[i].is_in_all : is_type(type, mail_types[i].type);
        *messages |= is_this ? 1u << i : 0;
        is_known |= is_this;
    }
    return is_known;
}

/* "END,FAIL" becomes --notify=end,fail. */
static int read_mail_type(struct reading_of_line *line, const char *name, const char *value)
{
    char list[64] = "";
    unsigned messages = 0;
    for (const char *at = value; *at; at += strcspn(at, ","), at += *at == ',')
        if (!add_mail_type((struct span){at, strcspn(at, ",")}, &messages))
            add_warning(
                line, name, "of its types BEGIN, END, FAIL, TIME_LIMIT, REQUEUE and ALL are known");
    for (size_t i = 0; i < ARRAY_SIZE(mail_types); i++)
        if (messages & 1u << i && !strstr(list, mail_types[i].message))
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? "," : "",
                mail_types[i].message);
    return set_option(line, TASK_NOTIFY, name, *list ? list : "none");
}

static int read_mail_user(struct reading_of_line *line, const char *name, const char *value)
{
    return keep_text(line, &line->facts->mail_user, value);
}

/* ---- the table ---- */

#define NO_PARTITIONS "this server is all there is"
#define NO_CPU_LAYOUT "colloc counts CPUs, it does not choose them"

static const struct slurm_option slurm_options[] = {
    {"job-name", 'J', NEEDS_VALUE, NULL, TASK_NAME, NULL},
    {"array", 'a', NEEDS_VALUE, NULL, TASK_ARRAY, NULL},
    {"begin", 'b', NEEDS_VALUE, NULL, TASK_BEGIN, NULL},
    {"signal", 0, NEEDS_VALUE, read_signal, -1, NULL},
    {"dependency", 'd', NEEDS_VALUE, read_dependency, -1, NULL},
    {"time", 't', NEEDS_VALUE, read_time, -1, NULL},
    {"output", 'o', NEEDS_VALUE, read_output, -1, NULL},
    {"error", 'e', NEEDS_VALUE, read_output, -1, NULL},
    {"gres", 0, NEEDS_VALUE, read_gres, -1, NULL},
    {"gpus", 'G', NEEDS_VALUE, read_gpus, -1, NULL},
    {"gpus-per-node", 0, NEEDS_VALUE, read_gpus, -1, NULL},
    {"gpus-per-task", 0, NEEDS_VALUE, read_gpus, -1, NULL},
    {"nodes", 'N', NEEDS_VALUE, read_one, -1, NULL},
    {"ntasks", 'n', NEEDS_VALUE, read_one, -1, NULL},
    {"ntasks-per-node", 0, NEEDS_VALUE, read_one, -1, NULL},
    {"ntasks-per-gpu", 0, NEEDS_VALUE, read_one, -1, NULL},
    {"cpus-per-task", 'c', NEEDS_VALUE, NULL, TASK_CPUS, NULL},
    {"cpus-per-gpu", 0, NEEDS_VALUE, read_cpus_per_gpu, -1, NULL},
    {"mem", 0, NEEDS_VALUE, read_memory, -1, NULL},
    {"mem-per-cpu", 0, NEEDS_VALUE, read_memory_per, -1, NULL},
    {"mem-per-gpu", 0, NEEDS_VALUE, read_memory_per, -1, NULL},
    {"nice", 0, MAY_HAVE_VALUE, read_nice, -1, NULL},
    {"requeue", 0, NO_VALUE, read_yes, -1, NULL},
    {"no-requeue", 0, NO_VALUE, read_yes, -1, NULL},
    {"hold", 'H', NO_VALUE, read_yes, -1, NULL},
    {"exclusive", 0, MAY_HAVE_VALUE, read_yes, -1, NULL},
    {"chdir", 'D', NEEDS_VALUE, read_chdir, -1, NULL},
    {"export", 0, NEEDS_VALUE, read_export, -1, NULL},
    {"partition", 'p', NEEDS_VALUE, NULL, -1, NO_PARTITIONS},
    {"account", 'A', NEEDS_VALUE, NULL, -1, "a task is its user's"},
    {"qos", 'q', NEEDS_VALUE, NULL, -1, "--priority has the classes of colloc"},
    {"nodelist", 'w', NEEDS_VALUE, NULL, -1, NO_PARTITIONS},
    {"exclude", 'x', NEEDS_VALUE, NULL, -1, NO_PARTITIONS},
    {"mail-type", 0, NEEDS_VALUE, read_mail_type, -1, NULL},
    {"mail-user", 0, NEEDS_VALUE, read_mail_user, -1, NULL},
    {"comment", 0, NEEDS_VALUE, NULL, -1, "a task has no comment"},
    {"wckey", 0, NEEDS_VALUE, NULL, -1, "a task has no such key"},
    {"open-mode", 0, NEEDS_VALUE, NULL, -1,
        "the first attempt empties its output files, later ones append"},
    {"mincpus", 0, NEEDS_VALUE, NULL, -1, NO_CPU_LAYOUT},
    {"threads-per-core", 0, NEEDS_VALUE, NULL, -1, NO_CPU_LAYOUT},
    {"cores-per-socket", 0, NEEDS_VALUE, NULL, -1, NO_CPU_LAYOUT},
    {"sockets-per-node", 0, NEEDS_VALUE, NULL, -1, NO_CPU_LAYOUT},
    {"hint", 0, NEEDS_VALUE, NULL, -1, NO_CPU_LAYOUT},
    {"gpu-bind", 0, NEEDS_VALUE, NULL, -1, "a task sees its GPUs only"},
    {"tmp", 0, NEEDS_VALUE, NULL, -1, "temporary disk space is not counted"},
    {"kill-on-invalid-dep", 0, NEEDS_VALUE, NULL, -1, "a task that can never start is cancelled"},
    {"get-user-env", 0, MAY_HAVE_VALUE, NULL, -1, "the task gets your environment"},
    {"no-kill", 'k', MAY_HAVE_VALUE, NULL, -1, NO_PARTITIONS},
    {"wait", 'W', NO_VALUE, NULL, -1, "give it to colloc submit"},
    {"parsable", 0, NO_VALUE, NULL, -1, "colloc submit --json is for programs"},
    {"quiet", 'Q', NO_VALUE, NULL, -1, "it is for sbatch itself"},
    {"verbose", 'v', NO_VALUE, NULL, -1, "it is for sbatch itself"},
};

static const struct slurm_option *find_long(const char *word, const char **ret_value)
{
    size_t size = strcspn(word, "=");
    *ret_value = word[size] ? word + size + 1 : NULL;
    for (size_t i = 0; i < ARRAY_SIZE(slurm_options); i++)
        if (strlen(slurm_options[i].name) == size &&
            strncmp(slurm_options[i].name, word, size) == 0)
            return &slurm_options[i];
    return NULL;
}

static const struct slurm_option *find_short(const char *word, const char **ret_value)
{
    *ret_value = word[1] ? word + 1 : NULL;
    for (size_t i = 0; i < ARRAY_SIZE(slurm_options); i++)
        if (slurm_options[i].letter && slurm_options[i].letter == word[0])
            return &slurm_options[i];
    return NULL;
}

static int apply_option(
    struct reading_of_line *line, const struct slurm_option *option, const char *value)
{
    if (option->read)
        return option->read(line, option->name, value);
    if (option->option >= 0)
        return set_option(line, option->option, option->name, value);
    add_warning(line, option->name, option->words);
    return 0;
}

/* Reads the option at the front of the words. Returns how many words it takes, or a fault. */
static int take_option(struct reading_of_line *line, const char *const *words, int count)
{
    const char *word = words[0], *value = NULL;
    const struct slurm_option *option = NULL;
    int used = 1;
    if (word[0] == '-' && word[1] == '-')
        option = find_long(word + 2, &value);
    else if (word[0] == '-' && word[1])
        option = find_short(word + 1, &value);
    if (!option)
        return fault_set(line->fault, ENOTSUP,
            "#SBATCH %.60s: not supported: without it the script might do something else", word);
    if (option->form == NEEDS_VALUE && !value && count > 1)
        value = words[used++];
    if (option->form == NEEDS_VALUE && !value)
        return fault_set(line->fault, EINVAL, "#SBATCH %.60s: needs a value", word);
    if (option->form == NO_VALUE && value)
        return fault_set(line->fault, EINVAL, "#SBATCH %.60s: takes no value", word);
    int r = apply_option(line, option, value);
    return r < 0 ? r : used;
}

struct span slurm_line_options(struct span line)
{
    static const char marker[] = "#SBATCH";
    size_t size = strlen(marker);
    if (!span_starts(line, marker) || line.size == size || !strchr(" \t", line.at[size]))
        return (struct span){line.at, 0};
    return (struct span){line.at + size, line.size - size};
}

int slurm_line_read(struct span options, size_t number, struct option_value *values,
    struct slurm_facts *facts, struct fault *fault)
{
    struct reading_of_line line = {values, facts, number, fault};
    const char **words;
    int count = word_split(options, fault, &words), r = 0;
    if (count < 0)
        return count;
    facts->is_slurm = true;
    for (int i = 0; i < count && r >= 0; i += r)
        r = take_option(&line, words + i, count - i);
    free(words);
    return r < 0 ? r : 0;
}

/* What Slurm gives for each CPU or GPU is that of all of them here. */
/* Without a type Slurm sends nothing to it. */
static int finish_mail(
    struct option_value *values, const struct slurm_facts *facts, struct fault *fault)
{
    if (!facts->mail_user || !values[TASK_NOTIFY].set || values[TASK_NOTIFY_TO].set)
        return 0;
    return option_set_text(&task_options[TASK_NOTIFY_TO], "#SBATCH --mail-user", facts->mail_user,
        &values[TASK_NOTIFY_TO], fault);
}

static int finish_resources(
    struct option_value *values, const struct slurm_facts *facts, struct fault *fault)
{
    struct option_value *memory = &values[TASK_HOST_MEMORY], *all_cpus = &values[TASK_CPUS];
    int64_t gpus = option_number_or(&values[TASK_GPUS], 1);
    if (facts->cpus_per_gpu && facts->cpus_per_gpu > task_options[TASK_CPUS].max / gpus)
        return fault_set(fault, ERANGE, "#SBATCH --cpus-per-gpu: too many CPUs");
    if (facts->cpus_per_gpu && !all_cpus->set)
        *all_cpus = (struct option_value){.set = true, .number = facts->cpus_per_gpu * gpus};
    int64_t cpus = option_number_or(all_cpus, 1);
    int64_t per_cpu = facts->memory_per_cpu_bytes, per_gpu = facts->memory_per_gpu_bytes;
    const struct option_spec *spec = &task_options[TASK_HOST_MEMORY];
    if (memory->set || (!per_cpu && !per_gpu))
        return 0;
    if (per_cpu > spec->max / cpus || per_gpu > spec->max / gpus)
        return fault_set(fault, ERANGE, "#SBATCH --mem-per-cpu or --mem-per-gpu: too much memory");
    *memory = (struct option_value){
        .set = true, .number = per_cpu ? per_cpu * cpus : per_gpu * gpus};
    return 0;
}

int slurm_lines_finish(
    struct option_value *values, const struct slurm_facts *facts, struct fault *fault)
{
    int r = finish_resources(values, facts, fault);
    return r < 0 ? r : finish_mail(values, facts, fault);
}
