/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPUs there are: the list that the core gets as EVENT_GPUS at the start, and again when a
 * close poll finds another one.
 *
 * Cards stay for as long as the daemon runs; a lost card stays in the list. MIG instances come and
 * go. A removed one stays in the core's view, marked `is_gone`, because a task may still name it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/gpus/gpus_state.h"
#include "sharing/gpu_kind.h"

/* Memory of the GPU that tasks can use; free memory is this minus the used memory. */
static int64_t usable_bytes(const struct gpu_info *gpu)
{
    double total = reading_or(gpu->mem_total_bytes, 0);
    return (int64_t)(total - reading_assume(gpu->mem_reserved_bytes, 0));
}

/* `kinds`: NULL: no speed is known. Nor is that of a MIG instance, which is a part of a GPU. */
static int speed_of(const struct gpu_kinds *kinds, const struct gpu_info *gpu)
{
    int64_t total_bytes = (int64_t)reading_or(gpu->mem_total_bytes, 0);
    if (!kinds || gpu->is_mig)
        return 0;
    const struct gpu_kind *kind = gpu_kinds_find_product(kinds, gpu->name, total_bytes);
    return kind ? gpu_kind_speed(kind) : 0;
}

/* Returns the built-in kinds, for free(); NULL: there is no memory. */
static struct gpu_kinds *load_kinds(void)
{
    struct fault fault;
    struct gpu_kinds *kinds = malloc(sizeof *kinds);
    if (kinds && gpu_kinds_init(kinds, &fault) == 0)
        return kinds;
    free(kinds);
    return NULL;
}

/* A number for the places that share the memory of GPU `at`: one more than the first one's place in
 * the set. */
static int memory_domain_of(const struct gpu_set *set, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (gpu_info_shares_memory(&set->gpu[i], &set->gpu[at]))
            return (int)i + 1;
    return (int)at + 1;
}

/* Where the compute mode admits several processes only through MPS, MPS stays. */
static struct gpu_identity identity_of(
    const struct gpu_kinds *kinds, const struct gpu_info *gpu, const struct config *config)
{
    struct gpu_identity id = {.is_place = gpu->is_place, .is_mig_instance = gpu->is_mig};
    snprintf(id.uuid, sizeof id.uuid, "%s", gpu->uuid);
    snprintf(id.label, sizeof id.label, "%.15s", gpu->index);
    snprintf(id.name, sizeof id.name, "%.63s", gpu->name);
    id.one_process = gpu->compute_mode == GPU_COMPUTE_EXCLUSIVE_PROCESS ||
                     gpu->compute_mode == GPU_COMPUTE_EXCLUSIVE_THREAD;
    id.without_mps = !id.one_process && !gpu_info_is_listed(gpu, config->mps_gpus);
    id.is_out_of_use = *config->drain && gpu_info_is_listed(gpu, config->drain);
    id.mem_total_bytes = usable_bytes(gpu);
    id.device = gpu->minor.valid ? 1 + (int)gpu->minor.value : 0;
    memcpy(id.near_cpus, gpu->near_cpus, sizeof id.near_cpus);
    id.power_limit_w = (int)reading_or(gpu->power_limit_w, 0);
    id.speed = speed_of(kinds, gpu);
    return id;
}

/* How many cards are before it in the set: their distances are listed in that order. */
static int card_number(const struct gpu_set *set, size_t at)
{
    int n = 0;
    for (size_t i = 0; i < at; i++)
        n += !set->gpu[i].is_mig;
    return n;
}

/* The distances of a card to the GPUs before it in the list, which may be some of the set only. */
static void list_distances(
    const struct gpus *gpus, size_t at, const size_t *listed, int n, struct gpu_identity *id)
{
    const struct gpu_info *card = &gpus->set->gpu[at];
    size_t known = strlen(card->distances);
    if (card->is_mig || !known || n > VIEW_DISTANCES_MAX)
        return;
    for (int i = 0; i < n; i++) {
        size_t number = (size_t)card_number(gpus->set, listed[i]);
        bool is_known = !gpus->set->gpu[listed[i]].is_mig && number < known;
        id->distances[i] = is_known ? card->distances[number] : VIEW_DISTANCE_UNKNOWN;
    }
}

