/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "2xA100-80GB,A100-40GB:3g.20gb+2g.10gb" is a list of groups. A group is a number of GPUs of a
 * kind, each whole or divided into MIG instances (sharing/mig_division.h). Each GPU becomes one
 * place, or one for each compute instance.
 *
 * "2x{4xA30,2xT4},{8xH100}" is a cluster of three servers: what stands in braces is a node, whose
 * GPUs follow one another. Without braces all GPUs are of one server.
 */
#include "sim/cluster.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "core/kind_match.h"
#include "sharing/mig_division.h"

/* A whole GPU. As the daemon counts it (daemon/gpus/gpu_list.c), the driver's part of its memory is
 * never free. */
static int add_place(struct cluster *cluster, int gpu)
{
    const struct gpu_kind *kind = cluster->gpus[gpu];
    size_t wanted = (size_t)cluster->n_places + 1;
    if (ARRAY_RESERVE(cluster->places, cluster->places_capacity, wanted) < 0 ||
        ARRAY_RESERVE(cluster->identities, cluster->identities_capacity, wanted) < 0)
        return -ENOMEM;
    int at = cluster->n_places++;
    struct gpu_identity *identity = &cluster->identities[at];
    cluster->places[at] = (struct place_shape){gpu, 1, 1, 1, at};
    *identity = (struct gpu_identity){.mem_total_bytes = kind->total_bytes - kind->reserved_bytes,
        .is_place = true,
        .power_limit_w = (int)kind->limit_w,
        .speed = gpu_kind_speed(kind),
        .node = cluster->node};
    snprintf(identity->name, sizeof identity->name, "%s", kind->name);
    snprintf(identity->uuid, sizeof identity->uuid, "GPU-%d-0", gpu);
    snprintf(identity->label, sizeof identity->label, "%d", gpu);
    return 0;
}

/* Makes the last place, a whole GPU, its compute instance `number`. */
static void divide_place(
    struct cluster *cluster, int gpu, const struct mig_division *division, int number)
{
    int at = cluster->n_places - 1;
    const struct gpu_kind *kind = cluster->gpus[gpu];
    const struct mig_compute *compute = &division->computes[number];
    const struct mig_profile *profile = &kind->profiles[division->profiles[compute->instance]];
    struct place_shape *place = &cluster->places[at];
    struct gpu_identity *identity = &cluster->identities[at];
    double part = mig_compute_part(profile, compute->slices);
    char name[MIG_COMPUTE_NAME_SIZE];
    snprintf(identity->name, sizeof identity->name, "%s %s", kind->name,
        mig_compute_name(profile, compute->slices, name));
    snprintf(identity->uuid, sizeof identity->uuid, "MIG-%d-%d", gpu, number);
    snprintf(identity->label, sizeof identity->label, "%d:%d", gpu, number);
    identity->mem_total_bytes = profile->total_bytes;
    identity->is_mig_instance = true;
    identity->power_limit_w = (int)mig_power_limit_w(
        kind->limit_w, compute->slices, kind->compute_slices);
    identity->speed = 0;
    place->sms = part * profile->sms / kind->sms;
    place->bandwidth = part * profile->memory_slices / kind->memory_slices;
    for (int i = number - 1; i >= 0; i--)
        if (division->computes[i].instance == compute->instance)
            place->memory_place = at - number + i;
    if (place->memory_place != at)
        cluster->identities[place->memory_place].memory_domain = identity->memory_domain =
            place->memory_place + 1;
}

static int add_instances(
    struct cluster *cluster, int gpu, const char *profiles, struct fault *fault)
{
    const struct gpu_kind *kind = cluster->gpus[gpu];
    struct mig_division division;
    int compute = 0, memory = 0, r = mig_division_parse(kind, span_of(profiles), fault, &division);
    if (r < 0)
        return r;
    if (division.n_computes == 0)
        return fault_set(fault, EINVAL, "%s: no MIG instances behind the colon", kind->name);
    for (int i = 0; i < division.n_instances; i++) {
        compute += kind->profiles[division.profiles[i]].compute_slices;
        memory += kind->profiles[division.profiles[i]].memory_slices;
    }
    if (compute > kind->compute_slices || memory > kind->memory_slices)
        return fault_set(fault, EINVAL, "these MIG instances are more than one %s", kind->name);
    for (int i = 0; i < division.n_computes && r == 0; i++) {
        r = add_place(cluster, gpu);
        if (r == 0)
            divide_place(cluster, gpu, &division, i);
    }
    return r;
}

static int add_gpu(
    struct cluster *cluster, const struct gpu_kind *kind, const char *profiles, struct fault *fault)
{
    if (ARRAY_RESERVE(cluster->gpus, cluster->gpus_capacity, (size_t)cluster->n_gpus + 1) < 0)
        return -ENOMEM;
    cluster->gpus[cluster->n_gpus++] = kind;
    return profiles ? add_instances(cluster, cluster->n_gpus - 1, profiles, fault)
                    : add_place(cluster, cluster->n_gpus - 1);
}

static int no_such_kind(const struct gpu_kinds *kinds, const char *name, struct fault *fault)
{
    char names[300] = "";
    if (*name && name[strspn(name, "0123456789")] == '\0')
        return fault_set(
            fault, EINVAL, "\"%.20s\" is a number of GPUs without a kind: write 4xA100-40GB", name);
    return fault_set(fault, EINVAL, "no GPU is called \"%.40s\"; there are: %s", name,
        gpu_kinds_names(kinds, names, sizeof names));
}

