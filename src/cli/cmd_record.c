/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc record`: runs a command, samples the GPUs meanwhile (src/recorder) and prints a summary.
 * Its exit codes are those of env(1) and timeout(1): the command's own, 125 to 127, or 128 plus a
 * signal.
 *
 *     colloc record -o run.csv -- python train.py
 *
 * With --mlflow and the like the samples also go to a tracker (record_tracker.h). No daemon takes
 * part, and the command keeps the terminal. Signals that would end colloc are
 * passed on to the command, and the summary is printed when it has ended.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/json_value.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/record_tracker.h"
#include "recorder/recorder.h"
#include "taskfile/track_places.h"

enum {
    RECORD_INTERVAL,
    RECORD_OUTPUT,
    RECORD_SUMMARY,
    RECORD_GPUS,
    RECORD_PID,
    RECORD_MLFLOW,
    RECORD_WANDB,
    RECORD_TENSORBOARD
};

/* The codes of env(1): the command cannot be run; there is no such command; colloc record
 * failed. */
enum { EXIT_NOT_RUNNABLE = 126, EXIT_NO_COMMAND = 127, EXIT_RECORD_FAILED = 125 };

static const struct option_spec options[] = {
    [RECORD_INTERVAL] = OPTION("interval", DURATION, "TIME", .letter = 'i', .min = 10 * MS_US,
        .max = HOUR_US, .help = "interval between two samples, at least 10ms; default: 1s"),
    [RECORD_OUTPUT] = OPTION("output", FILE, "FILE", .letter = 'o',
        .help = "write every sample to this file as CSV, one line for each GPU; once a second also "
                "the command's CPU time, host memory and disk traffic"),
    [RECORD_SUMMARY] = OPTION("summary", FILE, "FILE", .letter = 's',
        .help = "write the summary to this file; default: standard error"),
    [RECORD_GPUS] = OPTION("gpus", TEXT, "LIST",
        .help = "GPUs to sample: comma-separated indices or UUIDs; default: all"),
    [RECORD_PID] = OPTION("pid", INTEGER, "PID", .min = 1, .max = INT_MAX,
        .help = "in place of a command: measure this process, which runs already, and its "
                "descendants, until it ends or a signal ends the recording"),
    [RECORD_MLFLOW] = FLAG_OPTION("mlflow",
        .help = "send the metrics (system/colloc_*) into the MLflow run that MLFLOW_RUN_ID and "
                "MLFLOW_TRACKING_URI name"),
    [RECORD_WANDB] = FLAG_OPTION("wandb",
        .help = "send them into the W&B run that WANDB_RUN_ID names, by python3's package wandb"),
    [RECORD_TENSORBOARD] = OPTION("tensorboard", FILE, "FOLDER",
        .help = "write them to this folder as events for TensorBoard"),
};

/* ---- the summary as text ---- */

static void print_mean(FILE *out, const char *before, const char *name, const struct mean *mean,
    double unit, const char *unit_name)
{
    struct reading value = mean_value(mean);
    if (value.valid)
        fprintf(out, "%s%s %.1f %s", before, name, value.value * unit, unit_name);
    else
        fprintf(out, "%s%s -", before, name);
}

static void print_memory(FILE *out, const char *name, struct reading bytes)
{
    char text[32];
    if (bytes.valid)
        fprintf(out, ", %s %s", name, format_size((int64_t)bytes.value, text, sizeof text));
}

/*
 * The command's memory, where the driver lists its processes; else that of the whole GPU, and says
 * so:
 *
 *     GPU 0     NVIDIA H200, peak memory 11.4 GiB
 *               mean SMACT 61.2 %, SMOCC 18.0 %, DRAM 12.3 %, power 412.0 W
 *               energy 98.3 kJ, of it the command's 98.3 kJ
 */
static void print_gpu(FILE *out, const struct recorded_gpu *gpu)
{
    const struct gpu_totals *totals = &gpu->totals;
    fprintf(out, "GPU %-5s %s", gpu->info.index, gpu->info.name);
    print_memory(out, "peak memory", totals->used ? totals->our_peak_bytes : totals->peak_bytes);
    if (!totals->used)
        fputs(" (of the whole GPU)", out);
    print_mean(out, "\n          mean ", "SMACT", &totals->smact, 100, "%");
    print_mean(out, ", ", "SMOCC", &totals->smocc, 100, "%");
    print_mean(out, ", ", "DRAM", &totals->dram_active, 100, "%");
    print_mean(out, ", ", "power", &totals->power_w, 1, "W");
    fprintf(out, "\n          energy %.1f kJ, of it the command's %.1f kJ\n",
        totals->energy_j / 1e3, totals->our_energy_j / 1e3);
    if (totals->with_others)
        fprintf(out,
            "          shared with other processes%s; the command's part of SMACT is "
            "%.1f %%\n",
            totals->is_estimated
                ? ", and the driver does not report the activity of each process: it "
                  "is divided equally"
                : "",
            100 * reading_or(mean_value(&totals->our_smact), 0));
}

static bool is_of_interest(const struct recording *recording, const struct recorded_gpu *gpu)
{
    for (size_t i = 0; i < recording->n_gpus; i++)
        if (recording->gpu[i].totals.used)
            return gpu->totals.used;
    return gpu->totals.has_grown;
}

/* Only GPUs that the command used. If the driver does not list its processes, as in some
 * containers, GPUs whose memory use increased count as used. */
static void print_gpus(FILE *out, const struct recording *recording)
{
    size_t shown = 0;
    bool used = false;
    for (size_t i = 0; i < recording->n_gpus; i++) {
        if (!is_of_interest(recording, &recording->gpu[i]))
            continue;
        print_gpu(out, &recording->gpu[i]);
        used |= recording->gpu[i].totals.used;
        shown++;
    }
    if (recording->n_gpus == 0)
        fprintf(out, "GPUs      none: %s\n", recording->why_no_gpus);
    else if (shown == 0)
        fputs("GPUs      the command used none\n", out);
    else if (!used)
        fputs("          the driver does not list the command's processes: listed are "
              "GPUs whose memory use rose\n",
            out);
}

/* The last line has the cost of the measurement itself, and the number of late samples. How a
 * process of another ended and what it used of the host is not known. */
static void print_summary(FILE *out, const struct recording *recording, bool is_foreign)
{
    char elapsed[32], memory[32];
    int64_t elapsed_us = (int64_t)(recording->elapsed_s * (double)SECOND_US);
    if (recording->elapsed_s < 60)
        fprintf(out, "Time      %.2f s", recording->elapsed_s);
    else
        fprintf(out, "Time      %s", format_elapsed(elapsed_us, elapsed, sizeof elapsed));
    if (is_foreign)
        fputc('\n', out);
    else
        fprintf(out, ", CPU %.2f s (%.2f s user, %.2f s system), largest process %s, exit %d\n",
            recording->user_s + recording->system_s, recording->user_s, recording->system_s,
            format_size(recording->host_peak_bytes, memory, sizeof memory), recording->exit_code);
    print_gpus(out, recording);
    if (recording->n_gpus)
        fprintf(out, "Samples   %lld, %lld of them late; sampling took %.3f s of CPU time\n",
            (long long)recording->samples, (long long)recording->late_samples,
            recording->own_cpu_s);
}

/* ---- CSV and JSON ---- */

static json_t *json_of_gpu(const struct recorded_gpu *gpu)
{
    const struct gpu_totals *totals = &gpu->totals;
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f}", "index",
        gpu->info.index, "uuid", gpu->info.uuid, "name", gpu->info.name, "used", totals->used,
        "with_others", totals->with_others, "estimated", totals->is_estimated,
        "command_mem_peak_mib", json_reading(totals->our_peak_bytes, (double)MIB), "mem_peak_mib",
        json_reading(totals->peak_bytes, (double)MIB), "smact",
        json_reading(mean_value(&totals->smact), 1), "command_smact",
        json_reading(mean_value(&totals->our_smact), 1), "smocc",
        json_reading(mean_value(&totals->smocc), 1), "dram_active",
        json_reading(mean_value(&totals->dram_active), 1), "power_w",
        json_reading(mean_value(&totals->power_w), 1), "idle_w",
        json_reading(totals->meter.idle_w, 1), "energy_j", totals->energy_j, "command_energy_j",
        totals->our_energy_j);
}

/* The keys "looks" and "late_looks" are older than the word sample; programs read them. */
static void print_summary_json(FILE *out, const struct recording *recording)
{
    json_t *gpus = json_array();
    for (size_t i = 0; i < recording->n_gpus; i++)
        json_array_append_new(gpus, json_of_gpu(&recording->gpu[i]));
    json_t *summary = json_pack("{s:i, s:f, s:f, s:f, s:f, s:I, s:I, s:f, s:o}", "exit_code",
        recording->exit_code, "elapsed_s", recording->elapsed_s, "user_s", recording->user_s,
        "system_s", recording->system_s, "host_peak_mib",
        (double)recording->host_peak_bytes / (double)MIB, "looks", (json_int_t)recording->samples,
        "late_looks", (json_int_t)recording->late_samples, "monitor_cpu_s", recording->own_cpu_s,
        "gpus", gpus);
    if (*recording->why_no_gpus)
        json_object_set_new(summary, "why_no_gpus", json_string(recording->why_no_gpus));
    json_dumpf(summary, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(summary);
}

/* ---- the command ---- */

static int open_file(const struct option_value *value, FILE *otherwise, FILE **ret_file)
{
    *ret_file = value->set ? fopen(value->text, "we") : otherwise;
    if (*ret_file || !value->set)
        return 0;
    print_error("%s: %s", value->text, strerror(errno));
    return -errno;
}

static void close_file(const struct option_value *value, FILE *file)
{
    if (value->set && file && (ferror(file) | fclose(file)))
        print_error("%s: write error: the file is incomplete", value->text);
}

/* A command that could not be started has the exit codes of env(1). */
static int record_command(const struct invocation *invocation, FILE *csv, FILE *summary)
{
    const struct option_value *values = invocation->values;
    struct fault fault = {0};
    struct recording recording;
    const struct recorder_settings settings = {
        .argv = (char *const *)invocation->operands,
        .pid = (pid_t)option_number_or(&values[RECORD_PID], 0),
        .gpus = option_text_or(&values[RECORD_GPUS], ""),
        .period_us = option_number_or(&values[RECORD_INTERVAL], SECOND_US),
        .csv = csv,
    };
    int r = recorder_run(&settings, &fault, &recording);
    if (r < 0) {
        print_error("%s", fault.text);
        return r == -ENOENT   ? EXIT_NO_COMMAND
               : r == -EACCES ? EXIT_NOT_RUNNABLE
                              : EXIT_RECORD_FAILED;
    }
    if (invocation->common[COMMON_JSON].number)
        print_summary_json(summary, &recording);
    else
        print_summary(summary, &recording, values[RECORD_PID].set);
    int code = recording.exit_code;
    recording_fini(&recording);
    return code;
}

/* "mlflow,tensorboard:runs/7"; "": nothing is tracked. */
static void list_places(const struct option_value *values, char *places, size_t size)
{
    const struct option_value *tensorboard = &values[RECORD_TENSORBOARD];
    snprintf(places, size, "%s%s%s%s", values[RECORD_MLFLOW].set ? ",mlflow" : "",
        values[RECORD_WANDB].set ? ",wandb" : "", tensorboard->set ? ",tensorboard:" : "",
        tensorboard->set ? tensorboard->text : "");
    if (*places)
        memmove(places, places + 1, strlen(places));
}

static int record_tracked(
    const struct invocation *invocation, const char *places, FILE *csv, FILE *summary)
{
    struct record_tracker tracker;
    struct fault fault = {0};
    int r = track_places_check_runs(places, &fault);
    if (r == 0)
        r = record_tracker_open(places, csv, &fault, &tracker);
    if (r < 0) {
        print_error("%s", fault.text);
        return EXIT_RECORD_FAILED;
    }
    int code = record_command(invocation, tracker.csv, summary);
    record_tracker_close(&tracker);
    return code;
}

static int run(const struct invocation *invocation)
{
    const struct option_value *output = &invocation->values[RECORD_OUTPUT];
    const struct option_value *summary = &invocation->values[RECORD_SUMMARY];
    FILE *output_file = NULL, *summary_file = NULL;
    char places[PATH_MAX];
    int code = EXIT_RECORD_FAILED;
    if (invocation->values[RECORD_PID].set == (invocation->operand_count > 0)) {
        print_error("record: give a command, or --pid");
        return EXIT_USAGE;
    }
    list_places(invocation->values, places, sizeof places);
    if (open_file(output, NULL, &output_file) == 0 &&
        open_file(summary, stderr, &summary_file) == 0)
        code = *places ? record_tracked(invocation, places, output_file, summary_file)
                       : record_command(invocation, output_file, summary_file);
    close_file(output, output_file);
    close_file(summary, summary_file);
    return code;
}

const struct command command_record = {
    .name = "record",
    .usage = "[OPTION...] [--] COMMAND [WORD...] | --pid=PID",
    .summary = "run a command and measure its use of the GPUs, without a daemon",
    .description = "Samples the GPUs while the command runs and prints a summary: time, CPU "
                   "time, peak GPU memory of its processes, mean SMACT and SMOCC, power and "
                   "energy. All descendants of the command count as its processes. On a GPU "
                   "with other processes, activity and energy are divided by the kernel times "
                   "that the driver reports for each process, or equally where it reports none "
                   "(MPS); idle power is divided equally.\n\n"
                   "Signals that end a program are passed on to the command. The exit status is "
                   "the command's; 128 plus the signal when a signal ended it; 127 when the "
                   "command does not exist; 126 when it cannot be run; 125 when the recording "
                   "failed.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_PROGRAM,
    .min_operands = 0,
    .max_operands = -1,
    .rest_is_operands = true,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
