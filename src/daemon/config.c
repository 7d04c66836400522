/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of settings. Each row names a field of struct config, the kind of its value
 * (base/setting.h), its default and its help; the file, the command line, --help, the man page and
 * a reload all read the table. So a new setting is a field and a row:
 *
 *     {"history", LIVE(history_us), &setting_duration, "TIME", NULL, "how long ended tasks ..."}
 *
 * The settings of the core are rows of core/settings.def. Here each has its place among the others.
 */
#include "daemon/config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "estimator/estimator.h"
#include "policy/policies.h"
#include "preload/wait_rule.h"
#include "service/setting_file.h"
#include "service/setting_kind.h"
#include "taskfile/option_words.h"

#define SAMPLES_USUAL "1s:1h,10s:1d,5m:30d" /* chosen: some 20,000 samples of each GPU */
#define DEFAULT_FILE  "/etc/colloc/collocd.yaml"
enum { VALUE_TEXT_MAX = 640 }; /* of any value: paths are the longest */

/* LIVE: the setting can change while the daemon runs. FIELD: it is read at the start only. CORE: a
 * setting of the core, by its ID in core/settings.def. */
#define FIELD(name) NULL, SETTING_AT(struct config, name), false
#define LIVE(name)  NULL, SETTING_AT(struct config, name), true
#define CORE(id)                                                                                   \
    {                                                                                              \
        .core = &core_setting_table[CORE_SETTING_##id]                                             \
    }

/* option_at fills in what the core's table says. */
static const struct option {
    const char *name;
    const struct core_setting *core; /* NULL: it is none of the core's */
    size_t offset, size;
    bool is_live; /* can change while the daemon runs */
    const struct setting_kind *kind;
    const char *takes;
    const char *default_text; /* of a path or list; NULL: config_defaults' value, as text */
    const char *help;
} options[] = {
    {"socket", FIELD(socket_path), &setting_text, "PATH", "/run/colloc/collocd.sock",
        "Unix socket on which collocd listens"},
    {"state-dir", FIELD(state_dir), &setting_text, "FOLDER", "/var/lib/colloc",
        "folder of the event log, the run history and the tasks' logs"},
    {"log-level", LIVE(log_level), &setting_log_level, "LEVEL", NULL,
        "the least important messages to log: error, warning, info or debug"},
    {"gpus", FIELD(gpus), &setting_text, "LIST", "all",
        "GPUs to manage, as a comma-separated list of indices or UUIDs; colloc never uses the "
        "others"},
    {"drain", LIVE(drain), &setting_text, "LIST", "",
        "GPUs, as for gpus, on which no further task starts; running ones continue"},
    {"operators", LIVE(operators), &setting_text, "LIST", "",
        "users that may cancel, hold, release, requeue, suspend, resume, move and update the tasks of "
        "all users but root, raise priorities and reserve GPUs; names, comma-separated"},
    {"policy", LIVE(core.policy), &setting_policy, "NAME", NULL,
        "placement policy of tasks that name none: {choices}"},
    {"estimator", LIVE(estimator), &setting_text, "NAME", ESTIMATOR_USUAL,
        "estimator of the GPU memory requirement, for tasks with neither --estimator nor "
        "--memory"},
    {"reserve-quantile", LIVE(reserve_quantile), &setting_quantile, "Q", NULL,
        "memory to reserve for a task: this quantile of the estimate's calibrated error "
        "distribution (0.5, 0.9 or 0.99); an estimator without calibration gives one value"},
    {"kernels-memory", LIVE(kernels_memory), &setting_size, "SIZE", NULL,
        "memory of a GPU that the program which asks cuDNN for convolutions' kernels may take for some "
        "seconds, where as much is free (docs/estimate.md); 0: cuDNN is not asked"},
    {"cudnn-library", LIVE(cudnn_library), &setting_text, "PATH", "libcudnn.so.9",
        "path or name of the cuDNN library that is asked: best that of the trainings' PyTorch"},
    {"cudnn-user", LIVE(cudnn_user), &setting_text, "USER", "65534",
        "name or number of the user that the program which asks cuDNN runs as, where collocd is root: "
        "one without other rights, whose groups may open the GPUs' device files"},
    CORE(SMACT_MAX),
    CORE(SMACT_SUM_MAX),
    CORE(MIN_FREE),
    CORE(MARGIN),
    CORE(TASKS_PER_GPU),
    CORE(WINDOW),
    CORE(STATISTIC),
    CORE(SETTLE),
    CORE(SETTLE_MAX),
    CORE(DECISION_DELAY),
    CORE(STARTING_MAX),
    CORE(SLOWDOWN_MAX),
    {"calibration", FIELD(calibration), &setting_text, "FILE", "",
        "file that `colloc calibrate` wrote: what sharing costs on this host, for the policy "
        "predictive; empty: the constants that are built in"},
    CORE(SERVER_POWER_MAX),
    CORE(POWER_MAX),
    CORE(PCIE_MAX),
    {"near-cpus", LIVE(near_cpus), &setting_flag, "yes|no", NULL,
        "start tasks on the CPUs of their GPUs' NUMA nodes, where the driver reports them and they "
        "are enough for the task"},
    {"sharing", LIVE(sharing), &setting_sharing, "HOW", "auto",
        "how a task without --sharing shares a GPU: streams (time-sliced), mps, or auto "
        "(chosen with each placement, mostly mps). An MPS server serves one user at a time: where "
        "several users share GPUs, mps makes their tasks wait for each other; choose auto or "
        "streams, or see mps-users-together. With preempt, slots, make-room, suspend-unused-after or "
        "gpu-filter the default is streams: they need what MPS does not have"},
    CORE(FILLER_SMACT),
    CORE(FILLER_PERCENT),
    {"mps-gpus", FIELD(mps_gpus), &setting_text, "LIST", "all",
        "GPUs and MIG instances on which tasks may share by MPS, as a comma-separated list of indices "
        "(0, or 0:1 for an instance) or UUIDs; on the others they are time-sliced, whatever "
        "--sharing says"},
    CORE(MPS_USERS_TOGETHER),
    CORE(MPS_MEM_LIMIT),
    {"mps-linger", LIVE(mps_linger_us), &setting_duration, "TIME", NULL,
        "stop a user's MPS control daemon after this long without a task that uses it"},
    {"mig-plan", LIVE(mig_plan_us), &setting_duration, "TIME", NULL,
        "while tasks wait, plan this often how to divide the GPUs that have MIG enabled, and divide "
        "those without tasks where that is worth it (docs/mig.md); needs root; 0: never"},
    {"gpu-filter", FIELD(gpu_filter), &setting_flag, "yes|no", NULL,
        "keep tasks from opening GPUs that they were not given, by a BPF program of their cgroups; "
        "not for clients of MPS; needs root, cgroup v2 and suspend: no"},
    {"outside", LIVE(outside), &setting_outside, "WAY", NULL,
        "what happens with processes that use a GPU outside of tasks (docs/outside.md): show lists "
        "them in `colloc gpus`; message writes to their users, too; limit also keeps further ones "
        "from opening a GPU, which needs root, cgroup v2 and Linux 5.7"},
    {"outside-after", LIVE(outside_after_us), &setting_duration, "TIME", NULL,
        "with outside: how old a process is when its user gets a message; a user gets one an hour at "
        "most"},
    {"outside-text", LIVE(outside_text), &setting_text, "TEXT", NULL,
        "with outside: what the message says after naming the process and its GPU"},
    {"outside-users", LIVE(outside_users), &setting_text, "LIST", "",
        "users that may use GPUs outside of tasks, as root and system users may: they get no "
        "message, and outside: limit lets them pass; names, comma-separated"},
    {"framework-memory-limit", LIVE(framework_mem_limit), &setting_flag, "yes|no", NULL,
        "limit each time-sliced task to its memory requirement and the margin through the "
        "settings of PyTorch and JAX; JAX then allocates that amount when it starts"},
    {"preload", LIVE(preload), &setting_flag, "yes|no", NULL,
        "load a library into the processes of tasks, by which an allocation waits when GPU memory "
        "is short instead of failing, and which suspensions need (docs/preload.md)"},
    {"memory-wait", LIVE(memory_wait_us), &setting_duration, "TIME", NULL,
        "with preload: the longest time an allocation waits for GPU memory before the task gets "
        "the error; 0: it does not wait"},
    {"memory-cap", LIVE(memory_cap), &setting_flag, "yes|no", NULL,
        "with preload: a time-sliced task with a known memory requirement waits before it "
        "takes more than that and the margin, until as much is free"},
    {"carrier", LIVE(carrier), &setting_flag, "yes|no", NULL,
        "with preload: the library in a task's processes takes their GPU memory off the GPU and "
        "puts it back when the task is suspended and resumed, several times as fast as the driver, "
        "also for clients of MPS; on x86_64 (docs/carrier.md)"},
    {"carrier-pool", LIVE(carrier_pool), &setting_size, "SIZE", NULL,
        "with carrier: host memory that the daemon holds ready for copies of tasks' GPU memory, "
        "so that suspensions need not wait for it; 0: a sixteenth of the host's memory, and a "
        "quarter once that was too small for a task that gave way; less than 64MiB: none"},
    CORE(ORDER),
    CORE(USAGE_HALF_LIFE),
    {"shares", LIVE(shares), &setting_text, "FILE", "",
        "file with projects, their users and the shares of both (docs/fair-share.md); empty: all "
        "users have equal shares"},
    CORE(BACKFILL),
    CORE(LOOK_AHEAD),
    CORE(MAKE_ROOM),
    CORE(PREEMPT),
    {"slots", LIVE(slots), &setting_flag, "yes|no", NULL,
        "let tasks without --slot take turns: when a task's time slot is over and another waits, "
        "it is suspended until its next turn"},
    CORE(SLOT),
    CORE(CAN_SUSPEND),
    CORE(NEIGHBOUR_MEMORY),
    {"suspend-memory-max", LIVE(suspend_memory_max), &setting_size, "SIZE", NULL,
        "host memory that suspended tasks may take together; 0: half of the host's memory"},
    {"suspend-any-driver", LIVE(suspend_any_driver), &setting_flag, "yes|no", NULL,
        "suspend and move tasks also with a driver whose open kernel module can hang the host when "
        "a resumed process ends (595 and newer)"},
    {"suspend-without-gate", LIVE(suspend_without_gate), &setting_flag, "yes|no", NULL,
        "suspend also tasks that run without libcolloc-preload.so: the driver crashes those "
        "whose next CUDA call is a synchronize"},
    {"unused-after", LIVE(unused_after_us), &setting_period, "TIME", NULL,
        "report a task that has held a GPU for this long without using it"},
    CORE(SUSPEND_UNUSED),
    CORE(RANKS_AWAY),
    CORE(RECOVERY),
    CORE(RECOVERY_STEP),
    CORE(RECOVERIES),
    CORE(REQUEUES),
    {"services-for-all", LIVE(services_for_all), &setting_flag, "yes|no", NULL,
        "let every user submit services, which other users' tasks give way to; no: root and the "
        "operators only"},
    CORE(SERVICE_HOLD),
    CORE(LEARN_DELAYS),
    CORE(THIN_OUT),
    CORE(PROBE_SHARE),
    {"tasks-per-user", LIVE(tasks_per_user), &setting_count, "N", NULL,
        "the largest number of queued and running tasks of one user; further submissions are "
        "refused (root has no limit)"},
    {"tasks-per-project", LIVE(tasks_per_project), &setting_count, "N", NULL,
        "as tasks-per-user, of all users of a project (setting shares) together; 0: no limit"},
    CORE(USER_TASKS),
    CORE(USER_GPUS),
    CORE(USER_MEMORY),
    CORE(USER_USAGE),
    CORE(USAGE_WINDOW),
    CORE(PROJECT_TASKS),
    CORE(PROJECT_GPUS),
    CORE(PROJECT_MEMORY),
    CORE(PROJECT_USAGE),
    {"bytes-per-user", LIVE(bytes_per_user), &setting_size, "SIZE", NULL,
        "the largest size of all scripts, environments, arguments and summaries of one user's tasks "
        "that have not ended, or ended in the last 24 hours; further submissions are refused (root "
        "has no limit)"},
    {"request-memory", FIELD(request_bytes_max), &setting_request_memory, "SIZE", NULL,
        "the largest amount of memory for all requests and replies in progress; at least 64MiB"},
    {"host-cpus", LIVE(host_cpus), &setting_count, "N", NULL,
        "CPUs of the server that tasks with --cpus may have together; 0: all"},
    {"host-memory", LIVE(host_memory_bytes), &setting_size, "SIZE", NULL,
        "main memory of the server that tasks with --host-memory may have together, and where "
        "cgroups have a memory controller all tasks; 0: nine tenths"},
    {"cpus-per-gpu", LIVE(per_gpu.cpus), &setting_count, "N", NULL,
        "CPUs, for each of its GPUs, of a task without --cpus; 0: it is not counted or limited"},
    {"host-memory-per-gpu", LIVE(per_gpu.memory_bytes), &setting_size, "SIZE", NULL,
        "main memory, for each of its GPUs, of a task without --host-memory; 0: it is not counted "
        "or limited"},
    {"host-memory-share", LIVE(host_memory_share), &setting_flag, "yes|no", NULL,
        "limit a task that names no main memory to its GPUs' part of host-memory, where cgroups have "
        "a memory controller; it is not counted"},
    {"processes-per-task", LIVE(processes_per_task), &setting_count, "N", NULL,
        "the largest number of processes and threads of a task, where cgroups have a pids "
        "controller; 0: no limit"},
    {"sample-period", LIVE(sample_period_us), &setting_period, "TIME", NULL,
        "interval between two samples of every GPU"},
    {"gpm-interval", FIELD(gpm_interval_us), &setting_period, "TIME", NULL,
        "shortest interval over which NVML measures SM activity; real GPUs need at least "
        "100ms, emulated GPUs accept less"},
    {"samples", FIELD(samples), &setting_samples, "STEP:TIME,...", NULL,
        "how long samples of the GPUs are kept at which resolution, as a comma-separated list; "
        "none: keep no samples"},
    {"metrics-size", FIELD(metrics_bytes_max), &setting_size, "SIZE", NULL,
        "the largest size of the database of the metrics of GPUs and tasks over time; the oldest "
        "are removed when it is reached; 0: do not record them"},
    {"nvml-library", FIELD(nvml_library), &setting_text, "PATH", "libnvidia-ml.so.1",
        "path or name of the NVML library to load"},
    {"dcgmi", FIELD(dcgmi), &setting_text, "PROGRAM", "dcgmi",
        "the dcgmi program of NVIDIA DCGM, which measures the SM activity of GPUs before "
        "Hopper where DCGM's library does not work; none: do not use DCGM"},
    {"history", LIVE(history_us), &setting_duration, "TIME", NULL,
        "how long ended tasks are kept in the history"},
    {"co2-per-kwh", LIVE(co2_g_per_kwh), &setting_count, "GRAMS", NULL,
        "grams of CO2 for each kWh that the GPUs draw, for `colloc report`; the default is the "
        "world's mean of 2024"},
    {"output-max", LIVE(output_max_bytes), &setting_size, "SIZE", NULL,
        "the largest size of a task's default output file, colloc-ID.out, and colloc-ID.out.1 "
        "together: at half of it the file's content goes to the latter, whose own is dropped; files "
        "that users name have no limit; 0: no limit"},
    {"kept-output", LIVE(kept_output_bytes), &setting_size, "SIZE", NULL,
        "the largest size of each output file in the state folder; when a file reaches it, its "
        "older half is dropped; 0: no limit"},
    {"kept-output-per-user", LIVE(kept_output_user_bytes), &setting_size, "SIZE", NULL,
        "the largest size of a user's output files in the state folder together; beyond it the "
        "oldest are dropped but for their last 16 KiB, as they are when the disk is 90 % full; 0: "
        "no limit"},
    {"log-reserve", FIELD(log_reserve_bytes), &setting_size, "SIZE", NULL,
        "disk space kept free for the event log, so that ends and cancels can be recorded when "
        "the disk is full; 0: none"},
    {"record-inputs", FIELD(record_inputs), &setting_text, "FILE", "",
        "file that records every event, sample and decision of the scheduler for `colloc "
        "replay`; empty: no recording"},
    {"record-inputs-max", LIVE(record_inputs_max), &setting_size, "SIZE", NULL,
        "size of the record-inputs file at which recording stops"},
    {"web", FIELD(web), &setting_web, "ADDRESS:PORT", "on-demand",
        "where the web page is served, such as 127.0.0.1:7480; on-demand: at 127.0.0.1 after the "
        "first `colloc web`; none: never"},
    {"metrics-listen", FIELD(metrics_listen), &setting_address, "ADDRESS:PORT", "none",
        "where Prometheus reads `GET /metrics`, such as 127.0.0.1:7481; none: nowhere"},
    {"metrics-token-file", FIELD(metrics_token_file), &setting_text, "FILE", "",
        "file with the token that a reader of metrics-listen must show (Authorization: Bearer); "
        "required where other machines reach the address"},
    {"mail-server", LIVE(mail_server), &setting_mail_server, "URL", "none",
        "server that takes the mails to users about their tasks, such as smtp://127.0.0.1:25 "
        "(docs/messages.md); none: only webhooks are sent"},
    {"mail-from", LIVE(mail_from), &setting_mail_address, "ADDRESS", NULL, "sender of these mails"},
    {"mail-login-file", FIELD(mail_login_file), &setting_text, "FILE", "",
        "file with USER:PASSWORD for the mail-server, which other users must not be able to read; "
        "the connection is then encrypted, or no mail is sent"},
    {"mail-ca-file", FIELD(mail_ca_file), &setting_text, "FILE", "",
        "certificates of the authorities (PEM) that the mail-server's certificate is checked with; "
        "empty: the system's"},
    {"alerts-to", FIELD(alerts_to), &setting_alerts, "ADDRESS", "none",
        "mail address or https:// URL that gets a message when a GPU is lost or faulty, and when it "
        "is healthy again (docs/messages.md)"},
    {"message-retry", LIVE(message_retry_us), &setting_period, "TIME", NULL,
        "after this time a message that could not be delivered is tried again; each further time "
        "is twice the last, up to 1h, and 12 attempts are made"},
    {"shim", FIELD(shim), &setting_text, "PATH", "(as installed)",
        "path of the colloc-shim program, which runs each task"},
    {"checkpoint", FIELD(checkpoint), &setting_text, "PATH", "(as installed)",
        "path of the colloc-checkpoint program, which calls the NVIDIA driver to suspend tasks"},
    {"cudnn-program", FIELD(cudnn_program), &setting_text, "PATH", "(as installed)",
        "path of the colloc-cudnn program, which asks cuDNN for the kernels of convolutions"},
    {"messenger", FIELD(messenger), &setting_text, "PATH", "(as installed)",
        "path of the colloc-message program, which delivers messages"},
    {"preload-library", FIELD(preload_library), &setting_text, "PATH", "(as installed)",
        "path of libcolloc-preload.so"},
    {"controller", FIELD(controller), &setting_host_port, "HOST:PORT", "none",
        "with --node: where colloc-slurm listens for the agents of Slurm nodes (docs/slurm-node.md)"},
    {"controller-user", FIELD(controller_user), &setting_user, "USER", "root",
        "with --node: the user that colloc-slurm runs as; answers of others are not accepted"},
    {"node-name", FIELD(node_name), &setting_text, "NODE", "",
        "with --node: Slurm's name of this node; empty: the host's name up to its first dot"},
    {"node-socket", FIELD(node_socket), &setting_text, "PATH", "/run/colloc/node.sock",
        "with --node: Unix socket for requests of Slurm's job steps"},
    {"node-auth", FIELD(node_auth), &setting_node_auth, "HOW", NULL,
        "with --node: how the node authenticates to colloc-slurm: munge; or tls, by a shared key, for "
        "clusters without munge"},
    {"node-key-file", FIELD(node_key_file), &setting_text, "FILE", "",
        "with --node: file of that key; empty: " NODE_KEY_USUAL},
    {"munge-socket", FIELD(munge_socket), &setting_text, "PATH", "",
        "with --node: munged's Unix socket; empty: that of the system's munge"},
};
#define OPTIONS ARRAY_SIZE(options)

/* The sections of the table, by the first setting of each. */
static const struct section {
    const char *first, *title;
} sections[] = {
    {"socket", "Where collocd runs, and for which GPUs and users"},
    {"policy", "Placement (docs/placement.md)"},
    {"sharing", "How tasks share a GPU (docs/collocation.md)"},
    {"order", "The order of the queue (docs/fair-share.md)"},
    {"suspend", "Suspension, and GPUs that are held unused (docs/suspend.md)"},
    {"recovery", "Tasks that are run again"},
    {"services-for-all", "Services (docs/services.md)"},
    {"tasks-per-user", "Limits of users and projects (docs/arrays.md)"},
    {"host-cpus", "The server's CPUs, main memory and processes"},
    {"sample-period", "Samples of the GPUs (docs/monitor.md)"},
    {"history", "What is kept of tasks (docs/accounting.md)"},
    {"web", "The web page and metrics"},
    {"mail-server", "Messages (docs/messages.md)"},
    {"shim", "Programs that come with collocd"},
    {"controller", "The agent of a Slurm node, collocd --node (docs/slurm-node.md)"},
};

static struct option option_at(size_t i)
{
    const struct core_setting *core = options[i].core;
    if (!core)
        return options[i];
    return (struct option){.name = core->name,
        .offset = offsetof(struct config, core) + core->offset,
        .size = core->size,
        .is_live = !core->at_start,
        .kind = core->kind,
        .takes = core->argument,
        .help = core->help};
}

static void format_value(
    const struct option *option, const struct config *config, char *text, size_t size)
{
    setting_format(option->kind, (const char *)config + option->offset, text, size);
    bool has_default = option->default_text && *option->default_text;
    if (!*text)
        snprintf(text, size, "%s", has_default ? option->default_text : "none");
}

void config_change(
    struct config *config, const struct config *wanted, config_on_change *on_change, void *context)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option option = option_at(i);
        char from[VALUE_TEXT_MAX] = "?", to[VALUE_TEXT_MAX] = "?";
        format_value(&option, config, from, sizeof from);
        format_value(&option, wanted, to, sizeof to);
        if (strcmp(from, to) == 0)
            continue;
        if (option.is_live)
            memcpy(
                (char *)config + option.offset, (const char *)wanted + option.offset, option.size);
        on_change(context, option.name, from, to, option.is_live);
    }
}