/* "4xA100-40GB" or "A100-40GB:3g.20gb+2g.10gb" */
static int add_group(
    const struct gpu_kinds *kinds, char *group, struct fault *fault, struct cluster *cluster)
{
    int64_t count = 1;
    char *times = strchr(group, 'x'), *name = group, *profiles;
    if (times && strspn(group, "0123456789") == (size_t)(times - group)) {
        *times = '\0';
        name = times + 1;
        if (parse_int64(group, 1, CLUSTER_GPUS_MAX - cluster->n_gpus, &count) < 0)
            return fault_set(
                fault, EINVAL, "\"%.20s\" GPUs: there must be 1 to %d", group, CLUSTER_GPUS_MAX);
    }
    if ((profiles = strchr(name, ':')))
        *profiles++ = '\0';
    const struct gpu_kind *kind = gpu_kinds_find(kinds, span_of(name));
    int r = kind ? 0 : no_such_kind(kinds, name, fault);
    for (int64_t i = 0; i < count && r == 0; i++)
        r = add_gpu(cluster, kind, profiles, fault);
    return r == -ENOMEM ? fault_set(fault, ENOMEM, "out of memory") : r;
}

static int add_groups(
    const struct gpu_kinds *kinds, char *groups, struct fault *fault, struct cluster *cluster)
{
    char *group;
    int r = 0;
    while (r == 0 && (group = strsep(&groups, ",")))
        r = add_group(kinds, group, fault, cluster);
    return r;
}

/* "4xA30,2xT4}", `count` times, each a node. */
static int add_nodes(const struct gpu_kinds *kinds, const char *groups, int64_t count,
    struct fault *fault, struct cluster *cluster)
{
    int outside = cluster->node, r = 0;
    for (int64_t i = 0; i < count && r == 0; i++) {
        char *copy = strdup(groups);
        cluster->node = ++cluster->n_nodes;
        r = copy ? add_groups(kinds, copy, fault, cluster)
                 : fault_set(fault, ENOMEM, "out of memory");
        free(copy);
    }
    cluster->node = outside;
    return r;
}

/* An item before a brace: "", or "12x" for as many nodes. */
static int read_node_count(const char *text, struct fault *fault, int64_t *ret_count)
{
    char number[24];
    size_t size = strlen(text);
    *ret_count = 1;
    if (size == 0)
        return 0;
    snprintf(number, sizeof number, "%.*s", (int)size - 1, text);
    if (text[size - 1] == 'x' && size < sizeof number &&
        parse_int64(number, 1, CLUSTER_GPUS_MAX, ret_count) == 0)
        return 0;
    return fault_set(
        fault, EINVAL, "\"%.20s{\": before a node stands its number: write 12x{4xA30}", text);
}

/* Takes the next item from the front: a node, or groups up to the next one. */
static int add_item(
    const struct gpu_kinds *kinds, char **rest, struct fault *fault, struct cluster *cluster)
{
    char *item = *rest, *open = item + strcspn(item, ",{");
    int64_t count;
    if (*open != '{') {
        *rest = *open ? open + 1 : NULL;
        *open = '\0';
        return add_group(kinds, item, fault, cluster);
    }
    char *end = strchr(open, '}');
    *open++ = '\0';
    if (!end || (end[1] && end[1] != ','))
        return fault_set(fault, EINVAL, "a node has no end: write 12x{4xA30,2xT4}");
    *rest = end[1] ? end + 2 : NULL;
    *end = '\0';
    int r = read_node_count(item, fault, &count);
    return r < 0 ? r : add_nodes(kinds, open, count, fault, cluster);
}

static int refuse_gpus_between_nodes(const struct cluster *cluster, struct fault *fault)
{
    for (int i = 0; i < cluster->n_places && cluster->n_nodes > 0; i++)
        if (cluster->identities[i].node == 0)
            return fault_set(fault, EINVAL, "%s stands between nodes: put it into one: {%s}",
                cluster->gpus[cluster->places[i].gpu]->name,
                cluster->gpus[cluster->places[i].gpu]->name);
    return 0;
}

/* As the core does (core/kind_speed.c): only where all speeds are known. */
static void set_speeds(struct cluster *cluster)
{
    for (int i = 0; i < cluster->n_places; i++)
        if (cluster->identities[i].speed == 0)
            return;
    for (int i = 0; i < cluster->n_places; i++)
        cluster->places[i].speed = cluster->identities[i].speed;
}

static void note_fastest(struct cluster *cluster)
{
    for (int i = 0; i < cluster->n_places; i++)
        cluster->speed_max = fmax(cluster->speed_max, cluster->places[i].speed);
}

double cluster_fastest(const struct cluster *cluster, const char *kinds)
{
    double fastest = 0;
    if (!kinds || !*kinds) /* most tasks run on any */
        return cluster->speed_max;
    for (int i = 0; i < cluster->n_places; i++)
        if (cluster->places[i].speed > fastest &&
            kind_match_gpu(kinds, cluster->identities[i].name, cluster->identities[i].uuid))
            fastest = cluster->places[i].speed;
    return fastest;
}

int cluster_parse(const struct gpu_kinds *kinds, const char *text, struct fault *fault,
    struct cluster *ret_cluster)
{
    *ret_cluster = (struct cluster){0};
    char *copy = strdup(text), *rest = copy;
    int r = copy ? 0 : fault_set(fault, ENOMEM, "out of memory");
    while (r == 0 && rest)
        r = add_item(kinds, &rest, fault, ret_cluster);
    if (r == 0)
        r = refuse_gpus_between_nodes(ret_cluster, fault);
    if (r == 0) {
        set_speeds(ret_cluster);
        note_fastest(ret_cluster);
    }
    free(copy);
    return r;
}

void cluster_fini(struct cluster *cluster)
{
    free(cluster->gpus);
    free(cluster->places);
    free(cluster->identities);
    *cluster = (struct cluster){0};
}
