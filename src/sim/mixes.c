/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of measured mixes. Names are sorted within a row and the rows by their names, so that a
 * mix is found by a binary search whatever the order of its trainings is:
 *
 *     gpu,driver,sharing,trainings,speeds,smact,power_w,crashed
 *     H200,580.159.04,mps,resnet50 + gpt2,0.81 + 0.64,0.93,655,
 *
 * is "gpt2 + resnet50" with the speeds 0.64 and 0.81. Equal trainings get the mean of their speeds:
 * nothing says which of them a simulated one is.
 */
#include "sim/mixes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/columns.h"
#include "base/units.h"

#define SEPARATOR " + "

/* A training can be a little faster than alone by chance; more is a mistake (chosen). */
#define SPEED_MAX 1.5

/* Above any GPU's limit (chosen). */
#define POWER_MAX_W 10000.0

enum column { GPU, DRIVER, SHARING, TRAININGS, SPEEDS, SMACT, POWER, CRASHED, N_COLUMNS };

static const char *const column_names[N_COLUMNS] = {
    "gpu", "driver", "sharing", "trainings", "speeds", "smact", "power_w", "crashed"};

struct reader {
    struct columns table;
    int at[N_COLUMNS];
};

/* A training of the row. */
struct part {
    char *name;
    double speed;
};

/* ---- one row ---- */

static int compare_parts(const void *one, const void *other)
{
    return strcmp(((const struct part *)one)->name, ((const struct part *)other)->name);
}

/* Splits "a + b" in place. Returns the number of parts, or -E2BIG. */
static int split_list(char *text, char **ret_parts)
{
    int n = 0;
    for (char *next = text; next; n++) {
        if (n == MIX_TRAININGS_MAX)
            return -E2BIG;
        ret_parts[n] = next;
        next = strstr(next, SEPARATOR);
        if (next) {
            *next = '\0';
            next += strlen(SEPARATOR);
        }
    }
    return n;
}

static int read_speeds(
    const struct reader *reader, char *text, int n, struct part *parts, struct fault *fault)
{
    char *speeds[MIX_TRAININGS_MAX];
    int n_speeds = split_list(text, speeds);
    if (n_speeds != n)
        return columns_wrong(
            &reader->table, fault, "it has %d trainings, but not as many speeds", n);
    for (int i = 0; i < n; i++)
        if (parse_double(speeds[i], 0, SPEED_MAX, &parts[i].speed) < 0 || parts[i].speed <= 0)
            return columns_wrong(&reader->table, fault,
                "invalid speed \"%.20s\": give one above 0 (1: as alone) and up to %g", speeds[i],
                SPEED_MAX);
    return 0;
}

static void average_equal(struct part *parts, int n)
{
    for (int first = 0, end; first < n; first = end) {
        double sum = 0;
        for (end = first; end < n && strcmp(parts[end].name, parts[first].name) == 0; end++)
            sum += parts[end].speed;
        for (int i = first; i < end; i++)
            parts[i].speed = sum / (end - first);
    }
}

static int keep_parts(struct mix *mix, const struct part *parts, int n, bool crashed)
{
    const char *names[MIX_TRAININGS_MAX];
    char joined[MIX_NAMES_SIZE];
    for (int i = 0; i < n; i++)
        names[i] = parts[i].name;
    if (!mix_join(names, n, joined))
        return -E2BIG;
    mix->n = n;
    mix->trainings = strdup(joined);
    mix->speeds = crashed ? NULL : calloc((size_t)n, sizeof *mix->speeds);
    if (!mix->trainings || (!mix->speeds && !crashed))
        return -ENOMEM;
    for (int i = 0; i < n && !crashed; i++)
        mix->speeds[i] = parts[i].speed;
    return 0;
}

/* The trainings and their speeds, of which `names` and `speeds` are copies. */
static int read_parts(
    const struct reader *reader, char *names, char *speeds, struct mix *mix, struct fault *fault)
{
    struct part parts[MIX_TRAININGS_MAX];
    char *split_names[MIX_TRAININGS_MAX];
    int n = split_list(names, split_names);
    if (n < 0)
        return columns_wrong(
            &reader->table, fault, "more than %d trainings on a GPU", MIX_TRAININGS_MAX);
    for (int i = 0; i < n; i++) {
        parts[i] = (struct part){split_names[i], 0};
        if (!*split_names[i])
            return columns_wrong(&reader->table, fault, "a training has no name");
    }
    int r = speeds ? read_speeds(reader, speeds, n, parts, fault) : 0;
    if (r < 0)
        return r;
    qsort(parts, (size_t)n, sizeof *parts, compare_parts);
    average_equal(parts, n);
    r = keep_parts(mix, parts, n, !speeds);
    if (r == -E2BIG)
        return columns_wrong(&reader->table, fault, "the names are too long");
    return r < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}