/* Chosen: nine tenths leave enough to the system. */
static void complete_host(const struct config *config, struct host_resources *ret_host)
{
    int64_t memory_bytes = sysconf(_SC_PHYS_PAGES) / 10 * 9 * sysconf(_SC_PAGESIZE);
    *ret_host = (struct host_resources){
        .cpus = config->host_cpus ? config->host_cpus : (int)sysconf(_SC_NPROCESSORS_ONLN),
        .memory_bytes = config->host_memory_bytes ? config->host_memory_bytes : memory_bytes};
}

/* Chosen: three periods without a sample show that NVML has stalled; at least a second, because a
 * busy driver may take that long. */
void config_complete(struct config *config)
{
    const int64_t least_us = SECOND_US;
    int64_t periods_us = 3 * config->sample_period_us;
    config->core.conditions.sample_valid_us = periods_us > least_us ? periods_us : least_us;
    complete_host(config, &config->core.host);
    config->core.copies_max_bytes = config_copies_max(config);
}

static void default_folder(
    char *field, size_t size, const char *variable, const char *below_home, const char *name)
{
    const char *base = getenv(variable), *home = getenv("HOME");
    if (base && base[0] == '/')
        snprintf(field, size, "%s/colloc%s", base, name);
    else if (below_home && home && home[0] == '/')
        snprintf(field, size, "%s/%s/colloc%s", home, below_home, name);
    else
        snprintf(field, size, "/tmp/colloc-%u%s", (unsigned)geteuid(), name);
}

