/* SPDX-License-Identifier: Apache-2.0 */
/* Parses --track. What each place needs is in python/colloc/tracking, which sends the metrics
 * there. */
#include "taskfile/track_places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

#define TENSORBOARD "tensorboard:"

static const struct place_kind {
    const char *name, *run_variable; /* NULL: it needs none */
} kinds[] = {{"mlflow", "MLFLOW_RUN_ID"}, {"wandb", "WANDB_RUN_ID"}};

/* Takes the next place off the list. */
static struct span take_place(const char **list)
{
    struct span place = {*list, strcspn(*list, ",")};
    *list += place.size + (place.at[place.size] == ',');
    return place;
}

static const struct place_kind *find_kind(struct span place)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (span_is(place, kinds[i].name))
            return &kinds[i];
    return NULL;
}

static bool is_tensorboard(struct span place)
{
    size_t n = strlen(TENSORBOARD);
    return place.size > n && strncmp(place.at, TENSORBOARD, n) == 0;
}

int track_places_check(const char *places, struct fault *fault)
{
    const char *left = places;
    size_t size = strlen(places);
    if (size > 0 && places[size - 1] == ',')
        return fault_set(fault, EINVAL, "track=%.200s: ends in a comma", places);
    do {
        struct span place = take_place(&left);
        if (!find_kind(place) && !is_tensorboard(place))
            return fault_set(fault, EINVAL,
                "track=%.200s: '%.*s' is none of mlflow, wandb, tensorboard:FOLDER", places,
                (int)place.size, place.at);
    } while (*left);
    return 0;
}

int track_places_check_runs(const char *places, struct fault *fault)
{
    int r = track_places_check(places, fault);
    for (const char *left = places; r == 0 && *left;) {
        const struct place_kind *kind = find_kind(take_place(&left));
        const char *run = kind ? getenv(kind->run_variable) : "";
        if (kind && (!run || !*run))
            r = fault_set(fault, EINVAL, "%s: the environment names no run: set %s", kind->name,
                kind->run_variable);
    }
    return r;
}
