/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The combinations of a sweep: each option has a list of values; combination i is i written in the
 * mixed radix of the lists' lengths, so that the last list (seeds) changes fastest.
 *
 *     --policy=magm,lug --seed=1,2,3
 *
 *     0  magm 1     1  magm 2     2  magm 3     3  lug 1     4  lug 2     5  lug 3
 *
 * So nothing is stored but the lists, and a sweep that was interrupted knows which rows are left.
 */
#include "cli/sweep_grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/simulating.h"
#include "sim/arrivals.h"
#include "taskfile/option.h"

enum { POINTS_MAX = 1000000 }; /* chosen: more is a mistake */

const char sweep_key_columns[] = "trace,tasks,gpus,policy,estimator,known,sharing,backfill,"
#define SWEPT_OPTION(id, option, column, ...) column ","
#include "core/settings.def"
                                 "resample,seed,";

const enum core_setting_id swept_settings[SWEPT_SETTINGS] = {
#define SWEPT_OPTION(id, ...) CORE_SETTING_##id,
#include "core/settings.def"
};

void axes_fini(struct axes *axes)
{
    names_fini(&axes->policies);
    names_fini(&axes->estimators);
    names_fini(&axes->knowns);
    names_fini(&axes->sharings);
    names_fini(&axes->backfills);
    for (int i = 0; i < SWEPT_SETTINGS; i++)
        values_fini(&axes->settings[i]);
    values_fini(&axes->resamples);
    values_fini(&axes->seeds);
}

/* ---- the input files ---- */

/* One for each estimator, since an estimate is part of a task's entry, and a last one with declared
 * memory. */
static int read_catalogues(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct fault *fault)
{
    int r = 0;
    grid->catalogues = calloc((size_t)axes->estimators.n + 1, sizeof *grid->catalogues);
    if (!grid->catalogues)
        return fault_set(fault, ENOMEM, "out of memory");
    while (grid->n_catalogues <= axes->estimators.n && r == 0) {
        int i = grid->n_catalogues++;
        struct catalogue_settings settings = {
            .estimator = i < axes->estimators.n ? axes->estimators.name[i] : "declared",
            .smact = base->smact};
        r = (i ? catalogue_read : simulating_catalogue)(
            base->tasks, &settings, fault, &grid->catalogues[i]);
    }
    return r;
}

static int read_world(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct fault *fault)
{
    grid->kinds = calloc(1, sizeof *grid->kinds);
    if (!grid->kinds)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = simulating_kinds(base->kinds, fault, grid->kinds);
    if (r == 0)
        r = cluster_parse(grid->kinds, base->gpus, fault, &grid->cluster);
    return r < 0 ? r : read_catalogues(grid, axes, base, fault);
}

/* Reads the trace once, so that a mistake in it is one error, not one in each run. */
static int check_trace(const struct sweep_grid *grid, const char *trace, struct fault *fault)
{
    struct arrivals arrivals;
    struct arrival arrival;
    int r = arrivals_open(&arrivals, trace, &grid->catalogues[0], fault);
    for (int more = 1; r == 0 && more > 0;) {
        more = arrivals_next(&arrivals, fault, &arrival);
        r = more < 0 ? more : 0;
    }
    arrivals_close(&arrivals);
    return r;
}

/* ---- points ---- */

static void print_field(FILE *out, const char *text)
{
    bool quoted = strpbrk(text, ",\"\n");
    if (quoted)
        fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputs(quoted ? "\"," : ",", out);
}

struct point {
    struct sim_policy policy;
    const char *policy_name, *estimator, *known;
    const struct catalogue *catalogue;
    enum sharing sharing;
    bool backfill;
    double settings[SWEPT_SETTINGS], resample, seed;
};

/* The first columns of a row: by them --resume knows that a file belongs to this sweep. */
static char *key_of(const struct sweep_base *base, const struct point *point)
{
    char *key = NULL;
    size_t size;
    FILE *out = open_memstream(&key, &size);
    if (!out)
        return NULL;
    print_field(out, base->trace);
    print_field(out, base->tasks ? base->tasks : "");
    print_field(out, base->gpus);
    print_field(out, point->policy_name);
    print_field(out, point->estimator);
    fprintf(out, "%s,%s,%s,", point->known, sharing_name(point->sharing),
        point->backfill ? "yes" : "no");
    for (int i = 0; i < SWEPT_SETTINGS; i++)
        fprintf(out, "%.12g,", point->settings[i]);
    fprintf(out, "%.0f,%.0f,", point->resample, point->seed);
    return fclose(out) == 0 ? key : NULL;
}

