/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of experiments and what trainings print: any bytes are read or refused, in whatever pieces
 * they come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/experiment.h"
#include "bench/told.h"
#include "fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void listen_in_pieces(const uint8_t *data, size_t size, size_t most, struct told *ret_told)
{
    static struct told_stream stream;
    stream = (struct told_stream){0};
    memset(ret_told, 0, sizeof *ret_told);
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < most ? size - at : most;
        told_bytes(&stream, ret_told, (const char *)data + at, n);
    }
}

static void check_told(const uint8_t *data, size_t size)
{
    struct told whole, pieces;
    listen_in_pieces(data, size, size, &whole);
    listen_in_pieces(data, size, 3, &pieces);
    require(whole.n_epochs >= 0 && whole.n_epochs <= TOLD_EPOCHS_MAX);
    require(whole.n_epochs == pieces.n_epochs);
    for (int i = 0; i < whole.n_epochs; i++)
        require(whole.epochs[i].seconds > 0 && whole.epochs[i].number == i + 1);
}

static void check_table(const uint8_t *data, size_t size)
{
    const struct experiment_defaults defaults = {.python = "python3",
        .workloads = "w",
        .base = size & 1 ? "b" : NULL,
        .epochs = 2,
        .steps = 10};
    struct experiment experiment;
    struct fault fault = {0};
    char path[64];
    int fd = memfd_create("table", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (experiment_read(path, &defaults, &fault, &experiment) == 0)
        for (size_t i = 0; i < experiment.n_groups; i++) {
            const struct bench_group *group = &experiment.groups[i];
            require(group->n_tasks >= 1 && group->n_tasks <= BENCH_TASKS_MAX && *group->name &&
                    *group->mix);
            require(!strpbrk(group->name, ",\"\r\n") && *group->name != '#');
            for (int n = 0; n < group->n_tasks; n++)
                require(group->tasks[n].words[0] && group->tasks[n].threads >= 1 &&
                        group->tasks[n].threads <= 100);
        }
    else
        require(*fault.text);
    experiment_fini(&experiment);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_told(data, size);
    check_table(data, size);
    return 0;
}
