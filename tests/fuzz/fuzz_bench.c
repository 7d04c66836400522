/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of experiments and what trainings print: any bytes are read or refused, in whatever pieces
 * they come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/columns.h"
#include "bench/experiment.h"
#include "bench/radt_sweep.h"
#include "bench/training_log.h"
#include "fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void parse_in_pieces(
    const uint8_t *data, size_t size, size_t most, struct training_report *ret_report)
{
    static struct training_log log;
    log = (struct training_log){0};
    memset(ret_report, 0, sizeof *ret_report);
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < most ? size - at : most;
        training_log_feed(&log, ret_report, (const char *)data + at, n);
    }
}

static void check_training_log(const uint8_t *data, size_t size)
{
    struct training_report whole, pieces;
    parse_in_pieces(data, size, size, &whole);
    parse_in_pieces(data, size, 3, &pieces);
    require(whole.n_epochs >= 0 && whole.n_epochs <= TRAINING_EPOCHS_MAX);
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
                require(group->tasks[n].argv[0] && group->tasks[n].threads >= 1 &&
                        group->tasks[n].threads <= 100);
        }
    else
        require(*fault.text);
    experiment_fini(&experiment);
    close(fd);
}

/* What a specification becomes is a table that can be read, or says what is wrong with it. */
static void check_specification(const uint8_t *data, size_t size)
{
    struct columns columns;
    struct fault fault = {0};
    char *table;
    if (radt_sweep_parse((const char *)data, size, "sweep.yaml", &fault, &table) < 0) {
        require(*fault.text && !table);
        return;
    }
    fault = (struct fault){0};
    int r = columns_open_text(&columns, table, "table", &fault);
    require(r == 0 && columns.n == 10);
    while ((r = columns_next(&columns, &fault)) > 0)
        ;
    require(r == 0 || *fault.text);
    columns_close(&columns);
    free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_training_log(data, size);
    check_table(data, size);
    check_specification(data, size);
    return 0;
}
