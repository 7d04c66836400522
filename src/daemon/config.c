/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults, and what follows from the settings. */
#include "daemon/config.h"

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
#include "service/setting_kind.h"

#define SAMPLES_USUAL "1s:1h,10s:1d,5m:30d" /* chosen: some 20,000 samples of each GPU */

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