static const char *get_field(const struct reader *reader, enum column column)
{
    return columns_get(&reader->table, reader->at[column]);
}

/* All rows are of one GPU and one driver: speeds of another do not compose. */
static int check_same(
    const struct reader *reader, enum column column, char **kept, struct fault *fault)
{
    const char *here = get_field(reader, column);
    if (here && !*kept) {
        *kept = strdup(here);
        return *kept ? 0 : fault_set(fault, ENOMEM, "out of memory");
    }
    if (here && strcmp(here, *kept) != 0)
        return columns_wrong(&reader->table, fault,
            "%s %.40s, but mixes before it are of %.40s: use one file for each",
            column_names[column], here, *kept);
    return 0;
}

static int read_figures(const struct reader *reader, struct mix *mix, struct fault *fault)
{
    double crashed = 0;
    const char *sharing = get_field(reader, SHARING);
    mix->mps = sharing && strcmp(sharing, "mps") == 0;
    if (!sharing || (!mix->mps && strcmp(sharing, "streams") != 0))
        return columns_wrong(&reader->table, fault, "sharing: give streams or mps");
    mix->smact = mix->power_w = NAN;
    int r = columns_number(&reader->table, reader->at[SMACT], 0, 1, fault, &mix->smact);
    if (r >= 0)
        r = columns_number(&reader->table, reader->at[POWER], 0, POWER_MAX_W, fault, &mix->power_w);
    if (r >= 0)
        r = columns_number(&reader->table, reader->at[CRASHED], 0, 1, fault, &crashed);
    if (r < 0)
        return r;
    if ((crashed > 0) == !!get_field(reader, SPEEDS))
        return columns_wrong(&reader->table, fault,
            "give speeds, or crashed 1: a mix has either (a list of missing mixes has to be "
            "measured first)");
    return 0;
}

