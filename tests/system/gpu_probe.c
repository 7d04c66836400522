/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What colloc sees of this machine's GPUs, as text: the set, then three samples a second apart with
 * what a look costs.
 *
 *     gpu-probe [--library PATH] [--samples N] [--mps FOLDER]
 *
 * With --mps it also starts an MPS control daemon for all GPUs under FOLDER, finds it again and
 * stops it. Exit status 0 when there are GPUs and all went well, 3 when there are none to be had, 1
 * on a fault.
 */
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "gpu/gpu.h"
#include "gpu/mps.h"

struct options {
    const char *library, *mps;
    int samples;
};

static void print_gpu(const struct gpu_info *gpu)
{
    char total[32];

    printf("GPU %s  %s  %s  %s\n", gpu->index, gpu->uuid, gpu->name, gpu->pci_bus_id);
    printf("  memory %s  SMs %d  MIG mode %d  compute mode %d  place %s%s\n",
        gpu->mem_total_bytes.valid
            ? format_size((int64_t)gpu->mem_total_bytes.value, total, sizeof(total))
            : "?",
        (int)reading_or(gpu->sm_count, 0), (int)gpu->mig_mode, (int)gpu->compute_mode,
        gpu->is_place ? "yes" : "no: ", gpu->why_not);
    if (gpu->is_mig)
        printf("  MIG profile %s  slices %d/%d  GPU instance %d  on GPU #%zu\n", gpu->profile,
            (int)reading_or(gpu->gpu_slices, 0), (int)reading_or(gpu->compute_slices, 0),
            (int)reading_or(gpu->gpu_instance, -1), gpu->parent);
}

static void print_reading(const char *name, struct reading r, double unit)
{
    if (r.valid)
        printf("  %s %.4g", name, r.value / unit);
    else
        printf("  %s -", name);
}

static void print_processes(const struct gpu_sample *s)
{
    if (!s->processes.valid)
        printf("  processes: not told\n");
    for (size_t i = 0; s->processes.valid && i < s->processes.count; i++) {
        const struct gpu_process *process = &s->processes.item[i];
        printf("  process %d  %.1f MiB  kinds %u\n", (int)process->pid,
            reading_or(process->used_bytes, -1.0 * (double)MIB) / (double)MIB, process->kinds);
    }
}

static void print_sample(const struct gpu_info *gpu, const struct gpu_sample *s, int64_t cost_us)
{
    printf("GPU %s  health %d %s  (looked in %.3f ms)\n ", gpu->index, (int)s->health,
        s->health_reason, (double)cost_us / (double)MS_US);
    print_reading("total_mib", s->mem_total_bytes, (double)MIB);
    print_reading("used_mib", s->mem_used_bytes, (double)MIB);
    print_reading("free_mib", s->mem_free_bytes, (double)MIB);
    print_reading("util", s->utilisation, 1);
    print_reading("mem_util", s->mem_utilisation, 1);
    print_reading("power_w", s->power_w, 1);
    print_reading("energy_j", s->energy_j, 1);
    print_reading("temp_c", s->temperature_c, 1);
    print_reading("sm_mhz", s->sm_clock_mhz, 1);
    printf("\n ");
    print_reading("smact", s->smact, 1);
    print_reading("smocc", s->smocc, 1);
    print_reading("gract", s->gract, 1);
    print_reading("dram", s->dram_active, 1);
    print_reading("tensor", s->tensor_active, 1);
    print_reading("fp64", s->fp64_active, 1);
    print_reading("fp32", s->fp32_active, 1);
    print_reading("fp16", s->fp16_active, 1);
    print_reading("pcie_tx_mib_s", s->pcie_tx_bytes_per_s, (double)MIB);
    print_reading("pcie_rx_mib_s", s->pcie_rx_bytes_per_s, (double)MIB);
    print_reading("nvlink_tx_mib_s", s->nvlink_tx_bytes_per_s, (double)MIB);
    print_reading("nvlink_rx_mib_s", s->nvlink_rx_bytes_per_s, (double)MIB);
    printf("\n");
    print_processes(s);
}