/* The programs and the library that come with collocd: where they are installed, bundled beside it,
 * or in a build folder. */
static void find_own_files(struct config *config)
{
    static const char *const shim_places[] = {"../" COLLOC_LIBEXEC_DIR "/colloc", "../exec", "."};
    static const char *const checkpoint_places[] = {
        "../" COLLOC_LIBEXEC_DIR "/colloc", "../checkpoint", "."};
    static const char *const cudnn_places[] = {
        "../" COLLOC_LIBEXEC_DIR "/colloc", "../kernels", "."};
    static const char *const messenger_places[] = {
        "../" COLLOC_LIBEXEC_DIR "/colloc", "../message", "."};
    static const char *const library_places[] = {"../" COLLOC_LIB_DIR "/colloc", "../preload", "."};
    const struct {
        const char *name, *otherwise, *const *places;
        char *field;
    } files[] = {
        {"colloc-shim", COLLOC_SHIM_PATH, shim_places, config->shim},
        {"colloc-checkpoint", COLLOC_CHECKPOINT_PATH, checkpoint_places, config->checkpoint},
        {"colloc-cudnn", COLLOC_CUDNN_PATH, cudnn_places, config->cudnn_program},
        {"colloc-message", COLLOC_MESSAGE_PATH, messenger_places, config->messenger},
        {"libcolloc-preload.so", COLLOC_PRELOAD_LIBRARY_PATH, library_places,
            config->preload_library},
    };
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        setting_parse(&setting_text, files[i].otherwise, files[i].field, sizeof config->shim);
        beside_find(files[i].places, ARRAY_SIZE(shim_places), files[i].name, files[i].field,
            sizeof config->shim);
    }
}

