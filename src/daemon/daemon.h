/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collocd: a list of opaque parts over the driver of the core.
 *
 *     main.c  wiring.c  log_replay.c  reload.c    options and signals; creates, connects and ends
 *        |                                       the parts; replay of the log; settings read again
 *        v
 *     outside/     processes on GPUs outside of tasks
 *     messages/    mails and webhooks to users     scrape/    GET /metrics over TCP, for Prometheus
 *     http/        the API: routes, submissions, JSON, metrics
 *     suspension/  tasks off their GPUs and back   metrics/   metrics over time, by a thread
 *     attempts/    runs of tasks' scripts: launch, watch, adopt
 *     kernels/     asks cuDNN for the kernels of tasks' convolutions, and keeps the answers
 *     preload/     allocations that wait for GPUs  mps/       MPS control daemons of users
 *     gpus/        polls, attribution, usage       services/  how fast services answer
 *     rooms/       host memory ready for copies
 *        |
 *        v
 *     driver.c     the core, its clock and its log (every part posts its events here)
 *
 * A part calls those below it. A call up is a hook, which wiring.c connects. What the parts share
 * are src/service, and tables that call no part:
 *
 *     tasks and attempts    job, jobs, alone_time, array_tasks, attempt_list, dependencies,
 *                           learned_peak, overrun, preallocation, service_port, state_dir,
 *                           step_list, turns
 *     what was              audit, command_estimates, command_history, inputs, retention,
 *                           run_history, user_counts
 *     GPUs and figures      calibration, exposition, gpu_report, metric_names, metric_query,
 *                           metric_rows, mig_replan
 *     machine and settings  config, config_print, config_read, config_table, disk, kept_output,
 *                           notify, operators, share_file, time_base
 *
 * scripts/check-components holds the code to that, and this list to the code.
 *
 * This header is for the four files at the top only.
 */
#ifndef COLLOC_DAEMON_DAEMON_H
#define COLLOC_DAEMON_DAEMON_H

#include <uv.h>

#include "daemon/attempts/attempts.h"
#include "daemon/command_estimates.h"
#include "daemon/config.h"
#include "daemon/disk.h"
#include "daemon/driver.h"
#include "daemon/gpus/gpus.h"
#include "daemon/http/http.h"
#include "daemon/inputs.h"
#include "daemon/jobs.h"
#include "daemon/kept_output.h"
#include "daemon/kernels/kernel_asker.h"
#include "daemon/messages/messages.h"
#include "daemon/metrics/metric_recorder.h"
#include "daemon/mig_replan.h"
#include "daemon/mps/mps_manager.h"
#include "daemon/notify.h"
#include "daemon/outside/outside.h"
#include "daemon/preload/preload_manager.h"
#include "daemon/retention.h"
#include "daemon/run_history.h"
#include "daemon/scrape/scrape_server.h"
#include "daemon/services/services.h"
#include "daemon/share_file.h"
#include "daemon/suspension/suspension.h"
#include "service/web_server.h"

struct daemon {
    struct config config;
    int argc; /* the command line: it is stronger than the file also when that is read again */
    char **argv;
    int64_t open_files;      /* tasks' soft limit on open files: the daemon's as it was started */
    bool ends_with_terminal; /* in which it was started */

    uv_loop_t loop;
    uv_work_t first_work;
    uv_signal_t term_signal, int_signal, hangup_signal;
    struct notify notify;

    struct core *core;
    struct store *store;
    struct driver *driver;
    struct names *names;
    struct jobs *jobs;
    struct run_history run_history;
    struct inputs *inputs; /* NULL: not recorded */
    int n_reloads;         /* of the configuration: what an older one reads too late is dropped */
    struct disk *disk;
    struct kept_output *kept_output;
    struct retention *retention;
    struct mig_replan *mig_replan;

    struct attempts *attempts;
    struct gpus *gpus;
    struct kernel_asker *kernels;
    struct http *http;
    struct metric_recorder *metrics; /* NULL: none are recorded */
    struct mps *mps;
    struct suspension *suspension;
    struct preload_manager *preload;
    struct services *services;
    struct web *web;
    struct scrape *scrape;
    struct messages *messages; /* NULL: none are sent */
    struct outside *outside;
};

/* ---- wiring.c ---- */

/* Creates what the replay of the log requires: core, names, jobs. Returns 0 or a fault. */
int wiring_create_tables(struct daemon *daemon, struct fault *fault);

/* Creates the driver of the core. `last_us`: the core's time of the log's last event; 0: none.
 * Returns 0 or a fault. */
int wiring_create_driver(struct daemon *daemon, int64_t last_us, struct fault *fault);

/* Creates the parts and connects them, once the log is replayed. Returns 0 or a fault. */
int wiring_create_parts(struct daemon *daemon, struct fault *fault);

/* ---- log_replay.c ---- */

/* Opens the event log, creates the driver and replays the log into core, jobs and run history.
 * Returns 0 or a fault. */
int event_log_open(struct daemon *daemon, struct fault *fault);

/* ---- reload.c ---- */

/* Reads the configuration again, applies the settings that can change, and logs what did. */
void configuration_reload(struct daemon *daemon);

#endif
