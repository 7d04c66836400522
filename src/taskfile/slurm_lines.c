/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads #SBATCH lines and Slurm's options of a command line, and decides what they mean together:
 *
 *     --ntasks=4 --cpus-per-task=2 --mem-per-cpu=1G      8 CPUs, 8 GiB
 *     --gpus-per-task=1 --ntasks-per-node=2              2 GPUs
 *     --gres=gpu:a100:1 --constraint=80gb                --gpu-kind=80gb-a100
 *
 * Of the same option, the command line counts more than a #COLLOC line, and that more than #SBATCH.
 */
#include "taskfile/slurm_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "taskfile/slurm_options.h"
#include "taskfile/slurm_values.h"
#include "taskfile/word_split.h"

struct span slurm_line_options(struct span line)
{
    static const char marker[] = "#SBATCH";
    size_t size = strlen(marker);
    if (!span_starts(line, marker) || line.size == size || !strchr(" \t", line.at[size]))
        return (struct span){line.at, 0};
    return (struct span){line.at + size, line.size - size};
}

static int read_words(struct slurm_context *context, const char *const *words, int count)
{
    struct slurm_cursor cursor = {words, count, NULL};
    struct slurm_given given;
    int r;
    while ((r = slurm_option_next(SLURM_SBATCH, "#SBATCH ", &cursor, &given, context->fault)) > 0)
        if ((r = slurm_option_apply(context, &given)) < 0)
            return r;
    if (r == 0 && cursor.count > 0)
        return fault_set(context->fault, ENOTSUP, "#SBATCH %.60s: %s", cursor.words[0],
            strcmp(cursor.words[0], "hetjob") == 0 || strcmp(cursor.words[0], "packjob") == 0
                ? "colloc has no heterogeneous jobs: submit a task for each part"
                : "is not an option; write --name=value");
    return r;
}

int slurm_line_read(
    struct span options, size_t number, struct task_description *description, struct fault *fault)
{
    struct slurm_context context = {description->slurm_values, &description->slurm, number, fault};
    const char **words;
    int count = word_split(options, fault, &words);
    if (count < 0)
        return count;
    description->slurm.is_slurm = true;
    int r = read_words(&context, words, count);
    free(words);
    return r;
}

int slurm_command_read(struct task_description *description, struct fault *fault)
{
    struct slurm_context context = {description->slurm_values, &description->slurm, 0, fault};
    const struct slurm_command *command = &description->slurm_command;
    int r = 0;
    description->slurm.is_slurm |= command->is_slurm;
    for (size_t i = 0; i < command->count && r == 0; i++) {
        const char *name = command->options[i].option->name;
        description->slurm.is_slurm |= !option_find(task_options, task_option_count, name);
        r = slurm_option_apply(&context, &command->options[i]);
    }
    return r;
}

/* ---- what they mean together ---- */

static int too_many(struct fault *fault, const char *what)
{
    return fault_set(fault, ERANGE, "Slurm's options ask for too %s", what);
}

/* A number that follows from several options. It is the command line's if one of them is. */
static void derive_number(struct task_description *description, int option, int64_t number)
{
    description->slurm_values[option] = (struct option_value){
        .set = true, .number = number, .line = description->slurm.is_count_of_command ? 0 : 1};
}

/* The processes that srun starts, which are on one server. */
static int64_t count_tasks(const struct slurm_facts *facts, int64_t gpus)
{
    if (facts->tasks)
        return facts->tasks;
    if (facts->tasks_per_node)
        return facts->tasks_per_node;
    return facts->tasks_per_gpu ? facts->tasks_per_gpu * (gpus ? gpus : 1) : 1;
}

static int derive_gpus(struct task_description *description, struct fault *fault)
{
    struct slurm_facts *facts = &description->slurm;
    int64_t gpus = (int64_t)facts->gpus_per_task * count_tasks(facts, 1);
    if (!facts->gpus_per_task || description->slurm_values[TASK_GPUS].set)
        return 0;
    if (gpus > task_options[TASK_GPUS].max)
        return too_many(fault, "many GPUs");
    derive_number(description, TASK_GPUS, gpus);
    return 0;
}

/* The script itself runs once, as with Slurm, and the CPUs of all tasks are its own. */
static void warn_of_tasks(struct slurm_facts *facts, int64_t tasks, int64_t cpus)
{
    char *text, *before = facts->warnings;
    if (asprintf(&text,
            "%s%s--ntasks=%d: the script runs once and has %d CPUs; each srun in it starts %d "
            "processes",
            before ? before : "", before ? "\n" : "", (int)tasks, (int)cpus, (int)tasks) < 0)
        return;
    free(before);
    facts->warnings = text;
}