static void choose_folders(struct config *config)
{
    if (geteuid() == 0) {
        setting_parse(&setting_text, "/run/colloc/collocd.sock", config->socket_path,
            sizeof config->socket_path);
        setting_parse(
            &setting_text, "/var/lib/colloc", config->state_dir, sizeof config->state_dir);
        return;
    }
    default_folder(
        config->socket_path, sizeof config->socket_path, "XDG_RUNTIME_DIR", NULL, "/collocd.sock");
    default_folder(
        config->state_dir, sizeof config->state_dir, "XDG_STATE_HOME", ".local/state", "");
}

/* Neither the file nor the command line has a value. */
#define SHARING_NOT_SET SHARINGS

/* The library counts a process's calls of the driver on x86_64 only (preload/call_stubs.c). */
#if defined(__x86_64__)
enum { CAN_CARRY = true };
#else
enum { CAN_CARRY = false };
#endif

void config_defaults(struct config *config)
{
    *config = (struct config){
        .sharing = SHARING_NOT_SET,
        .core = core_settings_default(),
        .kernels_memory = 768 * MIB, /* 530 to 636 MiB were taken on an H200: now as long as the
                                      * context has its stacks (docs/measured/kernels.md) */
        .cudnn_library = "libcudnn.so.9",
        .cudnn_user = "65534", /* without rights on every Linux */
        .sample_period_us = SECOND_US,
        .metrics_bytes_max = 200 * MIB,
        .web = "on-demand",
        .metrics_listen = "none",
        .mail_server = "none",
        .mail_from = "colloc@localhost",
        .alerts_to = "none",
        .message_retry_us = 30 * SECOND_US,
        .gpm_interval_us = 100 * MS_US,
        .mps_linger_us = 60 * SECOND_US,
        .near_cpus = true,
        .host_memory_share = true,
        .outside_after_us = 60 * SECOND_US, /* chosen: a shorter one ends before that is read */
        .outside_text =
            "Other tasks share it. Start such work by `colloc run -- COMMAND` or `colloc "
            "submit`, and end this process.",
        .preload = true,
        .carrier = CAN_CARRY,
        .memory_wait_us = WAIT_BOUND_MS * MS_US,
        .unused_after_us = 600 * SECOND_US,
        .history_us = 90 * DAY_US,
        .tasks_per_user = 20000,
        .processes_per_task = 16384, /* chosen: beyond any training, far below the kernel's limit */
        .co2_g_per_kwh = 473,        /* Ember, Global Electricity Review 2025: the world in 2024 */
        .bytes_per_user = 512 * MIB, /* chosen: 20,000 tasks of 26 KiB, which is a large one */
        .log_reserve_bytes = 16 * MIB,      /* chosen: some 10,000 ends at 1 KiB each */
        .kept_output_bytes = GIB,           /* chosen: a training writes a few MiB a day */
        .kept_output_user_bytes = 10 * GIB, /* chosen: ten of the largest files */
        .request_bytes_max = GIB,
        .record_inputs_max = GIB,
        .log_level = LOG_LEVEL_INFO,
        .reserve_quantile = ESTIMATE_RESERVED_QUANTILE,
        .estimator = ESTIMATOR_USUAL,
        .dcgmi = "dcgmi",
        .controller = "none",
        .controller_user = "root",
        .node_socket = "/run/colloc/node.sock",
    };
#define COLLOCD_DEFAULT(member, value) config->core.member = value;
#include "core/settings.def"
    config->core.policy = &policy_magm;
    config->core.shares = &config->share_table;
    share_table_init(&config->share_table);
    setting_parse(&setting_samples, SAMPLES_USUAL, &config->samples, sizeof config->samples);
    find_own_files(config);
    choose_folders(config);
}

