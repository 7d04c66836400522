/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs: a MIG instance belongs to the card that it names as its parent. A card counts if it is
 * healthy, its kind is one that the simulator knows (data/gpu-kinds.txt), and neither it nor an
 * instance of it has a task or an external process; where the processes are unknown, it does not.
 *
 * Tasks: the first ones of the queue, in its order. Unknown values are assumed as in `colloc
 * simulate`: 5 GiB, which is also the free memory that the daemon requires, an SM activity of 50 %,
 * and an hour for each.
 */
#include "cli/mig_inputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_member.h"
#include "base/units.h"
#include "policy/policies.h"

enum { TASKS_MAX = 60 }; /* chosen: a plan takes seconds, and later tasks get the next plan */

static const double ASSUMED_SMACT = 0.5, ASSUMED_S = 3600, ASSUMED_MIB = 5120;

/* ---- GPUs ---- */

static bool is_instance_of(const json_t *gpu, const json_t *card)
{
    return json_is_string(json_object_get(gpu, "mig_profile")) &&
           strcmp(member_text(gpu, "parent_uuid", ""), member_text(card, "uuid", "-")) == 0;
}

/* Unknown processes are not none. */
static bool is_free(const json_t *gpu)
{
    const json_t *processes = json_object_get(gpu, "foreign_processes");
    return json_array_size(json_object_get(gpu, "tasks")) == 0 && json_is_array(processes) &&
           json_array_size(processes) == 0;
}

/* Does no task use the card or an instance of it? The activity of a card with MIG is that of its
 * instances. */
static bool is_card_free(const json_t *list, const json_t *card, bool has_mig)
{
    const json_t *gpu;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, gpu) {
        bool is_part = has_mig ? is_instance_of(gpu, card) : gpu == card;
        if (is_part && !is_free(gpu))
            return false;
    }
    return true;
}

/* Are they compute instances of the same GPU instance? */
static bool share_gpu_instance(const json_t *one, const json_t *other)
{
    const json_t *id = json_object_get(one, "gpu_instance");
    return json_is_integer(id) && json_equal(id, json_object_get(other, "gpu_instance"));
}

/* Adds an instance to the text that mig_division_parse reads. "++" stands where it would be put
 * into an earlier GPU instance of its profile, which has others. */
static void append_instance(const json_t *gpu, bool is_first_of_its_own, struct mig_layout *layout)
{
    const char *name = member_text(gpu, "mig_profile", ""), *shared = strchr(name, 'c');
    size_t used = strlen(layout->text);
    bool is_open = is_first_of_its_own && shared && strstr(layout->text, shared);
    const char *plus = used == 0 ? "" : is_open ? "++" : "+";
    snprintf(layout->text + used, sizeof layout->text - used, "%s%s", plus, name);
}

/* The compute instances of the card, those of one GPU instance after the other. */
static void read_layout(const json_t *list, const json_t *card, struct mig_layout *ret_layout)
{
    const json_t *gpu, *other;
    size_t i, k;
    ret_layout->text[0] = '\0';
    json_array_foreach((json_t *)(uintptr_t)list, i, gpu) {
        bool is_new = is_instance_of(gpu, card);
        for (k = 0; k < i && is_new; k++) {
            other = json_array_get(list, k);
            is_new = !is_instance_of(other, card) || !share_gpu_instance(gpu, other);
        }
        if (!is_new)
            continue;
        append_instance(gpu, true, ret_layout);
        for (k = i + 1; k < json_array_size(list); k++) {
            other = json_array_get(list, k);
            if (is_instance_of(other, card) && share_gpu_instance(gpu, other))
                append_instance(other, false, ret_layout);
        }
    }
}

static void read_card(
    const json_t *list, const json_t *card, bool what_if, struct mig_inputs *inputs)
{
    const char *health = member_text(card, "health", "");
    bool has_mig = strcmp(health, "mig-parent") == 0;
    bool is_fit = has_mig || strcmp(health, "ok") == 0;
    const struct gpu_kind *kind = gpu_kinds_find_product(&inputs->kinds,
        member_text(card, "name", ""), (int64_t)member_number(card, "mem_total_mib", 0) * MIB);
    if (!is_fit || !kind || inputs->n_gpus == MIG_ADVICE_GPUS_MAX ||
        (!what_if && !is_card_free(list, card, has_mig)))
        return;
    struct mig_advice_gpu *gpu = &inputs->gpus[inputs->n_gpus];
    *gpu = (struct mig_advice_gpu){
        .kind = kind, .can_change = what_if ? kind->n_profiles > 0 : has_mig};
    if (has_mig)
        read_layout(list, card, &gpu->now);
    inputs->any_can_change |= gpu->can_change;
    snprintf(inputs->labels[inputs->n_gpus++], sizeof inputs->labels[0], "%s",
        member_text(card, "index", "?"));
}