static void print_samples(struct gpu_set *set, int samples)
{
    struct gpu_sample sample = {0};

    for (int n = 0; n < samples; n++) {
        printf("--- sample %d\n", n + 1);
        for (size_t i = 0; i < set->count; i++) {
            int64_t before_us = clock_monotonic_us();
            gpu_set_sample(set, i, &sample);
            print_sample(&set->gpu[i], &sample, clock_monotonic_us() - before_us);
        }
        fflush(stdout);
        if (n + 1 < samples)
            nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
    gpu_sample_fini(&sample);
}

static void print_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    struct stat status;

    while (folder && (entry = readdir(folder))) {
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            printf("  %06o uid %u  %s/%s\n", status.st_mode, status.st_uid, path, entry->d_name);
    }
    if (folder)
        closedir(folder);
}

static int step(const char *what, int r, int64_t since_us, const struct fault *fault)
{
    printf("%s: %d in %.1f ms %s\n", what, r,
        (double)(clock_monotonic_us() - since_us) / (double)MS_US, fault->text);
    return r;
}

static int try_mps(const struct gpu_set *set, const char *folder)
{
    char pipe_dir[256], log_dir[256];
    const char **uuids = calloc(set->count, sizeof(*uuids));
    struct fault fault = {0};
    size_t count = 0;

    if (!uuids)
        return 1;
    for (size_t i = 0; i < set->count; i++) {
        if (set->gpu[i].is_place)
            uuids[count++] = set->gpu[i].uuid;
    }
    snprintf(pipe_dir, sizeof(pipe_dir), "%s/pipe", folder);
    snprintf(log_dir, sizeof(log_dir), "%s/log", folder);
    printf("--- MPS\n");
    int64_t now_us = clock_monotonic_us();
    int r = step("start", mps_start(pipe_dir, log_dir, uuids, count, &fault), now_us, &fault);
    printf("alive: %d\n", mps_find(pipe_dir, geteuid()) != 0);
    print_folder(pipe_dir);
    print_folder(log_dir);
    now_us = clock_monotonic_us();
    int again = step(
        "start again", mps_start(pipe_dir, log_dir, uuids, count, &fault), now_us, &fault);
    now_us = clock_monotonic_us();
    int stopped = step("stop", mps_stop(pipe_dir, &fault), now_us, &fault);
    printf("alive: %d\n", mps_find(pipe_dir, geteuid()) != 0);
    print_folder(pipe_dir);
    free(uuids);
    return r == 0 && again == MPS_ALREADY_ALIVE && stopped == 0 ? 0 : 1;
}

static struct options parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"library", required_argument, NULL, 'l'},
        {"samples", required_argument, NULL, 'n'},
        {"mps", required_argument, NULL, 'm'},
        {0},
    };
    struct options options = {.samples = 3};

    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'l')
            options.library = optarg;
        else if (c == 'n')
            options.samples = atoi(optarg);
        else if (c == 'm')
            options.mps = optarg;
        else
            exit(2);
    }
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    struct fault fault = {0};
    struct gpu_set *set;
    int64_t before_us = clock_monotonic_us();
    int r = gpu_set_open(options.library, &fault, &set);

    if (r != 0) {
        fprintf(stderr, "gpu-probe: %s\n", fault.text);
        return r > 0 ? 3 : 1;
    }
    printf("driver %s, %zu GPUs and instances, found in %.1f ms\n", set->driver_version, set->count,
        (double)(clock_monotonic_us() - before_us) / (double)MS_US);
    for (size_t i = 0; i < set->count; i++)
        print_gpu(&set->gpu[i]);
    print_samples(set, options.samples);
    r = options.mps ? try_mps(set, options.mps) : 0;
    gpu_set_close(set);
    return r;
}
