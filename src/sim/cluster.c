/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "sim/built_in_gpu_kinds.h"

enum { WORDS_MAX = 12, WATTS_MAX = 100000, SLICES = 8 };

/* ---- reading kinds ---- */

struct words {
    char text[256];
    char *word[WORDS_MAX];
    int n;
};

static int split(struct span line, struct words *words, struct fault *fault)
{
    line = span_trim(line);
    words->n = 0;
    if (line.size == 0 || line.at[0] == '#')
        return 0;
    if (!span_copy(line, words->text, sizeof words->text))
        return fault_set(fault, EINVAL, "the line is too long");
    char *rest = words->text, *word;
    while ((word = strsep(&rest, " \t")))
        if (*word && words->n < WORDS_MAX)
            words->word[words->n++] = word;
    return 0;
}

static int bad(struct fault *fault, const char *what, const char *word)
{
    return fault_set(fault, EINVAL, "%s: \"%.40s\" is not possible", what, word);
}

static int read_mib(const char *what, const char *word, struct fault *fault, int64_t *ret_bytes)
{
    int64_t mib;
    if (parse_int64(word, 0, INT64_C(1) << 30, &mib) < 0)
        return bad(fault, what, word);
    *ret_bytes = mib * MIB;
    return 0;
}

static int read_constant(struct gpu_laws *laws, const struct words *words, struct fault *fault)
{
    if (words->n != 3)
        return fault_set(fault, EINVAL, "constant NAME VALUE");
    const struct {
        const char *name;
        double max, *value;
    } numbers[] = {{"startup_s", 3600, &laws->startup_s}, {"ramp_s", 3600, &laws->ramp_s},
        {"spread", 1, &laws->spread}, {"linear_memory", 1, &laws->linear_memory},
        {words->word[1], 1, sharing_law(&laws->sharing, words->word[1])}};
    if (strcmp(words->word[1], "context_mib") == 0)
        return read_mib(words->word[1], words->word[2], fault, &laws->context_bytes);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value && strcmp(words->word[1], numbers[i].name) == 0)
            return parse_double(words->word[2], 0, numbers[i].max, numbers[i].value) < 0
                       ? bad(fault, words->word[1], words->word[2])
                       : 0;
    return fault_set(fault, EINVAL, "there is no constant \"%.40s\"", words->word[1]);
}

static struct gpu_kind *find_kind(const struct gpu_kinds *kinds, const char *name)
{
    for (int i = 0; i < kinds->n; i++)
        if (strcmp(kinds->kinds[i].name, name) == 0)
            return (struct gpu_kind *)&kinds->kinds[i];
    return NULL;
}

static int read_kind_words(const struct words *words, struct fault *fault, struct gpu_kind *kind)
{
    double *watts[] = {&kind->limit_w, &kind->idle_w, &kind->awake_w, &kind->work_w};
    int64_t sms;
    if (words->n != 9 || strlen(words->word[1]) >= sizeof kind->name ||
        strpbrk(words->word[1], ",:+"))
        return fault_set(
            fault, EINVAL, "kind NAME TOTAL_MIB RESERVED_MIB SMS LIMIT_W IDLE_W AWAKE_W WORK_W");
    strcpy(kind->name, words->word[1]);
    int r = read_mib("total_mib", words->word[2], fault, &kind->total_bytes);
    if (r == 0)
        r = read_mib("reserved_mib", words->word[3], fault, &kind->reserved_bytes);
    if (r < 0)
        return r;
    if (kind->reserved_bytes >= kind->total_bytes)
        return bad(fault, "reserved_mib", words->word[3]);
    if (parse_int64(words->word[4], 1, 10000, &sms) < 0)
        return bad(fault, "sms", words->word[4]);
    kind->sms = (int)sms;
    for (int i = 0; i < 4; i++)
        if (parse_double(words->word[5 + i], 0, WATTS_MAX, watts[i]) < 0)
            return bad(fault, "watts", words->word[5 + i]);
    if (kind->awake_w < kind->idle_w || kind->awake_w > kind->limit_w)
        return fault_set(fault, EINVAL, "awake_w must be between idle_w and limit_w");
    return 0;
}

