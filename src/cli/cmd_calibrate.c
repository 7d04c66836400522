/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc calibrate`: measures in about two minutes what sharing costs on this host, and writes the
 * constants for the setting `calibration` and for `simulate --gpu-kinds` (src/calibration does the
 * work).
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "calibration/calibration_file.h"
#include "calibration/calibration_measure.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/support.h"

enum {
    CALIBRATE_GPU,
    CALIBRATE_SECONDS,
    CALIBRATE_TRAININGS,
    CALIBRATE_MEASUREMENTS,
    CALIBRATE_PYTHON,
    CALIBRATE_WORKLOADS
};

/* They need PyTorch and torchvision only; SM activity from a third to nearly all. Chosen. */
#define TRAININGS "medium,resnet18,heavy"

static const struct option_spec options[] = {
    [CALIBRATE_GPU] = OPTION("gpu", TEXT, "INDEX",
        .help = "the GPU to measure, which no other process may use; default: 0"),
    [CALIBRATE_SECONDS] = OPTION("interval", DURATION, "TIME", .letter = 'i', .min = SECOND_US / 2,
        .max = 600 * SECOND_US, .help = "time for each of the 24 measurements; default: 2500ms"),
    [CALIBRATE_TRAININGS] = OPTION("trainings", TEXT, "LIST",
        .help = "three trainings of workloads/models.py, comma-separated, from light to heavy; "
                "default: " TRAININGS),
    [CALIBRATE_MEASUREMENTS] = OPTION("measurements", FILE, "FILE",
        .help = "also write what was measured, as CSV for scripts/fit-sharing"),
    [CALIBRATE_PYTHON] = OPTION("python", TEXT, "PROGRAM",
        .help = "Python interpreter that has PyTorch and torchvision; default: python3"),
    [CALIBRATE_WORKLOADS] = OPTION("workloads", FILE, "FOLDER",
        .help = "folder of worker.py; default: the one installed with colloc"),
};

/* ---- the plan ---- */

/* Cuts "a,b,c" in `text`, which the plan borrows. */
static int read_trainings(char *text, struct calibration_plan *plan)
{
    int n = 0;
    for (char *rest = text, *name; (name = strsep(&rest, ","));) {
        if (n < CALIBRATION_TRAININGS)
            plan->trainings[n] = name;
        n += *name != '\0' || n >= CALIBRATION_TRAININGS;
    }
    if (n == CALIBRATION_TRAININGS)
        return 0;
    print_error(
        "--trainings: %d trainings, comma-separated, from light to heavy", CALIBRATION_TRAININGS);
    return -EINVAL;
}

/* Its processes would count as the trainings' cost. */
static int check_idle(const struct calibration_plan *plan)
{
    struct gpu_sample sample = {0};
    gpu_set_query_all_next(plan->set);
    gpu_set_sample(plan->set, plan->gpu, &sample);
    size_t others = 0;
    for (size_t i = 0; sample.processes.valid && i < sample.processes.count; i++)
        others += !sample.processes.item[i].is_mps_server;
    gpu_sample_fini(&sample);
    if (others == 0)
        return 0;
    print_error("GPU %s is in use by %zu process%s: calibrate needs it alone",
        plan->set->gpu[plan->gpu].index, others, others == 1 ? "" : "es");
    return -EBUSY;
}

/* A MIG instance has a part of the bandwidth only, and other programs on the GPU would be measured
 * with the trainings. */
static int find_gpu(struct calibration_plan *plan, const char *index)
{
    for (plan->gpu = 0; plan->gpu < plan->set->count; plan->gpu++)
        if (strcmp(plan->set->gpu[plan->gpu].index, index) == 0)
            break;
    if (plan->gpu == plan->set->count) {
        print_error("--gpu=%s: this machine has no such GPU", index);
        return -ENODEV;
    }
    const struct gpu_info *gpu = &plan->set->gpu[plan->gpu];
    if (gpu->is_place && !gpu->is_mig)
        return check_idle(plan);
    print_error("--gpu=%s: calibrate needs a whole GPU%s%s", index, gpu->is_mig ? "" : ": ",
        gpu->is_mig ? "" : gpu->why_not);
    return -ENODEV;
}

static void print_names(FILE *out, const struct calibration_run *run)
{
    for (int i = 0; i < run->n; i++)
        fprintf(out, "%s%s", i ? "+" : "", run->names[i]);
}

static void print_value(FILE *out, struct reading value)
{
    if (value.valid)
        fprintf(out, ",%.4f", value.value);
    else
        fputc(',', out);
}

/* A line for each training of the mix, in the columns of scripts/measure-sharing. */
static void print_measurements(FILE *out, const struct calibration_run *run)
{
    for (int i = 0; out && i < run->n; i++) {
        fprintf(out, "%s,", run->mps ? "mps" : "streams");
        print_names(out, run);
        fprintf(out, ",%s,%.4f", run->names[i], run->steps_per_s[i]);
        print_value(out, run->smact);
        print_value(out, run->smocc);
        print_value(out, run->gract);
        print_value(out, run->dram);
        print_value(out, run->power_w);
        fputs(",\n", out);
    }
}

/* context: the file of the measurements, or NULL */
static void on_run(void *context, const struct calibration_run *run)
{
    print_measurements(context, run);
    fprintf(stderr, "%-11s ", run->mps ? "MPS" : "time-sliced");
    print_names(stderr, run);
    fputs(":", stderr);
    for (int i = 0; i < run->n; i++)
        fprintf(stderr, " %.2f", run->speeds[i]);
    fprintf(stderr, ", SMACT %.0f %%\n", 100 * run->smact.value);
}

/* Opens the file of the measurements, if there is to be one. */
static int open_measurements(const char *path, struct calibration_plan *plan)
{
    if (!path)
        return 0;
    FILE *out = fopen(path, "we");
    if (!out) {
        print_error("%s: %s", path, strerror(errno));
        return -errno;
    }
    fprintf(out, "# %s, driver %s; colloc calibrate, %g s each\n", plan->set->gpu[plan->gpu].name,
        plan->set->driver_version, plan->seconds);
    fputs("how,mix,model,steps_per_s,smact,smocc,gract,dram_active,power_w,error\n", out);
    plan->context = out;
    return 0;
}

/* ---- the file ---- */

/* Can the file be replaced? Found out before two minutes of measurements, not after. */
static int check_file(const char *path)
{
    char copy[PATH_MAX];
    struct stat status;
    int r = snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy ? -ENAMETOOLONG : 0;
    if (r == 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        r = -EISDIR;
    if (r == 0 && access(dirname(copy), W_OK | X_OK) < 0)
        r = -errno;
    if (r < 0)
        print_error("%s cannot be written: %s", path, strerror(-r));
    return r;
}

/* The file is replaced as a whole, since collocd may read it at any moment. It is printed, too. */
static int write_file(const char *path, const struct calibration_result *result)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        print_error("out of memory");
        return EXIT_REFUSED;
    }
    calibration_print(out, result);
    int r = fclose(out) == 0 ? file_write_atomic(path, text, size, 0644) : -ENOMEM;
    if (r < 0)
        print_error("%s: %s", path, strerror(-r));
    else
        fputs(text, stdout);
    free(text);
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

static void format_today(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm parts;
    strftime(text, size, "%Y-%m-%d", localtime_r(&now, &parts));
}

/* The file names its driver and trainings: others may give other constants. */
static int fit_and_write(const char *path, const struct calibration_plan *plan,
    const struct calibration_loader *loader, const struct calibration_data *data,
    const char *why_no_mps)
{
    char date[16], trainings[256];
    format_today(date, sizeof date);
    snprintf(trainings, sizeof trainings, "%s, %s, %s", plan->trainings[0], plan->trainings[1],
        plan->trainings[2]);
    struct calibration_result result = {
        .gpu_name = plan->set->gpu[plan->gpu].name,
        .driver_version = plan->set->driver_version,
        .date = date,
        .trainings = trainings,
        .why_no_mps = why_no_mps,
        .loader = *loader,
    };
    calibration_result_fit(&result, data);
    return write_file(path, &result);
}

/* ---- the command ---- */

static int watch_signals(void)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    signal(SIGPIPE, SIG_IGN); /* a training process that has ended takes no command */
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int close_measurements(FILE *out)
{
    if (!out || fclose(out) == 0)
        return EXIT_OK;
    print_error("cannot write all measurements: %s", strerror(errno));
    return EXIT_REFUSED;
}

/* Interrupts arrive by a signalfd that the measurement polls, so that it ends its trainings. An
 * interrupted calibration writes no constants. */
static int measure_and_write(const char *path, struct calibration_plan *plan)
{
    static struct calibration_data data;
    struct calibration_loader loader = {0};
    struct fault fault = {0};
    char why_no_mps[256];
    plan->signals = watch_signals();
    if (plan->signals < 0) {
        print_error("no signalfd: %s", strerror(errno));
        return EXIT_REFUSED;
    }
    int r = calibration_measure(plan, &fault, &loader, &data, why_no_mps, sizeof why_no_mps);
    close(plan->signals);
    if (r == CALIBRATION_INTERRUPTED)
        print_error("interrupted: nothing is written");
    else if (r < 0)
        print_error("%s", fault.text);
    int code = close_measurements(plan->context);
    if (r != 0)
        return EXIT_REFUSED;
    return fit_and_write(path, plan, &loader, &data, why_no_mps) == EXIT_OK ? code : EXIT_REFUSED;
}

static int find_script(const struct invocation *invocation, char *path, size_t size)
{
    char folder[PATH_MAX];
    const char *given = option_text_or(&invocation->values[CALIBRATE_WORKLOADS], NULL);
    if (!given && support_find("workloads", folder, sizeof folder) < 0) {
        print_error("cannot find colloc's trainings where they were installed: give their folder "
                    "with --workloads");
        return -ENOENT;
    }
    snprintf(path, size, "%s/worker.py", given ? given : folder);
    return 0;
}

static int run(const struct invocation *invocation)
{
    const struct option_value *interval = &invocation->values[CALIBRATE_SECONDS];
    char script[PATH_MAX + 16], trainings[256];
    struct fault fault = {0};
    struct calibration_plan plan = {
        .python = option_text_or(&invocation->values[CALIBRATE_PYTHON], "python3"),
        .script = script,
        .seconds = interval->set ? (double)interval->number / (double)SECOND_US : 2.5,
        .on_run = on_run,
    };
    snprintf(trainings, sizeof trainings, "%s",
        option_text_or(&invocation->values[CALIBRATE_TRAININGS], TRAININGS));
    if (invocation->common[COMMON_JSON].number) {
        print_error("calibrate: --json is not supported: the file has a line for each constant");
        return EXIT_USAGE;
    }
    if (read_trainings(trainings, &plan) < 0)
        return EXIT_USAGE;
    if (find_script(invocation, script, sizeof script) < 0 ||
        check_file(invocation->operands[0]) < 0)
        return EXIT_REFUSED;
    if (gpu_set_open(NULL, &fault, &plan.set) != 0) {
        print_error("%s", fault.text);
        return EXIT_REFUSED;
    }
    bool is_ready = find_gpu(&plan, option_text_or(&invocation->values[CALIBRATE_GPU], "0")) == 0 &&
                    open_measurements(
                        option_text_or(&invocation->values[CALIBRATE_MEASUREMENTS], NULL), &plan) ==
                        0;
    int code = is_ready ? measure_and_write(invocation->operands[0], &plan) : EXIT_REFUSED;
    gpu_set_close(plan.set);
    return code;
}

const struct command command_calibrate = {
    .name = "calibrate",
    .usage = "[OPTION...] FILE",
    .summary = "measure what sharing a GPU costs on this host",
    .description = "Trains three networks alone and together on one GPU, time-sliced and under "
                   "MPS, for about two minutes, and fits the constants of the interference model "
                   "to their speeds. Before that it measures how many pictures a data "
                   "loader decodes a second, by which `colloc estimate` knows how long a training "
                   "waits for its data. The file is for the daemon's setting calibration (policy "
                   "predictive) and for `colloc simulate --gpu-kinds=FILE`.\n\n"
                   "The comment in the file says how far the predicted speeds are off, in mixes "
                   "that were not used for the fit, with the new constants and with those that are "
                   "built in. Without MPS on the machine the constants of MPS stay as they are "
                   "built in. The GPU must be idle: drain it, or stop collocd.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_FILE,
    .min_operands = 1,
    .max_operands = 1,
    .common_without = WITHOUT_JSON | WITHOUT_SOCKET,
    .run = run,
};
