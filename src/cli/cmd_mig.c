#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/task_view.h"
#include "gpu/mig.h"

enum { MIG_YES, MIG_NVML };

static const struct option_spec options[] = {
    [MIG_YES] = {.name = "yes",
                 .kind = OPTION_FLAG,
                 .help = "do it: without it apply and reset only say what they would do"},
    [MIG_NVML] = {.name = "nvml-library",
                  .kind = OPTION_FILE,
                  .argument = "PATH",
                  .help = "the NVML library; default: the driver's"},
};

static const struct table_column columns[] = {
    {"PROFILE", 0},
    {"SLICES", TABLE_RIGHT},
    {"MEMORY", TABLE_RIGHT},
    {"AT", TABLE_RIGHT},
};

static void print_instances(const struct mig_gpu *gpu, const struct mig_plan *plan, const char *none)
{
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < plan->count; i++) {
        const struct mig_profile *profile = &gpu->profiles[plan->instances[i].profile];
        char size[32];
        table_row(table);
        table_cell(table, NULL, "%s", profile->name);
        table_cell(table, NULL, "%d", profile->slices);
        table_cell(table, NULL, "%s", format_size(profile->mem_bytes, size, sizeof size));
        table_cell(table, NULL, "%u", plan->instances[i].at.start);
    }
    table_print(table, none);
    table_destroy(table);
}

static const char *format_placements(const struct mig_profile *profile, char *buffer, size_t size)
{
    size_t used = 0;
    *buffer = '\0';
    for (size_t i = 0; i < profile->n_placements && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%u", i ? "," : "", profile->placements[i].start);
    return buffer;
}

static void print_profiles(const struct mig_gpu *gpu)
{
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < gpu->n_profiles; i++) {
        const struct mig_profile *profile = &gpu->profiles[i];
        char size[32], placements[96];
        table_row(table);
        table_cell(table, NULL, "%s", profile->name);
        table_cell(table, NULL, "%d", profile->slices);
        table_cell(table, NULL, "%s", format_size(profile->mem_bytes, size, sizeof size));
        table_cell(table, NULL, "%s", format_placements(profile, placements, sizeof placements));
    }
    printf("Profiles that this GPU has:\n");
    table_print(table, "None.");
    table_destroy(table);
}

/* A task may have its GPU and no process there yet. A daemon that is not there has none. */
static int check_tasks(const struct invocation *invocation, const struct mig_gpu *gpu, struct fault *fault)
{
    const char *uuid = gpu->set->gpu[gpu->gpu].uuid;
    struct client *client;
    json_t *reply, *entry;
    size_t i;
    int r = 0;
    if (client_open(invocation->common[COMMON_SOCKET].text, NULL, &client) < 0)
        return 0;
    if (session_call(client, "GET", "/v1/gpus", NULL, &reply) == EXIT_OK) {
        json_array_foreach(json_object_get(reply, "gpus"), i, entry)
        {
            bool ours = strcmp(member_text(entry, "parent_uuid", member_text(entry, "uuid", "")), uuid) == 0;
            const json_t *task = json_array_get(json_object_get(entry, "tasks"), 0);
            if (ours && task && r == 0)
                r = fault_set(fault, EBUSY, "task %.0f is on GPU %s: nothing is changed below it",
                              member_number(task, "id", 0), member_text(entry, "index", "?"));
        }
        json_decref(reply);
    }
    client_close(client);
    return r;
}

static int change(const struct invocation *invocation, const struct mig_gpu *gpu, const struct mig_plan *plan)
{
    struct fault fault = {0};
    int r = 0;
    if (!invocation->values[MIG_YES].number) {
        printf("Nothing was changed: --yes does it.\n");
        return EXIT_OK;
    }
    if (geteuid() != 0)
        r = fault_set(&fault, EPERM, "MIG instances are root's to change");
    if (r == 0)
        r = check_tasks(invocation, gpu, &fault);
    if (r == 0)
        r = mig_check_idle(gpu, &fault);
    if (r == 0)
        r = mig_apply(gpu, plan, &fault);
    if (r < 0) {
        complain("%s", fault.text);
        return EXIT_REFUSED;
    }
    printf("Done. A collocd that runs sees the new instances when it is started again.\n");
    return EXIT_OK;
}

static int carry_out(const struct invocation *invocation, const char *verb, const struct mig_gpu *gpu)
{
    const char *const *names = invocation->operands + 2;
    size_t n = (size_t)invocation->operand_count - 2;
    struct fault fault = {0};
    struct mig_plan plan = {0};
    printf("GPU %s has now:\n", invocation->operands[1]);
    print_instances(gpu, &gpu->present, "No instances.");
    if (n == 0 && strcmp(verb, "plan") == 0) {
        print_profiles(gpu);
        return EXIT_OK;
    }
    if (mig_plan_make(gpu->profiles, gpu->n_profiles, names, n, &fault, &plan) < 0) {
        complain("%s", fault.text);
        return EXIT_REFUSED;
    }
    printf("%s:\n", strcmp(verb, "plan") == 0 ? "It would have" : "It is to have");
    print_instances(gpu, &plan, "No instances.");
    return strcmp(verb, "plan") == 0 ? EXIT_OK : change(invocation, gpu, &plan);
}

static int check_words(const struct invocation *invocation)
{
    const char *verb = invocation->operands[0];
    bool has_profiles = invocation->operand_count > 2;
    if (strcmp(verb, "plan") != 0 && strcmp(verb, "apply") != 0 && strcmp(verb, "reset") != 0)
        complain("mig %s: there are plan, apply and reset", verb);
    else if (invocation->common[COMMON_JSON].number)
        complain("mig: --json: there is none; `colloc gpus --json` has the instances");
    else if (invocation->operand_count < 2)
        complain("mig %s: wants a GPU", verb);
    else if (strcmp(verb, "apply") == 0 && !has_profiles)
        complain("mig apply: wants profiles; `colloc mig reset %s` leaves none", invocation->operands[1]);
    else if (strcmp(verb, "reset") == 0 && has_profiles)
        complain("mig reset: takes no profiles");
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
    int r = gpu_set_open(invocation->values[MIG_NVML].text, &fault, &set);
    if (r == 0)
        r = mig_look(set, invocation->operands[1], &fault, &gpu);
    if (r == 0)
        code = carry_out(invocation, invocation->operands[0], &gpu);
    else
        complain("%s", fault.text);
    gpu_set_close(set);
    return r == 0 ? code : EXIT_REFUSED;
}

const struct command command_mig = {
    .name = "mig",
    .usage = "[OPTION...] plan|apply|reset GPU [PROFILE...]",
    .summary = "plan, make and remove MIG instances",
    .description =
        "Divides a GPU on which MIG is on into instances. Profiles are named as nvidia-smi does (3g.40gb) or by their "
        "slices (3g, 3: the smallest such); where each may lie is the driver's word.\n\n"
        "plan shows what there is and whether the profiles fit together; without profiles, which there are. apply "
        "makes "
        "them in place of those that there are; reset removes all. Both only say what they would do unless --yes is "
        "given, want root, and change nothing while a task or any process is on the GPU.",
    .operand = OPERAND_NONE,
    .min_operands = 1,
    .max_operands = 18,
    COMMAND_OPTIONS(options),
    .run = run,
};