bool config_next_name(const char **at, char *ret_name, size_t size)
{
    while (**at) {
        struct span name = {*at, strcspn(*at, ",")};
        *at += name.size;
        *at += **at == ',';
        name = span_trim(name);
        if (name.size && span_copy(name, ret_name, size))
            return true;
    }
    return false;
}

bool config_is_operator(const struct config *config, const char *user)
{
    const char *at = config->operators;
    char name[sizeof config->operators];
    while (config_next_name(&at, name, sizeof name))
        if (strcmp(name, user) == 0)
            return true;
    return false;
}

/* As an option of a command line. The only choices that a setting's help lists are policies. */
static struct option_spec spec_of(const struct option *option)
{
    return (struct option_spec){.name = option->name,
        .kind = OPTION_TEXT,
        .argument = option->takes,
        .help = option->help,
        .choice_at = policy_name_at};
}

static void list_specs(struct option_spec specs[static OPTIONS])
{
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option option = option_at(i);
        specs[i] = spec_of(&option);
    }
}

static int set_option(
    struct config *config, const struct option *option, const char *value, struct fault *fault)
{
    char help[OPTION_HELP_MAX];
    const struct option_spec spec = spec_of(option);
    void *field = (char *)config + option->offset;
    if (setting_parse(option->kind, value, field, option->size) == 0)
        return 0;
    option_help_text(&spec, help, sizeof help);
    return fault_set(fault, EINVAL, "%s: invalid value '%s': give %s (%s)", option->name, value,
        option->kind->expects, help);
}

