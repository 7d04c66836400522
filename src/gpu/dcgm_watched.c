/* SPDX-License-Identifier: Apache-2.0 */
/* Compute instances of one GPU instance have its activity: they are two entries with one key, which
 * DCGM is asked for once. */
#include "gpu/dcgm_watched.h"

#include <stdio.h>
#include <string.h>

static void put_watched(
    struct dcgm_watched_list *list, size_t i, const struct dcgm_watched *watched)
{
    list->at[i] = *watched;
    if (i >= list->count)
        list->count = i + 1;
}

void dcgm_watched_add_gpu(struct dcgm_watched_list *list, size_t i, const char *uuid)
{
    struct dcgm_watched gpu = {0};
    snprintf(gpu.uuid, sizeof gpu.uuid, "%s", uuid);
    snprintf(gpu.key, sizeof gpu.key, "%s", uuid);
    put_watched(list, i, &gpu);
}

void dcgm_watched_add_instance(
    struct dcgm_watched_list *list, size_t i, const char *card_uuid, unsigned gpu_instance)
{
    struct dcgm_watched instance = {.is_instance = true, .gpu_instance = gpu_instance};
    snprintf(instance.uuid, sizeof instance.uuid, "%s", card_uuid);
    snprintf(instance.key, sizeof instance.key, "%s/%u", card_uuid, gpu_instance);
    put_watched(list, i, &instance);
}

bool dcgm_watched_has_instances(const struct dcgm_watched_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i].is_instance)
            return true;
    return false;
}

bool dcgm_watched_lacks_instance(const struct dcgm_watched_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i].is_instance && !list->at[i].is_listed)
            return true;
    return false;
}

static bool is_repeated(const struct dcgm_watched_list *list, size_t i)
{
    for (size_t other = 0; other < i; other++)
        if (strcmp(list->at[other].key, list->at[i].key) == 0)
            return true;
    return false;
}

size_t dcgm_watched_keys(const struct dcgm_watched_list *list, const char **ret_keys)
{
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++)
        if (*list->at[i].key && !is_repeated(list, i))
            ret_keys[n++] = list->at[i].key;
    return n;
}

bool dcgm_watched_join_names(
    const struct dcgm_watched_list *list, char ret_names[DCGM_WATCHED_NAMES_SIZE])
{
    size_t used = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i].is_listed && !is_repeated(list, i))
            used += (size_t)snprintf(ret_names + used, DCGM_WATCHED_NAMES_SIZE - used, "%s%s",
                used ? "," : "", list->at[i].name);
    return used > 0;
}

void dcgm_watched_begin_stream(struct dcgm_watched_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->at[i].is_listed = list->at[i].begun = false;
}

void dcgm_watched_note_gpu(struct dcgm_watched_list *list, struct span uuid, unsigned number)
{
    for (size_t i = 0; i < list->count; i++) {
        struct dcgm_watched *gpu = &list->at[i];
        if (gpu->is_instance || !*gpu->uuid || !span_is(uuid, gpu->uuid))
            continue;
        gpu->is_listed = true;
        gpu->entity = (struct dcgm_entity){.number = number};
        snprintf(gpu->name, sizeof gpu->name, "%u", number);
    }
}

void dcgm_watched_note_instance(
    struct dcgm_watched_list *list, const char *card_uuid, const struct dcgm_instance *found)
{
    for (size_t i = 0; i < list->count; i++) {
        struct dcgm_watched *instance = &list->at[i];
        if (!instance->is_instance || instance->gpu_instance != found->gpu_instance ||
            strcmp(instance->uuid, card_uuid) != 0)
            continue;
        instance->is_listed = true;
        instance->entity = (struct dcgm_entity){.is_instance = true, .number = found->number};
        snprintf(instance->name, sizeof instance->name, "%u/%u", found->card, found->gpu_instance);
    }
}

void dcgm_watched_note_entity(
    struct dcgm_watched_list *list, struct span key, const struct dcgm_entity *entity)
{
    for (size_t i = 0; i < list->count; i++) {
        struct dcgm_watched *watched = &list->at[i];
        if (*watched->key && span_is(key, watched->key)) {
            watched->is_listed = true;
            watched->entity = *entity;
        }
    }
}

static void keep_row(struct dcgm_watched *watched, const struct dcgm_row *row, int64_t now_us)
{
    if (watched->begun) {
        watched->row = *row;
        watched->has_row = true;
        watched->row_us = now_us;
    }
    watched->begun = true;
}

void dcgm_watched_take_row(
    struct dcgm_watched_list *list, const struct dcgm_row *row, int64_t now_us)
{
    for (size_t i = 0; i < list->count; i++) {
        struct dcgm_watched *watched = &list->at[i];
        if (watched->is_listed && watched->entity.is_instance == row->entity.is_instance &&
            watched->entity.number == row->entity.number)
            keep_row(watched, row, now_us);
    }
}