static int derive_cpus(struct task_description *description, int64_t gpus, struct fault *fault)
{
    struct slurm_facts *facts = &description->slurm;
    int64_t tasks = count_tasks(facts, gpus), max = task_options[TASK_CPUS].max;
    int64_t cpus = facts->cpus_per_task  ? tasks * facts->cpus_per_task
                   : facts->cpus_per_gpu ? facts->cpus_per_gpu * (gpus ? gpus : 1)
                                         : tasks;
    if (tasks > max || cpus > max)
        return too_many(fault, "many CPUs");
    if (facts->cpus_per_task || facts->cpus_per_gpu || tasks > 1)
        derive_number(description, TASK_CPUS, cpus);
    facts->tasks = (int)tasks;
    if (tasks > 1 && !description->slurm_command.starts_tasks)
        warn_of_tasks(facts, tasks, cpus);
    return 0;
}

static int derive_memory(struct task_description *description, int64_t gpus, struct fault *fault)
{
    const struct slurm_facts *facts = &description->slurm;
    const struct option_spec *spec = &task_options[TASK_HOST_MEMORY];
    int64_t cpus = option_number_or(&description->slurm_values[TASK_CPUS], 1);
    int64_t per_cpu = facts->memory_per_cpu_bytes, per_gpu = facts->memory_per_gpu_bytes;
    if (!per_cpu && !per_gpu)
        return 0;
    if (per_cpu > spec->max / cpus || (gpus && per_gpu > spec->max / gpus))
        return too_many(fault, "much memory");
    int64_t bytes = per_cpu ? per_cpu * cpus : per_gpu * gpus;
    derive_number(description, TASK_HOST_MEMORY, bytes < spec->min ? spec->min : bytes);
    return 0;
}

/* A GPU must be of a kind of --gres and of one of --constraint: each pair of them is a kind. */
static int derive_kinds(struct task_description *description, struct fault *fault)
{
    const char *constraint = description->slurm.constraint;
    struct option_value *value = &description->slurm_values[TASK_GPU_KIND];
    const char *kind = option_text_or(value, "");
    char *all = NULL;
    size_t size;
    if (!constraint || !*constraint)
        return 0;
    FILE *out = open_memstream(&all, &size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    for (const char *at = constraint; *at; at += strcspn(at, ","), at += *at == ',')
        fprintf(out, "%s%.*s%s%s", at == constraint ? "" : ",", (int)strcspn(at, ","), at,
            *kind ? "-" : "", kind);
    int r = fclose(out) == 0
                ? option_set_text(&task_options[TASK_GPU_KIND], "--constraint", all, value, fault)
                : fault_set(fault, ENOMEM, "out of memory");
    free(all);
    if (r == 0)
        value->line = description->slurm_command.count ? 0 : 1;
    return r;
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

static bool has_type(const char *list, const char *type)
{
    size_t size = strlen(type);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == size && strncasecmp(at, type, size) == 0)
            return true;
    return false;
}

/* "END,FAIL" becomes --notify=end,fail. Without a type Slurm sends nothing to --mail-user. */
static int derive_mail(struct task_description *description, struct fault *fault)
{
    const struct slurm_facts *facts = &description->slurm;
    struct option_value *notify = &description->slurm_values[TASK_NOTIFY];
    char list[64] = "";
    if (!facts->mail_types)
        return 0;
    bool is_all = has_type(facts->mail_types, "ALL");
    for (size_t i = 0; i < ARRAY_SIZE(mail_types); i++)
        if ((has_type(facts->mail_types, mail_types[i].type) ||
                (is_all && mail_types[i].is_in_all)) &&
            !strstr(list, mail_types[i].message))
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? "," : "",
                mail_types[i].message);
    int r = option_set_text(
        &task_options[TASK_NOTIFY], "--mail-type", *list ? list : "none", notify, fault);
    notify->line = 1;
    if (r < 0 || !facts->mail_user || !*list)
        return r;
    r = option_set_text(&task_options[TASK_NOTIFY_TO], "--mail-user", facts->mail_user,
        &description->slurm_values[TASK_NOTIFY_TO], fault);
    description->slurm_values[TASK_NOTIFY_TO].line = 1;
    return r;
}

/* A #COLLOC line counts more than a #SBATCH line, and less than the command line (line 0). */
static void merge_values(struct task_description *description)
{
    for (size_t i = 0; i < task_option_count; i++) {
        struct option_value *slurm = &description->slurm_values[i], *own = &description->values[i];
        if (!slurm->set || (own->set && slurm->line > 0))
            continue;
        free(own->text);
        *own = *slurm;
        *slurm = (struct option_value){0};
    }
}

int slurm_lines_finish(const char *name, struct task_description *description, struct fault *fault)
{
    int r = slurm_command_read(description, fault);
    if (r < 0)
        return r;
    r = derive_gpus(description, fault);
    const struct option_value *own = &description->values[TASK_GPUS],
                              *slurm = &description->slurm_values[TASK_GPUS];
    bool is_own = own->set && (!slurm->set || slurm->line > 0);
    int64_t gpus = option_number_or(is_own ? own : slurm, 1);
    if (r == 0)
        r = derive_cpus(description, gpus, fault);
    if (r == 0)
        r = derive_memory(description, gpus, fault);
    if (r == 0)
        r = derive_kinds(description, fault);
    if (r == 0)
        r = derive_mail(description, fault);
    if (r == 0)
        merge_values(description);
    return r < 0 ? fault_prefix(fault, r, "%s", name) : 0;
}