/* What a file has set so far. */
struct file_settings {
    struct config *config;
    bool is_set[OPTIONS];
};

/* A bare number is MiB, which an administrator may not have meant. */
static void warn_without_unit(const struct option *option, const char *value)
{
    if (option->kind->type == SETTING_SIZE && !value[strspn(value, "0123456789.")] &&
        value[strspn(value, "0.")])
        log_warning("%s: '%s' has no unit, so it is MiB: write %sMiB, or %sGiB if you mean that",
            option->name, value, value, value);
}

static int take_setting(
    void *context, const char *name, const char *value, bool is_list, struct fault *fault)
{
    struct file_settings *file = context;
    struct option_spec specs[OPTIONS];
    list_specs(specs);
    const struct option_spec *spec = option_find(specs, OPTIONS, name);
    if (spec) {
        size_t i = (size_t)(spec - specs);
        const struct option option = option_at(i);
        if (file->is_set[i])
            log_warning("%s: is set twice in the configuration: the last line counts", name);
        file->is_set[i] = true;
        if (is_list && strcmp(option.takes, "LIST") != 0)
            return fault_set(
                fault, EINVAL, "%s: a list is no value of it: give %s", name, option.kind->expects);
        warn_without_unit(&option, value);
        return set_option(file->config, &option, value, fault);
    }
    const char *near = option_find_near(&(struct option_set){specs, OPTIONS, NULL}, 1, name);
    if (near)
        return fault_set(fault, EINVAL, "%s: unknown setting: did you mean %s?", name, near);
    return fault_set(
        fault, EINVAL, "%s: unknown setting: `collocd --help` lists all settings", name);
}