static int read_kind(
    struct gpu_kinds *kinds, const struct words *words, struct fault *fault, struct gpu_kind **ret)
{
    struct gpu_kind kind = {0}, *known;
    int r = read_kind_words(words, fault, &kind);
    if (r < 0)
        return r;
    known = find_kind(kinds, kind.name);
    if (!known && kinds->n == KINDS_MAX)
        return fault_set(fault, EINVAL, "more than %d kinds", KINDS_MAX);
    *ret = known ? known : &kinds->kinds[kinds->n++];
    **ret = kind;
    return 0;
}

static int read_profile(struct gpu_kind *kind, const struct words *words, struct fault *fault)
{
    struct mig_profile profile = {0};
    int64_t sms, slices;
    if (!kind || kind->n_profiles == PROFILES_MAX)
        return fault_set(
            fault, EINVAL, "a profile stands behind its kind, at most %d", PROFILES_MAX);
    if (words->n != 5 || strlen(words->word[1]) >= sizeof profile.name)
        return fault_set(fault, EINVAL, "mig NAME TOTAL_MIB SMS MEMORY_SLICES");
    strcpy(profile.name, words->word[1]);
    int r = read_mib("total_mib", words->word[2], fault, &profile.total_bytes);
    if (r < 0)
        return r;
    if (parse_int64(words->word[3], 1, kind->sms, &sms) < 0)
        return bad(fault, "sms", words->word[3]);
    if (parse_int64(words->word[4], 1, SLICES, &slices) < 0)
        return bad(fault, "memory slices", words->word[4]);
    profile.sms = (int)sms;
    profile.memory_slices = (int)slices;
    kind->profiles[kind->n_profiles++] = profile;
    return 0;
}

int gpu_kinds_read(struct gpu_kinds *kinds, struct span text, const char *name, struct fault *fault)
{
    struct gpu_kind *kind = NULL;
    struct span line;
    for (int number = 1; span_next_line(&text, &line); number++) {
        struct words words;
        int r = split(line, &words, fault);
        if (r == 0 && words.n == 0)
            continue;
        if (r == 0 && strcmp(words.word[0], "constant") == 0)
            r = read_constant(&kinds->laws, &words, fault);
        else if (r == 0 && strcmp(words.word[0], "kind") == 0)
            r = read_kind(kinds, &words, fault, &kind);
        else if (r == 0 && strcmp(words.word[0], "mig") == 0)
            r = read_profile(kind, &words, fault);
        else if (r == 0)
            r = fault_set(fault, EINVAL,
                "a line begins with constant, kind or mig, not with \"%.40s\"", words.word[0]);
        if (r < 0)
            return fault_prefix(fault, r, "%s:%d", name, number);
    }
    return 0;
}

int gpu_kinds_init(struct gpu_kinds *kinds, struct fault *fault)
{
    *kinds = (struct gpu_kinds){.laws.sharing = sharing_laws_measured};
    return gpu_kinds_read(kinds, (struct span){built_in_gpu_kinds, sizeof built_in_gpu_kinds - 1},
        "data/gpu-kinds.txt", fault);
}

/* ---- reading machines ---- */

static int grow_places(struct cluster *cluster)
{
    int room = cluster->place_room ? 2 * cluster->place_room : 16;
    struct place_shape *places = reallocarray(cluster->places, (size_t)room, sizeof *places);
    if (places)
        cluster->places = places;
    struct gpu_identity *identities = reallocarray(
        cluster->identities, (size_t)room, sizeof *identities);
    if (identities)
        cluster->identities = identities;
    if (!places || !identities)
        return -ENOMEM;
    cluster->place_room = room;
    return 0;
}

