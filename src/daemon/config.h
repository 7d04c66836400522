/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's settings: defaults, then the configuration file, then the command line; each is
 * stronger than the one before.
 */
#ifndef COLLOC_DAEMON_CONFIG_H
#define COLLOC_DAEMON_CONFIG_H

#include <stdio.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/text.h"
#include "core/core.h"
#include "estimator/estimator.h"
#include "nodelink/node_key.h"
#include "service/setting_file.h"
#include "service/setting_kind.h"

/* Of `sharing`: neither the file nor the command line has a value. */
#define SHARING_NOT_SET SHARINGS

struct config {
    char socket_path[108];
    char state_dir[512];
    char nvml_library[512];     /* "": the driver's */
    char dcgmi[512];            /* "none": do without DCGM */
    char shim[512];             /* path of colloc-shim */
    char checkpoint[512];       /* path of colloc-checkpoint */
    char cudnn_program[512];    /* path of colloc-cudnn */
    char cudnn_library[512];    /* that it loads */
    char cudnn_user[64];        /* that it becomes; name or number */
    int64_t kernels_memory;     /* bytes of a GPU that it may take; 0: cuDNN is not asked */
    bool suspend_any_driver;    /* also where the host may hang (checkpoint/kernel_module.h) */
    bool suspend_without_gate;  /* tasks without the preloaded library are suspended, too */
    bool slots;                 /* tasks that say nothing else take turns (core/pass/slots.c) */
    bool services_for_all;      /* users other than operators may submit services */
    int64_t carrier_pool;       /* bytes held ready for copies; 0: by default */
    int64_t suspend_memory_max; /* host memory for suspended tasks; 0: half of the host's */
    char preload_library[512];  /* path of libcolloc-preload.so */
    bool host_memory_share;     /* tasks that name no host memory get their GPUs' part of it */
    bool gpu_filter;            /* tasks cannot open GPUs that they were not given */
    enum outside_way outside;   /* what happens with processes outside of tasks */
    int64_t outside_after_us;   /* the age of a process that its user gets a message about */
    char outside_text[512];     /* of the message to their users */
    char outside_users[512];    /* may use GPUs outside of tasks: names, comma-separated */
    bool near_cpus;             /* tasks run on the CPUs near their GPUs */
    bool preload;               /* tasks that share GPUs and say nothing else are run with it */
    int64_t memory_wait_us; /* the longest wait of an allocation for GPU memory; 0: none waits */
    bool carrier;           /* suspended tasks' memory goes by the preloaded library */
    bool memory_cap;    /* time-sliced: a task waits before it takes more than its requirement */
    char mps_gpus[256]; /* as gpus, of those on which tasks may share by MPS */
    char gpus[256];     /* "": all; or indices and UUIDs, comma-separated */
    char drain[256];    /* likewise, of those that get no further task; but "": none */
    char estimator[32]; /* of tasks that name none */
    enum quantile reserve_quantile; /* of an estimate that knows its error */
    enum sharing sharing;           /* of tasks that name none */
    int64_t mig_plan_us;            /* GPUs are divided anew so often while tasks wait; 0: never */
    int64_t mps_linger_us; /* an MPS control daemon is stopped after this long without a task */
    bool
        framework_mem_limit; /* time-sliced tasks: frameworks limit themselves to the requirement */
    struct core_settings core;
    struct host_decoding decoding;  /* of that file */
    char calibration[512];          /* path of the host's constants; "": those built in */
    char shares[512];               /* path of the file of shares; "": all users are equal */
    int co2_g_per_kwh;              /* for reports */
    struct share_table share_table; /* what the file says; `core` points to it */
    int64_t sample_period_us, gpm_interval_us;
    int64_t unused_after_us; /* a task that has not used its GPU for this long is reported */
    struct samples_kept samples;
    int64_t metrics_bytes_max;      /* of the metrics' database; 0: none are recorded */
    int64_t log_reserve_bytes;      /* allocated for what the log must record on a full disk */
    int64_t kept_output_bytes;      /* of each output file in the state folder; 0: no limit */
    int64_t kept_output_user_bytes; /* of all of a user's output files there; 0: no limit */
    int64_t output_max_bytes;       /* of a task's default output file; 0: no limit */
    int64_t history_us;             /* how long ended tasks stay in the log */
    char web[64];                   /* "none", "on-demand" or an address with its port */
    char messenger[512];            /* path of colloc-message */
    char mail_server[256];          /* "none" or a URL of SMTP */
    char mail_from[256];            /* of the mails to users */
    char mail_login_file[256];      /* "": the server asks for no login */
    char mail_ca_file[256];         /* "": the system's authorities */
    char alerts_to[256];            /* "none", a mail address or the URL of a webhook */
    int64_t message_retry_us;       /* after the first attempt to deliver a message; doubled then */
    char metrics_listen[64];        /* "none" or an address with its port */
    char metrics_token_file[512];   /* "": no token is asked for */
    char record_inputs[512];        /* "": no recording */
    int64_t record_inputs_max;
    int64_t bytes_per_user;        /* of submissions in the log; root is not counted */
    int64_t request_bytes_max;     /* of all requests and answers under way together */
    int host_cpus;                 /* of the server, for tasks; 0: all */
    int64_t host_memory_bytes;     /* likewise; 0: nine tenths */
    struct host_resources per_gpu; /* of a task that names none; 0: not counted, no limit */
    int processes_per_task;        /* with threads; 0: no limit */
    int tasks_per_user;            /* that have not ended; root is not counted */
    int tasks_per_project;         /* the same of all its users together; 0: no limit */
    char operators[512]; /* names of users, comma-separated: they may change others' tasks */
    int log_level;

