/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An emulated dcgmi, as far as a monitor needs NVIDIA's: `discovery -l` and `dmon -e IDS [-d MS]
 * [-c COUNT] [-i GPUS]`, in the form that DCGM 3 prints them. After the "DCGM User Guide"
 * (docs.nvidia.com/datacenter/dcgm).
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "emulator/pipes.h"
#include "emulator/world.h"

enum { COLUMNS_MAX = 32, HEADER_EVERY = 30 };

/* What one GPU does now, and its means since the sample before. */
struct gpu_sample {
    struct activity sum, mean, rate;
    double at_s;
    unsigned trouble;
};

static double gputl(const struct gpu_sample *t)
{
    return round(100 * t->rate.gract);
}

static double mcutl(const struct gpu_sample *t)
{
    return round(100 * t->rate.dram);
}

static double power(const struct gpu_sample *t)
{
    return t->rate.power_w;
}

static double energy(const struct gpu_sample *t)
{
    return floor(1000 * t->sum.power_w);
}

static double gract(const struct gpu_sample *t)
{
    return t->mean.gract;
}

static double smact(const struct gpu_sample *t)
{
    return t->mean.smact;
}

static double smocc(const struct gpu_sample *t)
{
    return t->mean.smocc;
}

static double dram(const struct gpu_sample *t)
{
    return t->mean.dram;
}

static double tensor(const struct gpu_sample *t)
{
    return PIPE_TENSOR * t->mean.smact;
}

static double fp32(const struct gpu_sample *t)
{
    return PIPE_FP32 * t->mean.smact;
}

static double fp16(const struct gpu_sample *t)
{
    return PIPE_FP16 * t->mean.smact;
}

static double none(const struct gpu_sample *t)
{
    return 0;
}

static double pcie_rx(const struct gpu_sample *t)
{
    return floor((double)MIB * t->mean.pcie_rx_mib);
}

static double pcie_tx(const struct gpu_sample *t)
{
    return floor((double)MIB * PCIE_TX_OF_RX * t->mean.pcie_rx_mib);
}

/* A field of DCGM (dcgm_fields.h) and how dmon prints it. Fields below 1000 are readings of this
 * moment or counters; the profiling fields, from 1001 on, are means since the sample before. */
struct field {
    const char *id, *name;
    int digits, width;
    double (*value)(const struct gpu_sample *);
    unsigned trouble; /* the one that makes it N/A */
};

static const struct field fields[] = {
    {"155", "POWER", 3, 13, power, TROUBLE_NO_POWER},
    {"156", "TOTEC", 0, 22, energy, TROUBLE_NO_ENERGY},
    {"203", "GPUTL", 0, 18, gputl, TROUBLE_NO_UTILIZATION},
    {"204", "MCUTL", 0, 18, mcutl, TROUBLE_NO_UTILIZATION},
    {"1001", "GRACT", 3, 13, gract, 0},
    {"1002", "SMACT", 3, 13, smact, 0},
    {"1003", "SMOCC", 3, 13, smocc, 0},
    {"1004", "TENSO", 3, 13, tensor, 0},
    {"1005", "DRAMA", 3, 13, dram, 0},
    {"1006", "FP64A", 3, 13, none, 0},
    {"1007", "FP32A", 3, 13, fp32, 0},
    {"1008", "FP16A", 3, 13, fp16, 0},
    {"1009", "PCITX", 0, 22, pcie_tx, 0},
    {"1010", "PCIRX", 0, 22, pcie_rx, 0},
    {"1011", "NVLTX", 0, 22, none, 0},
    {"1012", "NVLRX", 0, 22, none, 0},
};

struct dmon {
    const struct field *column[COLUMNS_MAX];
    int columns;
    bool shown[GPUS_MAX];
    int64_t period_us, count; /* count 0: for ever */
    struct gpu_sample samples[GPUS_MAX];
};

/* ---- discovery -l ---- */

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

/* ---- dmon ---- */

/* The columns are in the order of the request. */
static int add_columns(struct dmon *dmon, char *ids)
{
    for (char *id = strtok(ids, ","); id; id = strtok(NULL, ",")) {
        const struct field *found = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(fields) && !found; i++)
            if (strcmp(fields[i].id, id) == 0)
                found = &fields[i];
        if (!found || dmon->columns == COLUMNS_MAX)
            return -EINVAL;
        dmon->column[dmon->columns++] = found;
    }
    return 0;
}

/* Without -i all GPUs are shown. */
static int choose_gpus(struct dmon *dmon, char *gpus, int gpu_count)
{
    memset(dmon->shown, 0, sizeof(dmon->shown));
    for (char *gpu = strtok(gpus, ","); gpu; gpu = strtok(NULL, ",")) {
        int64_t index;
        if (parse_int64(gpu, 0, gpu_count - 1, &index) < 0)
            return -EINVAL;
        dmon->shown[index] = true;
    }
    return 0;
}

static int read_options(struct dmon *dmon, int argc, char **argv, int gpu_count)
{
    int option, r = 0;
    int64_t period_ms = 1000;

    for (int g = 0; g < gpu_count; g++)
        dmon->shown[g] = true;
    while (r == 0 && (option = getopt(argc, argv, "e:d:c:i:")) != -1) {
        if (option == 'e')
            r = add_columns(dmon, optarg);
        else if (option == 'd')
            r = parse_int64(optarg, 1, INT32_MAX, &period_ms);
        else if (option == 'c')
            r = parse_int64(optarg, 0, INT32_MAX, &dmon->count);
        else if (option == 'i')
            r = choose_gpus(dmon, optarg, gpu_count);
        else
            r = -EINVAL;
    }
    dmon->period_us = period_ms * MS_US;
    return r == 0 && (optind != argc || dmon->columns == 0) ? -EINVAL : r;
}

/* The means of a first sample are those since the machine was made. Real ones are over no time: a
 * client has to ignore them in either case. */
static void take_samples(struct dmon *dmon, struct world *world)
{
    world_enter(world);
    for (int g = 0; g < world->gpu_count; g++) {
        struct gpu_sample *sample = &dmon->samples[g];
        struct activity sum = *world_sum(world, (struct seat){g, 0});
        double now_s = world_now_s(world), span_s = now_s - sample->at_s;
        sample->mean = (struct activity){0};
        activity_add(&sample->mean, &sum, 1 / span_s);
        activity_add(&sample->mean, &sample->sum, -1 / span_s);
        sample->sum = sum;
        sample->at_s = now_s;
        sample->rate = world->gpus[g].units[0].rate;
        sample->trouble = world->gpus[g].trouble;
    }
    world_leave(world);
}

static void print_header(const struct dmon *dmon)
{
    printf("%-10s", "#Entity");
    for (int i = 0; i < dmon->columns; i++)
        printf("%-*s", dmon->column[i]->width, dmon->column[i]->name);
    printf("\n%-10s\n", "ID");
}

/* A sensor that the GPU lacks is "N/A" in its column, and so is every one of a lost GPU. */
static void print_gpu(const struct dmon *dmon, int g)
{
    const struct gpu_sample *sample = &dmon->samples[g];
    char name[16], text[40];

    snprintf(name, sizeof(name), "GPU %d", g);
    printf("%-10s", name);
    for (int i = 0; i < dmon->columns; i++) {
        const struct field *field = dmon->column[i];
        snprintf(text, sizeof(text), "%.*f", field->digits, field->value(sample));
        printf(
            "%-*s", field->width, sample->trouble & (field->trouble | TROUBLE_LOST) ? "N/A" : text);
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
            if (dmon->shown[g])
                print_gpu(dmon, g);
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
    bool lists = argc == 3 && strcmp(argv[1], "discovery") == 0 && strcmp(argv[2], "-l") == 0;
    bool watches = argc > 1 && strcmp(argv[1], "dmon") == 0;
    if (lists) {
        print_list(world);
    } else if (watches && read_options(&dmon, argc - 1, argv + 1, world->gpu_count) == 0) {
        print_samples(&dmon, world);
    } else {
        fprintf(stderr,
            "Error: dcgmi discovery -l, or dcgmi dmon -e IDS [-d MS] [-c COUNT] [-i GPUS]\n");
        return 1;
    }
    return 0;
}