/* ---- the command line ---- */

/* The options of a command line beside the settings. */
enum { ARGUMENT_CONFIG, ARGUMENT_CHECK, ARGUMENTS };
static const struct option_spec own_arguments[ARGUMENTS] = {
    [ARGUMENT_CONFIG] = {.name = "config", .kind = OPTION_FILE, .argument = "FILE"},
    [ARGUMENT_CHECK] = {.name = "check", .kind = OPTION_FLAG},
};

/* The values of a command line. */
struct arguments {
    struct config *config; /* takes the settings; NULL: they are skipped */
    const char *file;      /* the first --config, or NULL */
    bool only_check;
};

static int take_argument(
    struct arguments *arguments, const struct option_word *word, struct fault *fault)
{
    if (word->spec == &own_arguments[ARGUMENT_CHECK]) {
        arguments->only_check = true;
        return strcmp(word->value, "yes") == 0
                   ? 0
                   : fault_set(fault, EINVAL, "--check: takes no value");
    }
    if (word->spec == &own_arguments[ARGUMENT_CONFIG]) {
        if (!arguments->file)
            arguments->file = word->value;
        return 0;
    }
    if (!arguments->config)
        return 0;
    const struct option option = option_at((size_t)(word->spec - word->set->specs));
    return set_option(arguments->config, &option, word->value, fault);
}

static int read_arguments(
    struct arguments *arguments, const char *const *words, int count, struct fault *fault)
{
    struct option_spec specs[OPTIONS];
    list_specs(specs);
    const struct option_set sets[] = {{own_arguments, ARGUMENTS, NULL}, {specs, OPTIONS, NULL}};
    for (int i = 0; i < count;) {
        struct option_word word;
        int taken = option_next(sets, ARRAY_SIZE(sets), words + i, count - i, &word, fault);
        if (taken == 0)
            return fault_set(fault, EINVAL,
                "%s: unexpected argument: collocd takes only options (`collocd --help` lists them)",
                words[i]);
        int r = taken < 0 ? taken : take_argument(arguments, &word, fault);
        if (r < 0)
            return r;
        i += taken;
    }
    return 0;
}

/* Checks what no single value shows. Shims run in other folders, so they need the whole path. */
static int check_settings(const struct config *config, struct fault *fault)
{
    if (config->state_dir[0] != '/')
        return fault_set(
            fault, EINVAL, "state-dir: '%s': give an absolute path", config->state_dir);
    int r = core_settings_check(&config->core, fault);
    if (r < 0)
        return r;
    if (config->core.preempt && config->slots)
        return fault_set(fault, EINVAL,
            "slots: with preempt, the policy decides which task gives way: set only one of the two");
    if (config->gpu_filter && config->core.can_suspend)
        return fault_set(fault, EINVAL,
            "gpu-filter: a task that sees only its own GPUs cannot be put on others: set suspend: no");
    return 0;
}

