/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of the cluster. Nodes are found by name in a sorted list of their numbers. The GPUs of
 * a new node get the next numbers together, so that the GPUs of a node follow one another in the
 * core's view, which places the GPUs of one task by node (core/node_choice.c).
 */
#include "slurm/node_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/span_parts.h"

/* The position of the name in the sorted list; `ret_is_there`: it is in the list already. */
static size_t find_place(const struct node_table *table, struct span name, bool *ret_is_there)
{
    size_t low = 0, high = table->n_nodes;
    *ret_is_there = false;
    while (low < high && !*ret_is_there) {
        size_t middle = low + (high - low) / 2;
        const char *other = table->nodes[table->by_name[middle]]->name;
        int order = strncmp(other, name.at, name.size);
        order = order == 0 && other[name.size] ? 1 : order;
        *ret_is_there = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return *ret_is_there ? high : low;
}

int node_table_find(const struct node_table *table, struct span name)
{
    bool is_there;
    if (name.size == 0 || name.size >= NODE_NAME_MAX)
        return -1;
    size_t place = find_place(table, name, &is_there);
    return is_there ? table->by_name[place] : -1;
}

static struct cluster_node *add_node(struct node_table *table, struct span name)
{
    bool is_there;
    size_t n = table->n_nodes, place = find_place(table, name, &is_there);
    struct cluster_node *node = calloc(1, sizeof *node);
    if (!node || ARRAY_RESERVE(table->nodes, table->nodes_capacity, n + 1) < 0 ||
        ARRAY_RESERVE(table->by_name, table->by_name_capacity, n + 1) < 0) {
        free(node);
        return NULL;
    }
    span_copy(name, node->name, sizeof node->name);
    for (int i = 0; i < GRES_INDEX_MAX; i++)
        node->gpus[i] = -1;
    memmove(
        &table->by_name[place + 1], &table->by_name[place], (n - place) * sizeof *table->by_name);
    table->by_name[place] = (int)n;
    table->nodes[table->n_nodes++] = node;
    return node;
}

/* Adds or changes the GPU of one index. */
static int set_gpu(struct node_table *table, int number, int index, int64_t shards)
{
    struct cluster_node *node = table->nodes[number];
    struct cluster_gpu gpu = {.node = number, .index = index, .shards = shards};
    if (node->gpus[index] >= 0) {
        table->gpus[node->gpus[index]].shards = shards;
        return 0;
    }
    if (ARRAY_APPEND(table->gpus, table->n_gpus, table->gpus_capacity, gpu) < 0)
        return -ENOMEM;
    node->gpus[index] = (int)table->n_gpus - 1;
    node->n_gpus++;
    return 0;
}

static int set_text(char **text, const char *now)
{
    now = now ? now : "";
    if (*text && strcmp(*text, now) == 0)
        return 0;
    free(*text);
    *text = strdup(now);
    return *text ? 0 : -ENOMEM;
}

/* Slurm lists the nodes in the same order again. */
static int find_hinted(const struct node_table *table, struct span name, size_t place)
{
    if (place < table->n_nodes && span_is(name, table->nodes[place]->name))
        return (int)place;
    return node_table_find(table, name);
}

/* Takes over the GPUs of a node that is new or has other GPUs than before. Returns 0, -ENOENT: none
 * of its GPUs has shards, or -ENOMEM. `number`: -1: it is new; set to its number. */
static int update_gpus(
    struct node_table *table, struct span name, const struct slurm_node *from, int *number)
{
    int64_t shards[GRES_INDEX_MAX];
    if (gres_counts_by_index(span_of_optional(from->gres), "shard", shards) == 0)
        return -ENOENT;
    struct cluster_node *node = *number >= 0 ? table->nodes[*number] : add_node(table, name);
    if (!node || set_text(&node->gres, from->gres) < 0)
        return -ENOMEM;
    *number = *number >= 0 ? *number : (int)table->n_nodes - 1;
    int r = 0;
    for (int i = 0; i < GRES_INDEX_MAX && r == 0; i++)
        if (shards[i] > 0)
            r = set_gpu(table, *number, i, shards[i]);
    return r;
}

static int update_node(struct node_table *table, const struct slurm_node *from, size_t place)
{
    struct span name = span_of(from->name);
    if (name.size == 0 || name.size >= NODE_NAME_MAX)
        return 0;
    int number = find_hinted(table, name, place);
    const char *before = number >= 0 ? table->nodes[number]->gres : NULL;
    bool is_same = before && from->gres && strcmp(before, from->gres) == 0;
    int r = is_same ? 0 : update_gpus(table, name, from, &number);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    struct cluster_node *node = table->nodes[number];
    node->is_listed = true;
    node->is_down = from->is_down;
    node->is_drained = from->is_drained;
    node->cpus = from->cpus;
    node->memory_bytes = from->memory_bytes;
    return set_text(&node->features, from->features);
}

/* The GPUs that the core has: their count grows, or nodes come and go. */
static uint64_t listed_hash(const struct node_table *table)
{
    uint64_t hash = hash_bytes(HASH_START, &table->n_gpus, sizeof table->n_gpus);
    for (size_t i = 0; i < table->n_nodes; i++)
        hash = hash_bytes(hash, &table->nodes[i]->is_listed, sizeof table->nodes[i]->is_listed);
    return hash;
}

int node_table_update(
    struct node_table *table, const struct slurm_node *nodes, size_t n, bool *ret_changed)
{
    uint64_t before = listed_hash(table);
    int r = 0;
    for (size_t i = 0; i < table->n_nodes; i++)
        table->nodes[i]->is_listed = false;
    for (size_t i = 0; i < n && r == 0; i++)
        r = update_node(table, &nodes[i], i);
    *ret_changed = listed_hash(table) != before;
    return r;
}

int64_t node_table_shard_bytes(const struct node_table *table, int gpu)
{
    const struct cluster_gpu *of = &table->gpus[gpu];
    int64_t total = of->mem_total_bytes ? of->mem_total_bytes : table->mem_usual_bytes;
    int64_t bytes = of->shards > 0 ? total / of->shards : total;
    return bytes > 0 ? bytes : 1;
}

int node_table_list_gpus(const struct node_table *table, struct gpu_identity *ret_list)
{
    int n = 0;
    for (size_t i = 0; i < table->n_gpus; i++) {
        const struct cluster_gpu *gpu = &table->gpus[i];
        const struct cluster_node *node = table->nodes[gpu->node];
        struct gpu_identity *id = &ret_list[n];
        if (!node->is_listed)
            continue;
        *id = (struct gpu_identity){
            .is_place = true, .node = gpu->node, .index_on_node = gpu->index};
        id->mem_total_bytes = gpu->mem_total_bytes ? gpu->mem_total_bytes : table->mem_usual_bytes;
        snprintf(id->uuid, sizeof id->uuid, "%s/%d", node->name, gpu->index);
        snprintf(id->label, sizeof id->label, "%.11s:%d", node->name, gpu->index % 100);
        n++;
    }
    return n;
}

/* ---- jobs that colloc has not placed ---- */

void node_table_clear_others(struct node_table *table)
{
    for (size_t i = 0; i < table->n_nodes; i++) {
        table->nodes[i]->other_cpus = table->nodes[i]->other_gpus = 0;
        table->nodes[i]->other_memory_bytes = 0;
    }
    for (size_t i = 0; i < table->n_gpus; i++) {
        table->gpus[i].other_shards = 0;
        table->gpus[i].is_other_whole = false;
    }
}

/* The GPUs of a job that named none are unknown: they may be any of the node. */
static void add_other_to_gpus(
    struct node_table *table, struct cluster_node *node, const struct slurm_job *job)
{
    int64_t shards[GRES_INDEX_MAX], gpus[GRES_INDEX_MAX];
    int named = gres_counts_by_index(span_of_optional(job->gres), "shard", shards);
    named += gres_counts_by_index(span_of_optional(job->gres), "gpu", gpus);
    int64_t wanted = gres_count(span_of_optional(job->gres), "gpu") +
                     gres_count(span_of_optional(job->gres), "shard") +
                     gres_count(span_of_optional(job->other_gres), "gpu") +
                     gres_count(span_of_optional(job->other_gres), "shard");
    int64_t whole = named == 0 ? gres_count(span_of_optional(job->gres), "gpu") : 0;
    node->other_gpus += whole < GRES_INDEX_MAX ? (int)whole : GRES_INDEX_MAX;
    for (int i = 0; i < GRES_INDEX_MAX; i++) {
        struct cluster_gpu *gpu = node->gpus[i] >= 0 ? &table->gpus[node->gpus[i]] : NULL;
        if (gpu)
            gpu->is_other_whole |= gpus[i] > 0;
        if (gpu && (gpus[i] > 0 || (wanted > 0 && named == 0)))
            gpu->other_shards = gpu->shards;
        else if (gpu)
            gpu->other_shards += shards[i];
    }
}

int node_cpus_of_job(const struct slurm_job *job, const char *node)
{
    int n_nodes = job->nodes > 1 ? job->nodes : 1;
    struct span rest = span_of_optional(job->node_cpus ? job->node_list : NULL), name;
    for (int i = 0; i < n_nodes && node_list_next(&rest, &name); i++)
        if (span_is(name, node))
            return job->node_cpus[i];
    return (job->cpus + n_nodes - 1) / n_nodes;
}

void node_table_add_other(struct node_table *table, const struct slurm_job *job)
{
    struct span rest = span_of_optional(job->node_list), name;
    while (node_list_next(&rest, &name)) {
        int number = node_table_find(table, name);
        if (number < 0)
            continue;
        struct cluster_node *node = table->nodes[number];
        node->other_cpus += node_cpus_of_job(job, node->name);
        node->other_memory_bytes += job->memory_bytes > 0 ? job->memory_bytes : node->memory_bytes;
        add_other_to_gpus(table, node, job);
    }
}

bool node_list_next(struct span *list, struct span *ret_name)
{
    bool has_name = list->size > 0;
    if (has_name)
        *ret_name = span_take_until(list, ',');
    return has_name;
}

bool node_list_has(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || at[size] == '\0'))
            return true;
    return false;
}

void node_table_fini(struct node_table *table)
{
    for (size_t i = 0; i < table->n_nodes; i++) {
        free(table->nodes[i]->features);
        free(table->nodes[i]->gres);
        free(table->nodes[i]);
    }
    free(table->nodes);
    free(table->by_name);
    free(table->gpus);
    *table = (struct node_table){0};
}
