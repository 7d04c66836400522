/* SPDX-License-Identifier: Apache-2.0 */
/* The rows, in the order of --help and of the configuration file. */
#include "daemon/config_table.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "estimator/estimator.h"
#include "policy/policies.h"

/* LIVE: the setting can change while the daemon runs. FIELD: it is read at the start only. CORE: a
 * setting of the core, by its ID in core/settings.def. */
#define FIELD(name) NULL, SETTING_AT(struct config, name), false
#define LIVE(name)  NULL, SETTING_AT(struct config, name), true
#define CORE(id)                                                                                   \
    {                                                                                              \
        .core = &core_setting_table[CORE_SETTING_##id]                                             \
    }

/* config_row_at fills in what the core's table says. */
static const struct config_row rows[] = {
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
static_assert(ARRAY_SIZE(rows) <= CONFIG_ROWS_MAX, "arrays of callers have a place for each row");

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

size_t config_row_count(void)
{
    return ARRAY_SIZE(rows);
}

struct config_row config_row_at(size_t i)
{
    const struct core_setting *core = rows[i].core;
    if (!core)
        return rows[i];
    return (struct config_row){.name = core->name,
        .offset = offsetof(struct config, core) + core->offset,
        .size = core->size,
        .is_live = !core->at_start,
        .kind = core->kind,
        .takes = core->argument,
        .help = core->help};
}

const char *config_row_section(const struct config_row *row)
{
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
        if (strcmp(sections[i].first, row->name) == 0)
            return sections[i].title;
    return NULL;
}

struct option_spec config_row_spec(const struct config_row *row)
{
    return (struct option_spec){.name = row->name,
        .kind = OPTION_TEXT,
        .argument = row->takes,
        .help = row->help,
        .choice_at = policy_name_at};
}

void config_row_format(
    const struct config_row *row, const struct config *config, char *text, size_t size)
{
    setting_format(row->kind, (const char *)config + row->offset, text, size);
    bool has_default = row->default_text && *row->default_text;
    if (!*text)
        snprintf(text, size, "%s", has_default ? row->default_text : "none");
}