/*
 * MPS gets the most done (docs/collocation.md), but NVIDIA's driver does not suspend its clients,
 * and its server opens the GPUs for them, whatever the filter of their cgroup says. Where a setting
 * needs these, tasks are time-sliced by default.
 */
static enum sharing default_sharing(const struct config *config)
{
    const struct core_settings *core = &config->core;
    bool suspends = core->preempt || core->make_room || core->suspend_unused_us > 0 ||
                    config->slots;
    return suspends || config->gpu_filter ? SHARING_STREAMS : SHARING_AUTO;
}

int config_read_arguments(struct config *config, int argc, char **argv,
    setting_file_on_mistake *on_mistake, struct fault *fault)
{
    const char *const *words = (const char *const *)argv + 1;
    struct arguments first = {0}, second = {.config = config};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return CONFIG_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return CONFIG_VERSION;
    }
    int r = read_arguments(&first, words, argc - 1, fault);
    if (r == 0 && !first.file && geteuid() == 0 && access(DEFAULT_FILE, F_OK) == 0)
        first.file = DEFAULT_FILE;
    if (r == 0 && first.file)
        r = setting_file_read(
            first.file, take_setting, &(struct file_settings){.config = config}, on_mistake, fault);
    if (r == 0)
        r = read_arguments(&second, words, argc - 1, fault);
    if (r == 0)
        r = check_settings(config, fault);
    config->core.carries_mps = config->carrier && config->preload;
    if (config->sharing == SHARING_NOT_SET)
        config->sharing = default_sharing(config);
    return r == 0 && first.only_check ? CONFIG_CHECK : r;
}

/* Printed after the default of a setting that a reload does not change. */
#define AT_START "; a change needs a restart"

/* In roff, "\\-" is the hyphen that a user types. */
static void print_roff_name(FILE *out, const char *name)
{
    for (; *name; name++)
        fputs(*name == '-' ? "\\-" : (char[]){*name, '\0'}, out);
}

/* Prints words in lines of up to 79 columns, each after `prefix`, with the last line unended. */
static void print_wrapped(FILE *out, const char *prefix, const char *text)
{
    int column = fprintf(out, "%s", prefix);
    for (bool first = true; *text; first = false) {
        int n = (int)strcspn(text, " ");
        if (!first && column + 1 + n > 79)
            column = fprintf(out, "\n%s", prefix) - 1;
        else if (!first)
            column += fprintf(out, " ");
        column += fprintf(out, "%.*s", n, text);
        text += n + strspn(text + n, " ");
    }
}

static void print_option(
    FILE *out, const struct option *option, const struct config *defaults, enum config_form form)
{
    char help[OPTION_HELP_MAX], text[OPTION_HELP_MAX + VALUE_TEXT_MAX], value[VALUE_TEXT_MAX] = "";
    const struct option_spec spec = spec_of(option);
    option_help_text(&spec, help, sizeof help);
    if (!option->default_text)
        format_value(option, defaults, value, sizeof value);
    const char *default_text = option->default_text ? option->default_text : value;
    const char *by_default = *default_text ? default_text : "none";
    switch (form) {
    case CONFIG_AS_HELP:
        fprintf(out, "  --%s=%s\n", option->name, option->takes);
        snprintf(text, sizeof text, "%s (default: %s%s)", help, by_default,
            option->is_live ? "" : AT_START);
        print_wrapped(out, "        ", text);
        fputc('\n', out);
        break;
    case CONFIG_AS_ROFF:
        fputs(".TP\n.BI \\-\\-", out);
        print_roff_name(out, option->name);
        fprintf(out, "= %s\n%s (default:\n.BR \"", option->takes, help);
        print_roff_name(out, by_default);
        fprintf(out, "\" \"%s).\"\n", option->is_live ? "" : AT_START);
        break;
    case CONFIG_AS_YAML:
        fputc('\n', out);
        print_wrapped(out, "# ", help);
        fprintf(out, "\n#%s: %s\n", option->name, default_text);
        break;
    }
}

static void print_section(FILE *out, const char *first, enum config_form form)
{
    static const char *const forms[] = {
        [CONFIG_AS_HELP] = "\n%s:\n",
        [CONFIG_AS_ROFF] = ".SS %s\n",
        [CONFIG_AS_YAML] = "\n\n# ---- %s ----\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
        if (strcmp(sections[i].first, first) == 0)
            fprintf(out, forms[form], sections[i].title);
}

void config_print(FILE *out, enum config_form form)
{
    if (form == CONFIG_AS_YAML)
        fputs("# /etc/colloc/collocd.yaml: the settings of collocd with their defaults.\n", out);
    struct config defaults;
    config_defaults(&defaults);
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option option = option_at(i);
        print_section(out, option.name, form);
        print_option(out, &option, &defaults, form);
    }
}
