/* SPDX-License-Identifier: Apache-2.0 */
/* A plain table: a program has few graphs with collectives. */
#include "preload/graph_collectives.h"

static struct graph *find_entry(struct graph_collectives *table, enum graph_kind kind, uint64_t key)
{
    for (size_t i = 0; i < GRAPHS_MAX; i++)
        if (table->graphs[i].kind == kind && (kind == GRAPH_NONE || table->graphs[i].key == key))
            return &table->graphs[i];
    return NULL;
}

const struct graph *graph_find(
    const struct graph_collectives *table, enum graph_kind kind, uint64_t key)
{
    for (size_t i = 0; i < GRAPHS_MAX; i++)
        if (table->graphs[i].kind == kind && table->graphs[i].key == key)
            return &table->graphs[i];
    return NULL;
}

static struct graph *find_or_make(
    struct graph_collectives *table, enum graph_kind kind, uint64_t key)
{
    struct graph *graph = find_entry(table, kind, key);
    if (graph)
        return graph;
    graph = find_entry(table, GRAPH_NONE, 0);
    if (graph)
        *graph = (struct graph){.kind = kind, .key = key};
    return graph;
}

static bool add_launch(struct graph *graph, const struct graph_launch *launch)
{
    for (size_t i = 0; i < graph->n; i++) {
        struct graph_launch *there = &graph->launches[i];
        if (there->communicator != launch->communicator || there->ends != launch->ends)
            continue;
        there->count += launch->count;
        return true;
    }
    if (graph->n == GRAPH_LAUNCHES_MAX)
        return false;
    graph->launches[graph->n++] = *launch;
    return true;
}

bool graph_add(struct graph_collectives *table, enum graph_kind kind, uint64_t key,
    const struct graph_launch *launch)
{
    struct graph *graph = find_or_make(table, kind, key);
    return graph && add_launch(graph, launch);
}

bool graph_copy(struct graph_collectives *table, enum graph_kind from_kind, uint64_t from,
    enum graph_kind to_kind, uint64_t to)
{
    const struct graph *source = graph_find(table, from_kind, from);
    struct graph *graph = source ? find_or_make(table, to_kind, to) : NULL;
    bool is_whole = !source || graph;
    for (size_t i = 0; graph && i < source->n; i++)
        is_whole &= add_launch(graph, &source->launches[i]);
    return is_whole;
}

void graph_forget(struct graph_collectives *table, enum graph_kind kind, uint64_t key)
{
    struct graph *graph = find_entry(table, kind, key);
    if (graph)
        graph->kind = GRAPH_NONE;
}

void graph_forget_all(struct graph_collectives *table, enum graph_kind kind)
{
    for (size_t i = 0; i < GRAPHS_MAX; i++)
        if (table->graphs[i].kind == kind)
            table->graphs[i].kind = GRAPH_NONE;
}
