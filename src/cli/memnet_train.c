/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc memnet train`: trains the selected networks on all cores and writes a file of weights for
 * each.
 *
 * Each network is a separate job; a pool of threads takes one after the other. The seed decides
 * the first weights and the order of the rows, so equal commands write equal files on one machine,
 * whatever the number of threads.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/memnet_run.h"
#include "memnet/training_pool.h"

struct telling {
    const char *folder;
    size_t n, n_done;
    bool live; /* stderr is a terminal */
    int64_t began_us, told_us;
};

static void clear_line(const struct telling *telling)
{
    if (telling->live)
        fputs("\r\033[K", stderr);
}

/* Prints the remaining time as a range, since it depends on when the loss stops falling. */
static void on_epoch(void *context, const struct train_progress *progress)
{
    struct telling *telling = context;
    int64_t now_us = clock_monotonic_us();
    char soonest[32], latest[32];
    if (!telling->live || now_us - telling->told_us < SECOND_US / 2)
        return;
    telling->told_us = now_us;
    double epoch_us = (double)progress->took_us / progress->epoch;
    format_elapsed((int64_t)(epoch_us * (TRAIN_PATIENCE - progress->epoch + progress->best_epoch)),
        soonest, sizeof soonest);
    format_elapsed(
        (int64_t)(epoch_us * (TRAIN_EPOCHS_MAX - progress->epoch)), latest, sizeof latest);
    clear_line(telling);
    fprintf(stderr, "[%zu/%zu] %s: epoch %d, loss %.3f, %.3f on other rows; %s to %s left",
        telling->n_done + 1, telling->n, progress->plan->name, progress->epoch,
        progress->training_loss, progress->validation_loss, soonest, latest);
    fflush(stderr);
}

static int write_net(const struct telling *telling, const struct net_plan *plan,
    const struct gpumemnet_net *net, struct fault *fault)
{
    char path[PATH_MAX];
    char *text = gpumemnet_net_format(net);
    if (!text)
        return fault_set(fault, ENOMEM, "out of memory");
    snprintf(path, sizeof path, "%s/%s.txt", telling->folder, plan->name);
    int r = file_write_atomic(path, text, strlen(text), 0644);
    free(text);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

/* Networks are trained at the same time and end in any order; each is written when it is ready. */
static int on_trained(void *context, const struct net_plan *plan, int r,
    const struct gpumemnet_net *net, struct fault *fault)
{
    struct telling *telling = context;
    char took[32];
    telling->n_done++;
    clear_line(telling);
    if (r == -ENODATA) {
        fprintf(stderr, "[%zu/%zu] %s: skipped: %s\n", telling->n_done, telling->n, plan->name,
            fault->text);
        return 0;
    }
    if (r == 0)
        r = write_net(telling, plan, net, fault);
    if (r == 0)
        fprintf(stderr, "[%zu/%zu] %s: %d classes, %zu numbers, trained after %s\n",
            telling->n_done, telling->n, plan->name, net->n_classes, net->layout.size,
            format_elapsed(clock_monotonic_us() - telling->began_us, took, sizeof took));
    return r;
}

static size_t count_plans(const struct training_pool_settings *settings)
{
    const struct net_plan *plan;
    size_t n = 0;
    for (size_t i = 0; (plan = net_plan_at(i)) != NULL; i++)
        n += training_pool_selects(settings, plan);
    return n;
}

/* Training needs a BLAS library, which is opened at run time: nothing else in colloc does. */
int memnet_run_train(struct memnet_run *run, struct fault *fault)
{
    const struct option_value *values = run->invocation->values;
    const char *folder = option_text_or(&values[MEMNET_OUTPUT], "memnet-weights");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct telling telling = {
        .folder = folder, .live = isatty(STDERR_FILENO), .began_us = clock_monotonic_us()};
    struct blas blas;
    const struct training_pool_settings settings = {
        .blas = &blas,
        .dataset = &run->dataset,
        .seed = option_number_or(&values[MEMNET_SEED], 1),
        .jobs = values[MEMNET_JOBS].set ? (int)values[MEMNET_JOBS].number
                : processors > 0        ? (int)processors
                                        : 1,
        .epochs_max = (int)values[MEMNET_EPOCHS].number,
        .only = values[MEMNET_ONLY].text,
        .on_epoch = on_epoch,
        .on_trained = on_trained,
        .context = &telling,
    };
    telling.n = count_plans(&settings);
    if (telling.n == 0)
        return fault_set(fault, ENOENT, "memnet: no network's name contains \"%s\"", settings.only);
    int r = file_make_folders(folder, 0755);
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", folder, strerror(-r));
    r = blas_open(fault, &blas);
    if (r < 0)
        return r;
    r = training_pool_run(&settings, fault);
    blas_close(&blas);
    return r;
}