    /* of the agent of a Slurm node */
    char controller[280];     /* "none", or host and port */
    char controller_user[64]; /* that the controller runs as */
    char node_name[64];       /* "": the host's */
    char node_socket[108];    /* for requests of job steps */
    char munge_socket[256];   /* "": libmunge's own */
    enum node_auth node_auth; /* how reporting nodes are authenticated */
    char node_key_file[512];  /* "": with TLS the usual one */
};

/* For root: /run/colloc, /var/lib/colloc; otherwise below XDG_RUNTIME_DIR and XDG_STATE_HOME. */
void config_defaults(struct config *config);

/*
 * Reads "--key=value" and "--key value", after the file: that of the first --config=FILE, or root's
 * usual one.
 *
 * on_mistake: gets each mistake in the file's settings but the last one, which is in the fault;
 *             NULL: reading ends at the first mistake
 *
 * Returns 0; CONFIG_HELP, CONFIG_VERSION or CONFIG_CHECK when the command line has --help,
 * --version or --check (and is valid); or a fault that names the argument, or the file and line.
 */
enum { CONFIG_HELP = 1, CONFIG_VERSION = 2, CONFIG_CHECK = 3 };
int config_read_arguments(struct config *config, int argc, char **argv,
    setting_file_on_mistake *on_mistake, struct fault *fault);

/*
 * Copies the next name of a setting that lists users. One that does not fit is left out.
 *
 * at: begins as config->operators or config->outside_users; moves on
 *
 * Returns false when there is none.
 */
bool config_next_name(const char **at, char *ret_name, size_t size);

/* Is the user one of the setting operators? */
bool config_is_operator(const struct config *config, const char *user);

/* Returns the setting suspend-memory-max, or its default. Chosen: half leaves as much for the tasks
 * themselves. */
static inline int64_t config_copies_max(const struct config *config)
{
    int64_t set = config->suspend_memory_max;
    return set ? set : sysconf(_SC_PHYS_PAGES) / 2 * sysconf(_SC_PAGESIZE);
}

/* Derives from the settings how long a sample is valid, and what the server has for tasks. */
void config_complete(struct config *config);

/*
 * Copies from `wanted` the settings that can change while the daemon runs.
 *
 * on_change: called for each setting that differs, with its values as text; `is_taken`: it was
 *            copied
 */
typedef void config_on_change(
    void *context, const char *setting, const char *from, const char *to, bool is_taken);
void config_change(
    struct config *config, const struct config *wanted, config_on_change *on_change, void *context);

/* Prints the settings with their defaults: for --help, as a man page's list, or as a commented
 * configuration file. */
enum config_form { CONFIG_AS_HELP, CONFIG_AS_ROFF, CONFIG_AS_YAML };
void config_print(FILE *out, enum config_form form);

#endif