static int view_of(const struct gpus *gpus, const char *uuid)
{
    const struct cluster_view *view = core_view(gpus->parts.core);
    for (int i = 0; i < view->n_gpus; i++)
        if (strcmp(view->gpus[i].id.uuid, uuid) == 0)
            return i;
    return -1;
}

static bool is_in_set(const struct gpu_set *set, const char *uuid)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->gpu[i].uuid, uuid) == 0)
            return true;
    return false;
}

/* Otherwise an instance that is not listed may exist nevertheless. */
static bool knows_all_instances(const struct gpu_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (!set->gpu[i].is_mig && !set->gpu[i].instances_known)
            return false;
    return true;
}

/* Lists instances that took tasks once, also before this daemon was started. Returns how many. */
static int list_gone(const struct gpus *gpus, struct gpu_identity *ret_list)
{
    const struct cluster_view *view = core_view(gpus->parts.core);
    int n = 0;
    if (!knows_all_instances(gpus->set))
        return 0;
    for (int i = 0; i < view->n_gpus; i++) {
        if (!view->gpus[i].id.is_mig_instance || is_in_set(gpus->set, view->gpus[i].id.uuid))
            continue;
        ret_list[n] = view->gpus[i].id;
        ret_list[n].is_gone = true;
        ret_list[n++].is_place = false;
    }
    return n;
}

static void log_use(const struct gpus *gpus, const struct gpu_identity *id)
{
    int view = view_of(gpus, id->uuid);
    bool was_out = view >= 0 && core_view(gpus->parts.core)->gpus[view].id.is_out_of_use;
    if (id->is_out_of_use && !was_out)
        log_info("GPU %s (%s) gets no further task (setting drain)", id->label, id->uuid);
    else if (was_out && !id->is_out_of_use)
        log_info("GPU %s (%s) gets tasks again", id->label, id->uuid);
}

static bool is_any_listed(const struct gpu_set *set, const char *list)
{
    for (size_t i = 0; i < set->count; i++)
        if (gpu_info_is_listed(&set->gpu[i], list))
            return true;
    return false;
}

static void warn_of_unknown(const struct gpu_set *set, const char *setting, const char *list)
{
    char name[sizeof((struct config *)0)->gpus];
    if (strcmp(list, "all") == 0)
        return;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        const struct span one = span_trim((struct span){at, n});
        if (one.size && span_copy(one, name, sizeof name) && !is_any_listed(set, name))
            log_warning("%s: there is no GPU '%s'", setting, name);
        at += n + (at[n] == ',');
    }
}

void gpu_list_warn_of_unknown(const struct gpu_set *set, const struct config *config)
{
    warn_of_unknown(set, "drain", config->drain);
    warn_of_unknown(set, "gpus", config->gpus);
    warn_of_unknown(set, "mps-gpus", config->mps_gpus);
}

int gpu_list_feed(struct gpus *gpus, bool keeps_samples)
{
    size_t most = gpus->set->count + (size_t)core_view(gpus->parts.core)->n_gpus;
    CLEANUP_FREE struct gpu_identity *list = calloc(most, sizeof *list);
    CLEANUP_FREE size_t *listed = calloc(most, sizeof *listed);
    if (!list || !listed)
        return -ENOMEM;
    struct event event = driver_event(gpus->parts.driver, EVENT_GPUS, 0);
    event.gpus.keeps_samples = keeps_samples;
    struct gpu_kinds *kinds = load_kinds();
    event.gpus.list = list;
    for (size_t i = 0; i < gpus->set->count; i++) {
        if (!gpu_info_is_listed(&gpus->set->gpu[i], gpus->parts.config->gpus))
            continue;
        struct gpu_identity *id = &list[event.gpus.n];
        *id = identity_of(kinds, &gpus->set->gpu[i], gpus->parts.config);
        id->memory_domain = gpus->set->gpu[i].is_mig ? memory_domain_of(gpus->set, i) : 0;
        list_distances(gpus, i, listed, event.gpus.n, id);
        log_use(gpus, id);
        listed[event.gpus.n++] = i;
    }
    free(kinds);
    event.gpus.n += list_gone(gpus, list + event.gpus.n);
    int r = driver_feed(gpus->parts.driver, &event, NULL);
    for (size_t i = 0; i < gpus->set->count; i++) {
        bool managed = gpu_info_is_listed(&gpus->set->gpu[i], gpus->parts.config->gpus);
        gpus->states[i].view = managed ? view_of(gpus, gpus->set->gpu[i].uuid) : -1;
    }
    return r;
}