static int add_place(
    struct cluster *cluster, int gpu, const struct mig_profile *profile, int instance)
{
    const struct gpu_kind *kind = cluster->gpus[gpu];
    if (cluster->n_places == cluster->place_room && grow_places(cluster) < 0)
        return -ENOMEM;
    struct place_shape *place = &cluster->places[cluster->n_places];
    struct gpu_identity *identity = &cluster->identities[cluster->n_places++];
    *place = (struct place_shape){gpu, 1, 1, kind->total_bytes - kind->reserved_bytes};
    *identity = (struct gpu_identity){.mem_total_bytes = kind->total_bytes, .is_place = true};
    snprintf(identity->name, sizeof identity->name, "%s%s%s", kind->name, profile ? " " : "",
        profile ? profile->name : "");
    snprintf(
        identity->uuid, sizeof identity->uuid, "%s-%d-%d", profile ? "MIG" : "GPU", gpu, instance);
    snprintf(identity->label, sizeof identity->label, "%d", gpu);
    if (profile) {
        snprintf(identity->label, sizeof identity->label, "%d:%d", gpu, instance);
        identity->mem_total_bytes = place->capacity_bytes = profile->total_bytes;
        identity->is_mig_instance = true;
        place->sms = (double)profile->sms / kind->sms;
        place->bandwidth = (double)profile->memory_slices / SLICES;
    }
    return 0;
}

static const struct mig_profile *find_profile(const struct gpu_kind *kind, const char *name)
{
    for (int i = 0; i < kind->n_profiles; i++)
        if (strcmp(kind->profiles[i].name, name) == 0)
            return &kind->profiles[i];
    return NULL;
}

static int add_instances(struct cluster *cluster, int gpu, char *profiles, struct fault *fault)
{
    const struct gpu_kind *kind = cluster->gpus[gpu];
    int slices = 0, r = 0;
    char *name;
    for (int i = 0; r == 0 && (name = strsep(&profiles, "+")); i++) {
        const struct mig_profile *profile = find_profile(kind, name);
        if (!profile)
            return fault_set(fault, EINVAL, "%s has no MIG profile \"%.20s\"", kind->name, name);
        if ((slices += profile->memory_slices) > SLICES)
            return fault_set(fault, EINVAL, "these MIG instances are more than one %s", kind->name);
        r = add_place(cluster, gpu, profile, i);
    }
    return r;
}

static int add_gpu(
    struct cluster *cluster, const struct gpu_kind *kind, const char *profiles, struct fault *fault)
{
    char copy[128];
    bool is_full = (cluster->n_gpus & (cluster->n_gpus - 1)) == 0; /* room doubles: 1, 2, 4 ... */
    if (is_full) {
        size_t room = cluster->n_gpus ? 2 * (size_t)cluster->n_gpus : 1;
        const struct gpu_kind **gpus = reallocarray(cluster->gpus, room, sizeof *gpus);
        if (!gpus)
            return -ENOMEM;
        cluster->gpus = gpus;
    }
    cluster->gpus[cluster->n_gpus++] = kind;
    if (!profiles)
        return add_place(cluster, cluster->n_gpus - 1, NULL, 0);
    snprintf(copy, sizeof copy, "%s", profiles);
    return add_instances(cluster, cluster->n_gpus - 1, copy, fault);
}

static int no_such_kind(const struct gpu_kinds *kinds, const char *name, struct fault *fault)
{
    char names[300] = "";
    if (*name && name[strspn(name, "0123456789")] == '\0')
        return fault_set(fault, EINVAL,
            "\"%.20s\" says how many GPUs, or none, but not which: as in 4xA100-40GB", name);
    for (int i = 0, n = 0; i < kinds->n && n < (int)sizeof names; i++)
        n += snprintf(
            names + n, sizeof names - (size_t)n, "%s%s", i ? ", " : "", kinds->kinds[i].name);
    return fault_set(fault, EINVAL, "no GPU is called \"%.40s\"; there are: %s", name, names);
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
    const struct gpu_kind *kind = find_kind(kinds, name);
    int r = kind ? 0 : no_such_kind(kinds, name, fault);
    for (int64_t i = 0; i < count && r == 0; i++)
        r = add_gpu(cluster, kind, profiles, fault);
    return r == -ENOMEM ? fault_set(fault, ENOMEM, "out of memory") : r;
}

int cluster_parse(const struct gpu_kinds *kinds, const char *text, struct fault *fault,
    struct cluster *ret_cluster)
{
    *ret_cluster = (struct cluster){0};
    char *copy = strdup(text), *rest = copy, *group;
    int r = copy ? 0 : fault_set(fault, ENOMEM, "out of memory");
    while (r == 0 && (group = strsep(&rest, ",")))
        r = add_group(kinds, group, fault, ret_cluster);
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
