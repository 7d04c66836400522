/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of the simulator: kinds of GPUs, machines, tasks and arrivals. Any bytes are parsed or
 * refused with a message. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "fuzz.h"
#include "sim/arrivals.h"
#include "sim/catalogue.h"
#include "sim/cluster.h"

static const struct catalogue_settings plain = {"none", 0.5};

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_kinds(struct span text)
{
    static struct gpu_kinds kinds;
    struct fault fault = {0};
    require(gpu_kinds_init(&kinds, &fault) == 0);
    if (gpu_kinds_read(&kinds, text, "kinds", &fault) < 0)
        require(*fault.text != '\0');
    require(kinds.n > 0 && kinds.n <= GPU_KINDS_MAX && kinds.constants.startup_s >= 0 &&
            kinds.constants.context_bytes >= 0);
    for (int i = 0; i < kinds.n; i++) {
        const struct gpu_kind *kind = &kinds.kinds[i];
        require(
            kind->total_bytes > kind->reserved_bytes && kind->reserved_bytes >= 0 && kind->sms > 0);
        require(kind->idle_w <= kind->awake_w && kind->awake_w <= kind->limit_w &&
                isfinite(kind->work_w));
        require(kind->n_profiles >= 0 && kind->n_profiles <= MIG_PROFILES_MAX);
    }
}

static void check_machine(struct span text)
{
    static struct gpu_kinds kinds;
    struct fault fault = {0};
    struct cluster cluster;
    char words[512];
    if (!kinds.n)
        require(gpu_kinds_init(&kinds, &fault) == 0);
    span_copy(text, words, sizeof words);
    words[strcspn(words, "\n")] = '\0';
    if (cluster_parse(&kinds, words, &fault, &cluster) < 0)
        require(*fault.text != '\0');
    else
        require(cluster.n_gpus > 0 && cluster.n_gpus <= CLUSTER_GPUS_MAX &&
                cluster.n_places >= cluster.n_gpus);
    for (int i = 0; i < cluster.n_places; i++) {
        const struct place_shape *place = &cluster.places[i];
        require(place->gpu >= 0 && place->gpu < cluster.n_gpus);
        require(cluster.identities[i].mem_total_bytes > 0);
        require(place->sms > 0 && place->sms <= 1 && place->bandwidth > 0 && place->bandwidth <= 1);
    }
    cluster_fini(&cluster);
}

static void check_catalogue(const char *path)
{
    struct catalogue catalogue;
    struct fault fault = {0};
    const struct catalogue_settings settings = {"own", 0.5};
    if (catalogue_read(path, &settings, &fault, &catalogue) < 0)
        require(*fault.text != '\0');
    else
        for (size_t i = 0; i < catalogue.n; i++) {
            const struct sim_task *task = &catalogue.tasks[i];
            require(*task->name && task->gpus >= 1 && isfinite(task->solo_s) && task->solo_s >= 0);
            require(task->memory_bytes >= 0 && task->need.bytes >= 0);
            require(catalogue_find(&catalogue, task->name) == task);
        }
    catalogue_fini(&catalogue);
}

static void check_arrivals(const char *path)
{
    static struct catalogue known;
    struct arrivals arrivals;
    struct arrival arrival;
    struct fault fault = {0};
    int64_t last_us = 0;
    if (!known.n)
        require(catalogue_read(NULL, &plain, &fault, &known) == 0);
    int r = arrivals_open(&arrivals, path, &known, &fault);
    if (r == 0)
        (void)arrivals_take_arrays(&arrivals, &fault); /* a trace without arrays goes on */
    while (r == 0 && (r = arrivals_next(&arrivals, &fault, &arrival)) == 1) {
        require(arrival.task && arrival.time_us >= last_us);
        last_us = arrival.time_us;
        r = 0;
    }
    require(r >= 0 || *fault.text != '\0');
    arrivals_close(&arrivals);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct span text = {(const char *)data, size};
    char path[64];
    int fd = memfd_create("sim", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    check_kinds(text);
    check_machine(text);
    check_catalogue(path);
    check_arrivals(path);
    close(fd);
    return 0;
}