void gpu_state_fini(struct gpu_state *state)
{
    gpu_sample_fini(&state->sample);
    gpu_sample_fini(&state->incoming);
    free(state->external);
    free(state->left);
    free(state->misplaced);
    free(state->misplaced_before);
    free(state->shares);
    free(state->shares_before);
    *state = (struct gpu_state){0};
}

static const char *compute_mode_name(enum gpu_compute_mode mode)
{
    static const char *const names[] = {
        "Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
    return mode >= 0 && mode <= GPU_COMPUTE_EXCLUSIVE_PROCESS ? names[mode] : "not known";
}

static void log_changed_modes(const struct gpu_info *before, const struct gpu_info *now)
{
    if (strcmp(before->uuid, now->uuid) != 0 || before->is_mig)
        return;
    if (before->compute_mode != now->compute_mode)
        log_info(
            "GPU %s: its compute mode is %s now", now->index, compute_mode_name(now->compute_mode));
    if (before->mig_mode != now->mig_mode)
        log_info("GPU %s: MIG is %s now", now->index, now->mig_mode == GPU_MIG_ON ? "on" : "off");
}

static void log_change(const struct gpu_set *before, const struct gpu_set *now)
{
    for (size_t i = 0; i < before->count; i++)
        for (size_t k = 0; k < now->count; k++)
            log_changed_modes(&before->gpu[i], &now->gpu[k]);
    for (size_t i = 0; i < before->count; i++)
        if (before->gpu[i].is_mig && !is_in_set(now, before->gpu[i].uuid))
            log_warning("GPU %s (%s, %s) is not there any more", before->gpu[i].index,
                before->gpu[i].profile, before->gpu[i].uuid);
    for (size_t i = 0; i < now->count; i++)
        if (now->gpu[i].is_mig && !is_in_set(before, now->gpu[i].uuid))
            log_info("GPU %s (%s, %s) is there now", now->gpu[i].index, now->gpu[i].profile,
                now->gpu[i].uuid);
}

/* The state of a GPU moves with it to its new index. */
static void move_states(struct gpu_state *to, const struct gpu_set *now, struct gpu_state *from,
    const struct gpu_set *before)
{
    for (size_t i = 0; i < now->count; i++) {
        for (size_t k = 0; k < before->count; k++) {
            if (strcmp(now->gpu[i].index, before->gpu[k].index) != 0 ||
                strcmp(now->gpu[i].uuid, before->gpu[k].uuid) != 0)
                continue;
            to[i] = from[k];
            from[k] = (struct gpu_state){0};
        }
    }
    for (size_t k = 0; k < before->count; k++)
        gpu_state_fini(&from[k]);
    free(from);
}

void gpu_list_replace(struct gpus *gpus, struct gpu_set *now)
{
    struct gpu_set *before = gpus->set;
    struct gpu_state *states = calloc(now->count, sizeof *states);
    if (!states)
        driver_die_of_memory();
    log_change(before, now);
    move_states(states, now, gpus->states, before);
    gpus->states = states;
    gpus->set = now;
    gpu_set_close(before);
    gpu_list_feed(gpus, false);
}