/* One combination. Remarks on the trace are printed once, by the first run. */
static int add_point(struct sweep_grid *grid, const struct sweep_base *base,
    const struct point *point, struct fault *fault)
{
    struct core_settings settings = core_settings_default();
    if (ARRAY_RESERVE(grid->simulations, grid->simulation_capacity, grid->n + 1) < 0 ||
        ARRAY_RESERVE(grid->points, grid->point_capacity, grid->n + 1) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    settings.policy = point->policy.policy;
    settings.backfill = point->backfill;
    for (int i = 0; i < SWEPT_SETTINGS; i++)
        core_setting_put_number(
            &core_setting_table[swept_settings[i]], point->settings[i], &settings);
    grid->simulations[grid->n] = (struct simulation){.trace = base->trace,
        .catalogue = point->catalogue,
        .cluster = &grid->cluster,
        .laws = &grid->kinds->constants,
        .settings = settings,
        .sharing = point->sharing,
        .seed = (uint64_t)point->seed,
        .resample = (uint64_t)point->resample,
        .remarks = grid->n == 0 ? stderr : NULL};
    grid->points[grid->n].key = key_of(base, point);
    if (!grid->points[grid->n].key)
        return fault_set(fault, ENOMEM, "out of memory");
    return simulating_known(point->known, fault, &grid->simulations[grid->n++]);
}

/* Adds all seeds for one policy, estimator and sharing mode, backfill or not, and limits. */
static int add_seeds(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct point *point, struct fault *fault)
{
    int r = 0;
    for (int a = 0; a < axes->resamples.n; a++)
        for (int b = 0; b < axes->seeds.n && r == 0; b++) {
            point->resample = axes->resamples.value[a];
            point->seed = axes->seeds.value[b];
            r = add_point(grid, base, point, fault);
        }
    return r;
}

/* Adds all values of the settings from number `first` on: each list is nested in the one before. */
static int add_settings(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, int first, struct point *point, struct fault *fault)
{
    int r = 0;
    if (first == SWEPT_SETTINGS)
        return add_seeds(grid, axes, base, point, fault);
    for (int i = 0; i < axes->settings[first].n && r == 0; i++) {
        point->settings[first] = axes->settings[first].value[i];
        r = add_settings(grid, axes, base, first + 1, point, fault);
    }
    return r;
}

/* Each value has the form of `colloc simulate --backfill`. */
static int add_backfills(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct point *point, struct fault *fault)
{
    static const struct option_spec flag = {.name = "backfill", .kind = OPTION_FLAG};
    int r = 0;
    for (int i = 0; i < axes->backfills.n && r == 0; i++) {
        struct option_value value = {0};
        r = option_set_text(&flag, "--backfill", axes->backfills.name[i], &value, fault);
        point->backfill = value.number;
        if (r == 0)
            r = add_settings(grid, axes, base, 0, point, fault);
    }
    return r;
}

/* The loops over the lists are nested from the outside in: policies, estimators, what is
 * known, sharing, backfill, limits, resamples, seeds. */
static int add_sharings(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct point *point, struct fault *fault)
{
    int r = 0;
    for (int a = 0; a < axes->knowns.n; a++)
        for (int b = 0; b < axes->sharings.n && r == 0; b++) {
            point->known = axes->knowns.name[a];
            if (sharing_parse(axes->sharings.name[b], &point->sharing) < 0)
                return fault_set(fault, EINVAL,
                    "--sharing: invalid value \"%.60s\": give streams, mps or auto",
                    axes->sharings.name[b]);
            r = add_backfills(grid, axes, base, point, fault);
        }
    return r;
}

static int add_policy(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct point *point, struct fault *fault)
{
    int r = simulating_policy(point->policy_name, fault, &point->policy);
    bool oracle = r == 0 && point->policy.knows_memory;
    for (int i = 0; i < (oracle ? 1 : axes->estimators.n) && r == 0; i++) {
        point->catalogue = &grid->catalogues[oracle ? axes->estimators.n : i];
        point->estimator = oracle ? "declared" : axes->estimators.name[i];
        r = add_sharings(grid, axes, base, point, fault);
    }
    return r;
}

static double count_combinations(const struct axes *axes)
{
    const int sizes[] = {axes->policies.n, axes->estimators.n, axes->knowns.n, axes->sharings.n,
        axes->backfills.n, axes->resamples.n, axes->seeds.n};
    double product = 1;
    for (int i = 0; i < SWEPT_SETTINGS; i++)
        product *= axes->settings[i].n;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        product *= sizes[i];
    return product;
}

/* Trace and files are read once and checked before the first run, not by each of thousands. */
int sweep_grid_build(struct sweep_grid *grid, const struct axes *axes,
    const struct sweep_base *base, struct fault *fault)
{
    *grid = (struct sweep_grid){0};
    if (count_combinations(axes) > POINTS_MAX)
        return fault_set(fault, E2BIG,
            "sweep: %.0f combinations: at most %d are possible; give fewer values",
            count_combinations(axes), POINTS_MAX);
    int r = read_world(grid, axes, base, fault);
    if (r == 0)
        r = check_trace(grid, base->trace, fault);
    for (int i = 0; i < axes->policies.n && r == 0; i++) {
        struct point point = {.policy_name = axes->policies.name[i]};
        r = add_policy(grid, axes, base, &point, fault);
    }
    return r;
}

void sweep_grid_fini(struct sweep_grid *grid)
{
    for (int64_t i = 0; i < grid->n; i++)
        free(grid->points[i].key);
    free(grid->points);
    free(grid->simulations);
    for (int i = 0; i < grid->n_catalogues; i++)
        catalogue_fini(&grid->catalogues[i]);
    free(grid->catalogues);
    cluster_fini(&grid->cluster);
    free(grid->kinds);
}