static int read_gpus(
    const json_t *reply, bool what_if, struct fault *fault, struct mig_inputs *inputs)
{
    const json_t *list = json_object_get(reply, "gpus"), *gpu;
    size_t i;
    inputs->policy = policy_find(member_text(reply, "policy", ""));
    if (!json_is_array(list) || !inputs->policy ||
        sharing_parse(member_text(reply, "sharing", ""), &inputs->sharing) < 0)
        return fault_set(fault, EPROTO, "collocd's list of GPUs cannot be read");
    json_array_foreach((json_t *)(uintptr_t)list, i, gpu) {
        if (!json_is_string(json_object_get(gpu, "mig_profile")))
            read_card(list, gpu, what_if, inputs);
    }
    return 0;
}

/* ---- tasks ---- */

/* `known`: JSON null is unknown. Counts the assumptions. */
static double known_or(const json_t *known, double assumed, int *count)
{
    bool is_known = json_is_number(known) && json_number_value(known) > 0;
    *count += !is_known;
    return is_known ? json_number_value(known) : assumed;
}

/* Does it wait for a GPU, and not for a date, another task or its user? */
static bool waits_for_gpu(const json_t *task)
{
    const char *reason = member_text(task, "reason", "");
    return member_number(task, "gpus_requested", 1) > 0 &&
           strcmp(member_text(task, "state", ""), "PENDING") == 0 &&
           (strcmp(reason, "Resources") == 0 || strcmp(reason, "Priority") == 0 ||
               strcmp(reason, "Recovering") == 0);
}

static int add_task(const json_t *task, struct mig_inputs *inputs)
{
    char name[32];
    const json_t *need = json_object_get(task, "need_mib"),
                 *time = json_object_get(task, "expected_s");
    if (!json_is_number(time))
        time = json_object_get(task, "time_limit_s");
    snprintf(name, sizeof name, "%.0f", member_number(task, "id", 0));
    struct sim_task type = {.name = strdup(name),
        .gpus = (int)member_number(task, "gpus_requested", 1),
        .exclusive = json_is_true(json_object_get(task, "exclusive")),
        .solo_s = known_or(time, ASSUMED_S, &inputs->n_without_time),
        .memory_bytes = (int64_t)(known_or(need, ASSUMED_MIB, &inputs->n_without_memory) *
                                  (double)MIB),
        .demand = {.gract = NAN, .smocc = NAN, .dram = NAN, .power_w = NAN}};
    type.demand.smact = known_or(
        json_object_get(task, "smact_expected"), ASSUMED_SMACT, &inputs->n_without_smact);
    if (json_is_number(need))
        type.need = (struct need){NEED_DECLARED, type.memory_bytes};
    if (!type.name ||
        ARRAY_APPEND(inputs->queue.tasks, inputs->queue.n, inputs->queue.capacity, type) < 0) {
        free(type.name);
        return -ENOMEM;
    }
    return 0;
}

static int read_tasks(
    const json_t *reply, bool what_if, struct fault *fault, struct mig_inputs *inputs)
{
    const json_t *list = json_object_get(reply, "tasks"), *task;
    size_t i;
    int r = 0;
    if (!json_is_array(list))
        return fault_set(fault, EPROTO, "collocd's list of tasks cannot be read");
    json_array_foreach((json_t *)(uintptr_t)list, i, task) {
        if (r == 0 && (what_if || waits_for_gpu(task)) && inputs->queue.n < TASKS_MAX)
            r = add_task(task, inputs);
    }
    return r == 0 ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

int mig_inputs_read(const json_t *gpus, const json_t *tasks, bool what_if, struct fault *fault,
    struct mig_inputs *ret_inputs)
{
    *ret_inputs = (struct mig_inputs){0};
    int r = gpu_kinds_init(&ret_inputs->kinds, fault);
    if (r == 0)
        r = read_gpus(gpus, what_if, fault, ret_inputs);
    if (r == 0)
        r = read_tasks(tasks, what_if, fault, ret_inputs);
    return r;
}

void mig_inputs_fini(struct mig_inputs *inputs)
{
    catalogue_fini(&inputs->queue);
}
