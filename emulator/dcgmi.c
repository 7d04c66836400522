/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An emulated dcgmi, as far as a monitor needs NVIDIA's: `discovery -l`, `discovery -c` and `dmon
 * -e IDS [-d MS] [-c COUNT] [-i GPUS]`, in the form that DCGM 3 prints them; -i takes "0" and, of
 * MIG instances, "0/1". After the "DCGM User Guide" (docs.nvidia.com/datacenter/dcgm) and the tests of
 * DCGM's sources (github.com/NVIDIA/DCGM).
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/dcgm_fields.h"
#include "emulator/world.h"

enum { COLUMNS_MAX = 32, HEADER_EVERY = 30 };

struct dmon {
    const struct field *column[COLUMNS_MAX];
    int columns;
    bool shown[GPUS_MAX][INSTANCES_MAX];
    int64_t period_us, count; /* count 0: for ever */
    struct gpu_sample samples[GPUS_MAX][INSTANCES_MAX];
};

/* ---- discovery ---- */

/* A client finds its GPU by the name and the UUID; the bus numbers are invented. */
static void print_list(struct world *world)
{
    static const char line[] =
        "+--------+----------------------------------------------------------------------+\n";

    printf("%d GPU%s found.\n%s| GPU ID | %-68s |\n%s", world->gpu_count,
        world->gpu_count == 1 ? "" : "s", line, "Device Information", line);
    for (int g = 0; g < world->gpu_count; g++) {
        printf("| %-6d | Name: %-62s |\n", g, world_kind(world, g)->name);
        printf("|        | PCI Bus ID: %08X:%02X:00.0%40s |\n", 0, g + 1, "");
        printf("|        | Device UUID: %-55s |\n%s", world->gpus[g].units[0].uuid, line);
    }
}

static void print_compute(struct entity entity, const struct unit *unit)
{
    char name[48], text[72];

    snprintf(name, sizeof(name), "   -> CI %d/%d/%d", entity.gpu, entity.instance, unit->number);
    snprintf(text, sizeof(text), "Compute Instance (EntityID: %d)",
        dcgm_instance_number(entity) + 1 + unit->number);
    printf("| %-17s | %-66s |\n", name, text);
}

static void print_instance(const struct world *world, struct entity entity)
{
    const struct gpu *gpu = &world->gpus[entity.gpu];
    char name[32], text[72];

    snprintf(name, sizeof(name), "-> I %d/%d", entity.gpu, entity.instance);
    snprintf(text, sizeof(text), "GPU Instance (EntityID: %d)", dcgm_instance_number(entity));
    printf("| %-17s | %-66s |\n", name, text);
    for (int u = 1; u < gpu->unit_count; u++)
        if (gpu->units[u].state == UNIT_READY && gpu->units[u].instance == entity.instance)
            print_compute(entity, &gpu->units[u]);
}

/* Only cards with instances are in the tree. */
static void print_tree(struct world *world)
{
    static const char line[] = "+-------------------+----------------------------------------------"
                               "----------------------+\n";

    printf("%s| %-86s |\n%s", line, "Instance Hierarchy", line);
    for (int g = 0; g < world->gpu_count; g++) {
        bool is_listed = false;
        for (int i = 1; i < INSTANCES_MAX; i++) {
            struct entity entity = {g, i};
            char name[32], text[72];
            if (!dcgm_is_instance(world, entity))
                continue;
            snprintf(name, sizeof(name), "GPU %d", g);
            snprintf(text, sizeof(text), "GPU %s (EntityID: %d)", world->gpus[g].units[0].uuid, g);
            if (!is_listed)
                printf("| %-17s | %-66s |\n", name, text);
            is_listed = true;
            print_instance(world, entity);
        }
        printf("%s", is_listed ? line : "");
    }
}

/* ---- dmon ---- */

/* The columns are in the order of the request. */
static int add_columns(struct dmon *dmon, char *ids)
{
    for (char *id = strtok(ids, ","); id; id = strtok(NULL, ",")) {
        int64_t number;
        const struct field *found = NULL;
        if (parse_int64(id, 1, INT16_MAX, &number) == 0)
            found = dcgm_field_find((unsigned)number);
        if (!found || dmon->columns == COLUMNS_MAX)
            return -EINVAL;
        dmon->column[dmon->columns++] = found;
    }
    return 0;
}

/* "0", or "0/1": instance 1 of GPU 0. */
static int choose_entity(struct dmon *dmon, char *entity, struct world *world)
{
    int64_t gpu, instance = 0;
    char *slash = strchr(entity, '/');

    if (slash)
        *slash = '\0';
    if (parse_int64(entity, 0, world->gpu_count - 1, &gpu) < 0 ||
        (slash && parse_int64(slash + 1, 1, INSTANCES_MAX - 1, &instance) < 0) ||
        (slash && !dcgm_is_instance(world, (struct entity){(int)gpu, (int)instance})))
        return -EINVAL;
    dmon->shown[gpu][instance] = true;
    return 0;
}

/* Without -i all GPUs are shown. */
static int choose_entities(struct dmon *dmon, char *entities, struct world *world)
{
    int r = 0;

    memset(dmon->shown, 0, sizeof(dmon->shown));
    for (char *entity = strtok(entities, ","); entity && r == 0; entity = strtok(NULL, ","))
        r = choose_entity(dmon, entity, world);
    return r;
}

static int read_options(struct dmon *dmon, int argc, char **argv, struct world *world)
{
    int option, r = 0;
    int64_t period_ms = 1000;

    for (int g = 0; g < world->gpu_count; g++)
        dmon->shown[g][0] = true;
    while (r == 0 && (option = getopt(argc, argv, "e:d:c:i:")) != -1) {
        if (option == 'e')
            r = add_columns(dmon, optarg);
        else if (option == 'd')
            r = parse_int64(optarg, 1, INT32_MAX, &period_ms);
        else if (option == 'c')
            r = parse_int64(optarg, 0, INT32_MAX, &dmon->count);
        else if (option == 'i')
            r = choose_entities(dmon, optarg, world);
        else
            r = -EINVAL;
    }
    dmon->period_us = period_ms * MS_US;
    return r == 0 && (optind != argc || dmon->columns == 0) ? -EINVAL : r;
}

static void take_samples(struct dmon *dmon, struct world *world)
{
    world_enter(world);
    for (int g = 0; g < world->gpu_count; g++)
        for (int i = 0; i < INSTANCES_MAX; i++)
            if (dmon->shown[g][i])
                dcgm_sample_take(&dmon->samples[g][i], world, (struct entity){g, i});
    world_leave(world);
}

static void print_header(const struct dmon *dmon)
{
    printf("%-11s", "#Entity");
    for (int i = 0; i < dmon->columns; i++)
        printf("%-*s", dmon->column[i]->width, dmon->column[i]->name);
    printf("\n%-11s\n", "ID");
}

static void print_row(const struct dmon *dmon, struct entity entity)
{
    const struct gpu_sample *sample = &dmon->samples[entity.gpu][entity.instance];
    char name[24], text[40];

    if (entity.instance == 0)
        snprintf(name, sizeof(name), "GPU %d", entity.gpu);
    else
        snprintf(name, sizeof(name), "GPU-I %d", dcgm_instance_number(entity));
    printf("%-11s", name);
    for (int i = 0; i < dmon->columns; i++) {
        const struct field *field = dmon->column[i];
        snprintf(text, sizeof(text), "%.*f", field->digits, field->value(sample));
        printf("%-*s", field->width, dcgm_is_known(field, sample, entity) ? text : "N/A");
    }
    printf("\n");
}

/* The header is repeated, as DCGM does it: a client must skip it wherever it comes. Times are
 * counted from the start, so that a slow sample does not move those after it. */
static void print_samples(struct dmon *dmon, struct world *world)
{
    int64_t next_us = clock_monotonic_us();

    take_samples(dmon, world);
    for (int64_t n = 0; dmon->count == 0 || n < dmon->count; n++) {
        next_us += dmon->period_us;
        int64_t left_us = next_us - clock_monotonic_us();
        struct timespec left = {left_us / SECOND_US, left_us % SECOND_US * 1000};
        if (left_us > 0)
            nanosleep(&left, NULL);
        take_samples(dmon, world);
        if (n % HEADER_EVERY == 0)
            print_header(dmon);
        for (int g = 0; g < world->gpu_count; g++)
            for (int i = 0; i < INSTANCES_MAX; i++)
                if (dmon->shown[g][i])
                    print_row(dmon, (struct entity){g, i});
        fflush(stdout);
    }
}

/* Without the emulated machine it answers as dcgmi does when its host engine does not run. */
int main(int argc, char **argv)
{
    struct world *world;
    struct dmon dmon = {0};
    const char *path = getenv("COLLOC_EMULATOR");

    if (!path || world_open(path, NULL, &world) < 0) {
        printf("Error: unable to establish a connection to the specified host: localhost\n");
        return 1;
    }
    bool discovers = argc == 3 && strcmp(argv[1], "discovery") == 0;
    bool watches = argc > 1 && strcmp(argv[1], "dmon") == 0;
    if (discovers && strcmp(argv[2], "-l") == 0) {
        print_list(world);
    } else if (discovers && strcmp(argv[2], "-c") == 0) {
        print_tree(world);
    } else if (watches && read_options(&dmon, argc - 1, argv + 1, world) == 0) {
        print_samples(&dmon, world);
    } else {
        fprintf(stderr,
            "Error: dcgmi discovery -l or -c, or dcgmi dmon -e IDS [-d MS] [-c COUNT] [-i GPUS]\n");
        return 1;
    }
    return 0;
}