static int read_row(const struct reader *reader, struct mixes *mixes, struct fault *fault)
{
    if (!get_field(reader, GPU) || !get_field(reader, TRAININGS))
        return columns_wrong(&reader->table, fault, "the GPU or the trainings are missing");
    int r = check_same(reader, GPU, &mixes->gpu, fault);
    if (r == 0)
        r = check_same(reader, DRIVER, &mixes->driver, fault);
    if (r < 0)
        return r;
    if (ARRAY_RESERVE(mixes->list, mixes->capacity, mixes->n + 1) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    struct mix *mix = &mixes->list[mixes->n++];
    *mix = (struct mix){0};
    r = read_figures(reader, mix, fault);
    if (r < 0)
        return r;
    const char *speeds = get_field(reader, SPEEDS);
    CLEANUP_FREE char *names = strdup(get_field(reader, TRAININGS));
    CLEANUP_FREE char *speeds_copy = speeds ? strdup(speeds) : NULL;
    if (!names || (speeds && !speeds_copy))
        return fault_set(fault, ENOMEM, "out of memory");
    return read_parts(reader, names, speeds_copy, mix, fault);
}

/* ---- the file ---- */

static int compare_mixes(const void *a, const void *b)
{
    const struct mix *one = a, *other = b;
    int compared = strcmp(one->trainings, other->trainings);
    return compared ? compared : one->mps - other->mps;
}

static int check_once(const struct mixes *mixes, const char *path, struct fault *fault)
{
    for (size_t i = 1; i < mixes->n; i++)
        if (compare_mixes(&mixes->list[i - 1], &mixes->list[i]) == 0)
            return fault_set(fault, EINVAL, "%s: the mix %.200s (%s) stands there twice", path,
                mixes->list[i].trainings, mixes->list[i].mps ? "mps" : "streams");
    return 0;
}

static int find_columns(struct reader *reader, struct fault *fault)
{
    for (int i = 0; i < N_COLUMNS; i++) {
        reader->at[i] = columns_find(&reader->table, (const char *const[]){column_names[i], NULL});
        if (reader->at[i] < 0 && (i == GPU || i == SHARING || i == TRAININGS || i == SPEEDS))
            return fault_set(fault, EINVAL, "%s: no column %s: is it a table of mixes?",
                reader->table.name, column_names[i]);
    }
    return 0;
}

static int read_rows(struct reader *reader, struct mixes *mixes, struct fault *fault)
{
    int r = find_columns(reader, fault);
    while (r == 0) {
        r = columns_next(&reader->table, fault);
        if (r <= 0)
            return r;
        r = read_row(reader, mixes, fault);
    }
    return r;
}

int mixes_read(const char *path, struct fault *fault, struct mixes *ret_mixes)
{
    struct reader reader;
    *ret_mixes = (struct mixes){0};
    int r = columns_open(&reader.table, path, fault);
    if (r == 0)
        r = read_rows(&reader, ret_mixes, fault);
    columns_close(&reader.table);
    if (r == 0 && ret_mixes->n == 0)
        r = fault_set(fault, EINVAL, "%s: no mix stands there", path);
    if (r < 0)
        return r;
    qsort(ret_mixes->list, ret_mixes->n, sizeof *ret_mixes->list, compare_mixes);
    return check_once(ret_mixes, path, fault);
}

void mixes_fini(struct mixes *mixes)
{
    for (size_t i = 0; i < mixes->n; i++) {
        free(mixes->list[i].trainings);
        free(mixes->list[i].speeds);
    }
    free(mixes->list);
    free(mixes->gpu);
    free(mixes->driver);
}

int mixes_check_gpus(const struct mixes *mixes, const struct cluster *cluster, struct fault *fault)
{
    for (int i = 0; i < cluster->n_gpus; i++)
        if (strcmp(cluster->gpus[i]->name, mixes->gpu) != 0)
            return fault_set(fault, EINVAL,
                "--mixes: measured on %.60s, but a simulated GPU is %.60s: give --gpus=%.60s, or "
                "measure the mixes there",
                mixes->gpu, cluster->gpus[i]->name, mixes->gpu);
    return 0;
}

/* ---- looking up ---- */

bool mix_join(const char *const *sorted, int n, char *ret_trainings)
{
    size_t length = 0;
    for (int i = 0; i < n; i++) {
        int written = snprintf(
            ret_trainings + length, MIX_NAMES_SIZE - length, "%s%s", i ? SEPARATOR : "", sorted[i]);
        if (written < 0 || (size_t)written >= MIX_NAMES_SIZE - length)
            return false;
        length += (size_t)written;
    }
    return true;
}

struct mix_key {
    const char *trainings;
    bool mps;
};

static int compare_key(const void *a, const void *b)
{
    const struct mix_key *key = a;
    const struct mix *mix = b;
    int compared = strcmp(key->trainings, mix->trainings);
    return compared ? compared : key->mps - mix->mps;
}

const struct mix *mixes_find(const struct mixes *mixes, const char *trainings, bool mps)
{
    struct mix_key key = {trainings, mps};
    if (mixes->n == 0)
        return NULL;
    return bsearch(&key, mixes->list, mixes->n, sizeof *mixes->list, compare_key);
}

/* ---- what was missing ---- */

int mix_use_note_missing(
    struct mix_use *use, const char *trainings, bool mps, bool crashed, double now_s)
{
    for (size_t i = 0; i < use->n; i++)
        if (use->missing[i].mps == mps && strcmp(use->missing[i].trainings, trainings) == 0)
            return (int)i;
    if (ARRAY_RESERVE(use->missing, use->capacity, use->n + 1) < 0)
        return -ENOMEM;
    char *copy = strdup(trainings);
    if (!copy)
        return -ENOMEM;
    use->missing[use->n] = (struct missing_mix){copy, mps, crashed, now_s, 0};
    return (int)use->n++;
}

void mix_use_fini(struct mix_use *use)
{
    for (size_t i = 0; i < use->n; i++)
        free(use->missing[i].trainings);
    free(use->missing);
}

static int longest_first(const void *a, const void *b)
{
    const struct missing_mix *one = a, *other = b;
    if (one->simulated_s != other->simulated_s)
        return one->simulated_s > other->simulated_s ? -1 : 1;
    return strcmp(one->trainings, other->trainings);
}

void mix_use_print_missing(struct mix_use *use, const char *gpu, FILE *out)
{
    qsort(use->missing, use->n, sizeof *use->missing, longest_first);
    fprintf(out, "gpu,driver,sharing,trainings,speeds,smact,power_w,crashed,simulated_s,first_s\n");
    for (size_t i = 0; i < use->n; i++) {
        const struct missing_mix *missing = &use->missing[i];
        if (missing->crashed)
            continue;
        columns_print(out, gpu);
        fprintf(out, ",,%s,", missing->mps ? "mps" : "streams");
        columns_print(out, missing->trainings);
        fprintf(out, ",,,,,%.0f,%.0f\n", missing->simulated_s, missing->first_s);
    }
}
