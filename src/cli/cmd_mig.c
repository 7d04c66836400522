/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc mig`: plans, creates and removes MIG instances through NVML.
 *
 * A change needs --yes and root, and is refused while collocd has a task on the GPU (a task may
 * have its GPU before it has a process there) or any process uses it.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "cli/mig_change.h"
#include "cli/mig_queue.h"
#include "cli/print.h"
#include "cli/table.h"
#include "gpu/mig.h"

enum { MIG_YES, MIG_NVML, MIG_APPLY, MIG_WHAT_IF };

static const struct option_spec options[] = {
    [MIG_YES] = FLAG_OPTION("yes",
        .help = "change the GPU; without --yes, apply and reset print what they would do and "
                "change nothing"),
    [MIG_NVML] = OPTION("nvml-library", FILE, "PATH",
        .help = "path or name of the NVML library; default: the driver's"),
    [MIG_APPLY] = FLAG_OPTION("apply",
        .help =
            "with plan and no GPU: divide the GPUs as proposed, if the waiting tasks are done at "
            "least 5 % sooner then or one of them fits only then"),
    [MIG_WHAT_IF] = FLAG_OPTION("what-if",
        .help = "with plan and no GPU: plan as if MIG were on and no task ran, for all tasks that "
                "have not ended"),
};

static const struct table_column columns[] = {
    {"PROFILE", 0},
    {"SLICES", TABLE_RIGHT},
    {"MEMORY", TABLE_RIGHT},
    {"AT", TABLE_RIGHT},
};

static void print_compute(
    struct table *table, const struct mig_gpu *gpu, const struct mig_instance *instance, int slices)
{
    const struct mig_profile *profile = &gpu->profiles[instance->profile];
    char size[32], name[MIG_NAME_SIZE];
    table_row(table);
    table_cell(table, NULL, "%s", slices ? mig_plan_name(profile, slices, name) : profile->name);
    table_cell(table, NULL, "%d", slices);
    table_cell(table, NULL, "%s%s", instance->n_computes > 1 ? "shared " : "",
        format_size(profile->mem_bytes, size, sizeof size));
    table_cell(table, NULL, "%u", instance->at.start);
}

/* One row for each compute instance. A GPU instance without one has no slices that a task could
 * use. */
static void print_instance(
    struct table *table, const struct mig_gpu *gpu, const struct mig_instance *instance)
{
    for (size_t i = 0; i < instance->n_computes; i++)
        print_compute(table, gpu, instance, instance->computes[i]);
    if (instance->n_computes == 0)
        print_compute(table, gpu, instance, 0);
}

/* AT is the first of the memory slices that an instance has: instances of the same profiles can be
 * placed in several ways. */
static void print_instances(
    const struct mig_gpu *gpu, const struct mig_plan *plan, const char *none)
{
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < plan->count; i++)
        print_instance(table, gpu, &plan->instances[i]);
    table_print(table, none);
    table_destroy(table);
}

static const char *format_placements(const struct mig_profile *profile, char *buffer, size_t size)
{
    size_t used = 0;
    *buffer = '\0';
    for (size_t i = 0; i < profile->n_placements && used < size; i++)
        used += (size_t)snprintf(
            buffer + used, size - used, "%s%u", i ? "," : "", profile->placements[i].start);
    return buffer;
}

static void print_profiles(const struct mig_gpu *gpu)
{
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < gpu->n_profiles; i++) {
        const struct mig_profile *profile = &gpu->profiles[i];
        char size[32], placements[96];
        table_row(table);
        table_cell(table, NULL, "%s", profile->name);
        table_cell(table, NULL, "%d", profile->slices);
        table_cell(table, NULL, "%s", format_size(profile->mem_bytes, size, sizeof size));
        table_cell(table, NULL, "%s", format_placements(profile, placements, sizeof placements));
    }
    printf("Profiles of this GPU:\n");
    table_print(table, "None.");
    table_destroy(table);
}

static int change_instances(
    const struct invocation *invocation, const struct mig_gpu *gpu, const struct mig_plan *plan)
{
    struct fault fault = {0};
    if (!invocation->values[MIG_YES].number) {
        printf("Nothing was changed; add --yes to do it.\n");
        return EXIT_OK;
    }
    if (mig_change(invocation, gpu, plan, &fault) < 0) {
        print_error("%s", fault.text);
        return EXIT_REFUSED;
    }
    printf("Done. A running collocd detects the change within seconds.\n");
    return EXIT_OK;
}

/* Prints the instances before and after in any case: `plan` shows what `apply` would do. */
static int carry_out(
    const struct invocation *invocation, const char *verb, const struct mig_gpu *gpu)
{
    const char *const *names = invocation->operands + 2;
    size_t n = (size_t)invocation->operand_count - 2;
    struct fault fault = {0};
    struct mig_plan plan = {0};
    printf("Instances of GPU %s now:\n", invocation->operands[1]);
    print_instances(gpu, &gpu->present, "No instances.");
    if (n == 0 && strcmp(verb, "plan") == 0) {
        print_profiles(gpu);
        return EXIT_OK;
    }
    if (mig_plan_make(gpu->profiles, gpu->n_profiles, names, n, &fault, &plan) < 0) {
        print_error("%s", fault.text);
        return EXIT_REFUSED;
    }
    printf("%s:\n",
        strcmp(verb, "plan") == 0 ? "Instances that it would have" : "Instances after the change");
    print_instances(gpu, &plan, "No instances.");
    return strcmp(verb, "plan") == 0 ? EXIT_OK : change_instances(invocation, gpu, &plan);
}

static bool plans_queue(const struct invocation *invocation)
{
    return invocation->operand_count == 1 && strcmp(invocation->operands[0], "plan") == 0;
}

static int check_words(const struct invocation *invocation)
{
    const char *verb = invocation->operands[0];
    bool has_profiles = invocation->operand_count > 2;
    if (strcmp(verb, "plan") != 0 && strcmp(verb, "apply") != 0 && strcmp(verb, "reset") != 0)
        print_error("mig: unknown action %s: give plan, apply or reset", verb);
    else if (plans_queue(invocation))
        return EXIT_OK;
    else if (invocation->values[MIG_APPLY].number || invocation->values[MIG_WHAT_IF].number)
        print_error("mig: --apply and --what-if are of `colloc mig plan` without a GPU");
    else if (invocation->common[COMMON_JSON].number)
        print_error("mig: --json is not supported: `colloc gpus --json` lists the instances");
    else if (invocation->operand_count < 2)
        print_error("mig %s: no GPU given: name one as `colloc gpus` does", verb);
    else if (strcmp(verb, "apply") == 0 && !has_profiles)
        print_error("mig apply: no profiles given (`colloc mig reset %s` removes all instances)",
            invocation->operands[1]);
    else if (strcmp(verb, "reset") == 0 && has_profiles)
        print_error("mig reset: unexpected profiles: reset removes all instances");
    else
        return EXIT_OK;
    return EXIT_USAGE;
}

static int run(const struct invocation *invocation)
{
    struct fault fault = {0};
    struct gpu_set *set;
    struct mig_gpu gpu;
    int code = check_words(invocation);
    if (code != EXIT_OK)
        return code;
    if (plans_queue(invocation))
        return mig_plan_queue(
            invocation, &(struct mig_queue_options){.apply = invocation->values[MIG_APPLY].number,
                            .what_if = invocation->values[MIG_WHAT_IF].number,
                            .nvml_library = invocation->values[MIG_NVML].text});
    int r = gpu_set_open(invocation->values[MIG_NVML].text, &fault, &set);
    if (r == 0)
        r = mig_query(set, invocation->operands[1], &fault, &gpu);
    if (r == 0)
        code = carry_out(invocation, invocation->operands[0], &gpu);
    else
        print_error("%s", fault.text);
    gpu_set_close(set);
    return r == 0 ? code : EXIT_REFUSED;
}

const struct command command_mig = {
    .name = "mig",
    .usage = "[OPTION...] plan [GPU [PROFILE...]] | apply GPU PROFILE... | reset GPU",
    .summary = "plan, create and remove MIG instances",
    .description = "Divides a GPU with MIG enabled into instances. A profile is named as by "
                   "nvidia-smi (3g.40gb) or by its slices (3g or 3: the smallest profile with 3 "
                   "slices); the driver decides where each may be placed. 1c.3g.40gb (or 1c.3g) "
                   "is a compute instance with one of the three slices of a GPU instance "
                   "3g.40gb: those that follow share the memory of that GPU instance until its "
                   "slices are used up.\n\n"
                   "plan shows the present instances and whether the given profiles fit "
                   "together; without profiles, it lists the GPU's profiles. Without a GPU, plan "
                   "proposes a division for the tasks that wait, of all GPUs that have MIG "
                   "enabled and no task, and prints what it gains by the simulator's model "
                   "(docs/mig.md). apply replaces the "
                   "present instances by the given profiles; reset removes all instances. Both "
                   "print what they would do and change nothing unless --yes is given. They "
                   "need root, and they refuse to change a GPU while a task or any process uses "
                   "it.",
    .operand = OPERAND_NONE,
    .actions = (const char *const[]){"plan", "apply", "reset", NULL},
    .min_operands = 1,
    .max_operands = 18,
    COMMAND_OPTIONS(options),
    .run = run,
};
