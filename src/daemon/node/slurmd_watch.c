/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fencing: when slurmd has ended, slurmctld declares the node lost after SlurmdTimeout and runs its
 * jobs again elsewhere. But their processes here continue until slurmd runs again. So that no job
 * runs twice, the agent ends them before that.
 *
 *     slurmd's last answer          gone                 fence               node DOWN
 *     |--- up to a third of SlurmdTimeout ---|---- two thirds ----|    (at the earliest)
 *
 * slurmctld counts from slurmd's last answer, which is up to a ping before slurmd's end, and it
 * pings each third of SlurmdTimeout: hence two thirds. SlurmdTimeout=0 means never.
 *
 * slurmd is the process of SlurmdPidFile. The settings are read again while it does not run: they
 * may have been changed for a longer stop. If a slurmd of this node runs that is not in the file,
 * the file is the wrong one, and nothing is ended.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "base/units.h"
#include "daemon/node/job_of_process.h"
#include "daemon/node/node_state.h"
#include "daemon/node/slurm_client.h"
#include "exec/tree.h"

enum {
    PERIOD_MS = 1000,
    HELPER_MS = 30 * 1000, /* chosen: slurmctld may be busy */
    CONFIG_MAX = 256 * 1024,
    ENTRY_MAX = 4 << 20,
};
#define ASK_AGAIN_US (30 * SECOND_US) /* chosen: slurmctld may be away */

struct slurmd_watch {
    struct node *node;
    uv_timer_t timer;
    struct user_helper helper;
    int64_t timeout_us;                 /* SlurmdTimeout; 0: never; -1: not known yet */
    int64_t next_ask_us, gone_since_us; /* monotonic; gone_since_us 0: it runs */
    char pid_file[512];
    bool is_warning_logged;
};

/* ---- Slurm's settings ---- */

/* "%n" is the node's name, "%h" the host's: in SlurmdPidFile both name this node. */
static void expand_path(const char *pattern, const char *node, char *path, size_t size)
{
    size_t used = 0;
    for (; *pattern && used + 1 < size; pattern++) {
        if (pattern[0] == '%' && (pattern[1] == 'n' || pattern[1] == 'h')) {
            used += (size_t)snprintf(path + used, size - used, "%s", node);
            used = used < size ? used : size - 1;
            pattern++;
        } else {
            path[used++] = *pattern;
        }
    }
    path[used] = '\0';
}

/* In the helper. Returns SlurmdTimeout in seconds and 1, with SlurmdPidFile in `report`. */
static int read_settings(struct fault *report)
{
    static char text[CONFIG_MAX];
    const char *argv[] = {"scontrol", "show", "config", NULL};
    char number[32];
    int64_t seconds;
    if (slurm_client_run(argv, text, sizeof text) != 0 ||
        !slurm_client_field(text, "SlurmdTimeout", NULL, number, sizeof number) ||
        parse_int64(number, 0, 1000000, &seconds) < 0 ||
        !slurm_client_field(text, "SlurmdPidFile", NULL, report->text, sizeof report->text))
        return fault_set(report, EAGAIN, "scontrol show config does not answer");
    return (int)seconds + 1;
}

static void on_settings(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct slurmd_watch *watch = helper->context;
    char pid_file[sizeof watch->pid_file];
    if (answer <= 0 && watch->timeout_us >= 0)
        return; /* the last that are known hold */
    if (answer <= 0) {
        if (!watch->is_warning_logged)
            log_warning("SlurmdTimeout is not known yet, so the node's jobs are not ended when "
                        "slurmd is lost: %s",
                fault->text);
        watch->is_warning_logged = true;
        return;
    }
    int64_t timeout_us = (answer - 1) * SECOND_US;
    expand_path(fault->text, watch->node->name, pid_file, sizeof pid_file);
    if (timeout_us == watch->timeout_us && strcmp(pid_file, watch->pid_file) == 0)
        return;
    watch->is_warning_logged = false;
    watch->timeout_us = timeout_us;
    memcpy(watch->pid_file, pid_file, sizeof pid_file);
    log_info("slurmd is the process of %s; SlurmdTimeout is %d s", watch->pid_file, answer - 1);
}

static void ask_settings(struct slurmd_watch *watch, int64_t now_us)
{
    const struct user_helper_order order = {.limit_ms = HELPER_MS, .what = "read Slurm's settings"};
    if (now_us < watch->next_ask_us || user_helper_is_under_way(&watch->helper))
        return;
    watch->next_ask_us = now_us + ASK_AGAIN_US;
    int child = user_helper_begin(&watch->helper, watch->node->parts.loop, &order, NULL);
    if (child == USER_HELPER_CHILD) {
        struct user_helper_report report = {0};
        report.answer = read_settings(&report.fault);
        user_helper_end(&watch->helper, &report);
    }
    watch->helper.context = watch;
    watch->helper.on_done = on_settings;
}

/* ---- is slurmd there? ---- */

/* Of root, or of the agent's own user: others can give their processes any name. */
static bool is_slurmd(pid_t pid)
{
    char path[64], text[512];
    struct process_stat process;
    struct stat owner;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &owner) < 0 || (owner.st_uid != 0 && owner.st_uid != geteuid()))
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return file_read_start(path, text, sizeof text) > 0 &&
           process_parse_stat(text, &process) == 0 && !process_has_ended(&process) &&
           strcmp(process.name, "slurmd") == 0;
}

static bool is_slurmd_there(const struct slurmd_watch *watch)
{
    char text[32];
    int64_t pid;
    if (file_read_start(watch->pid_file, text, sizeof text) <= 0)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return parse_int64(text, 1, INT32_MAX, &pid) == 0 && is_slurmd((pid_t)pid);
}

/* ---- fencing, in the helper ---- */

/* Calls `act` for each process; returns the sum. */
static int for_each_process(int (*act)(pid_t pid, void *context), void *context)
{
    DIR *folder = opendir("/proc");
    int n = 0;
    int64_t pid;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (parse_int64(entry->d_name, 2, INT32_MAX, &pid) == 0)
            n += act((pid_t)pid, context);
    if (folder)
        closedir(folder);
    return n;
}

/* The value of an option in a command line of slurmd: "-N n1", "-Nn1", "-DN n1"; NULL: none. */
static const char *find_option(const char *words, size_t size, char option)
{
    static const char flags[] = "bcCDGhMsvVZ";
    for (const char *word = words; word < words + size; word += strlen(word) + 1) {
        if (*word != '-')
            continue;
        const char *found = word + 1 + strspn(word + 1, flags), *next = word + strlen(word) + 1;
        if (*found == option)
            return found[1] ? found + 1 : next < words + size ? next : NULL;
    }
    return NULL;
}

static const char *find_variable(const char *environment, size_t size, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    return NULL;
}

/* Is it slurmd of another node or of another cluster, for certain? */
static bool serves_another(pid_t pid, const char *node)
{
    char *words = NULL, *environment = NULL;
    size_t n_words = 0, n_environment = 0;
    const char *ours = getenv("SLURM_CONF");
    if (process_read_entry(pid, "cmdline", ENTRY_MAX, &words, &n_words) < 0)
        return false;
    if (process_read_entry(pid, "environ", ENTRY_MAX, &environment, &n_environment) < 0)
        n_environment = 0;
    const char *name = find_option(words, n_words, 'N'), *conf = find_option(words, n_words, 'f');
    if (!conf)
        conf = find_variable(environment, n_environment, "SLURM_CONF");
    bool is_another = (name && strcmp(name, node) != 0) ||
                      (ours && conf && strcmp(ours, conf) != 0);
    free(words);
    free(environment);
    return is_another;
}

static int count_slurmd(pid_t pid, void *context)
{
    return is_slurmd(pid) && !serves_another(pid, context);
}

/* The slurmstepd above it; 0: none. */
static pid_t find_stepd(pid_t pid)
{
    for (int depth = 0; depth < 64 && pid > 1; depth++) {
        char path[64], text[512];
        struct process_stat stat;
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        if (file_read_start(path, text, sizeof text) <= 0 || process_parse_stat(text, &stat) < 0)
            return 0;
        if (strncmp(stat.name, "slurmstepd", strlen("slurmstepd")) == 0)
            return pid;
        pid = stat.parent;
    }
    return 0;
}

/* slurmstepd first: so that it does not report an end that slurmd's absence has caused. */
static int end_process(pid_t pid, void *context)
{
    if (job_of_process(pid, context).job == 0)
        return 0;
    pid_t stepd = find_stepd(pid);
    if (stepd) {
        kill(stepd, SIGSTOP);
        tree_signal(stepd, SIGKILL);
        kill(stepd, SIGKILL);
    }
    kill(pid, SIGKILL);
    return 1;
}

static int fence_node(const struct slurmd_watch *watch)
{
    char node[NODE_NAME_SIZE];
    memcpy(node, watch->node->name, sizeof node);
    if (for_each_process(count_slurmd, node) > 0)
        return -ENOENT;
    return for_each_process(end_process, node);
}

/* ---- in the loop ---- */

static void on_fenced(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct slurmd_watch *watch = helper->context;
    if (answer > 0)
        log_warning("slurmd is lost: %d processes of jobs were ended, because Slurm runs the jobs "
                    "again elsewhere",
            answer);
    if (answer == -ENOENT && !watch->is_warning_logged) {
        log_warning("%s names no slurmd although one runs: set SlurmdPidFile in slurm.conf; no job "
                    "is ended when slurmd is lost",
            watch->pid_file);
        watch->is_warning_logged = true;
    }
}

static void begin_fence(struct slurmd_watch *watch)
{
    const struct user_helper_order order = {.limit_ms = HELPER_MS, .what = "end the node's jobs"};
    if (user_helper_is_under_way(&watch->helper))
        return;
    int child = user_helper_begin(&watch->helper, watch->node->parts.loop, &order, NULL);
    if (child == USER_HELPER_CHILD) {
        struct user_helper_report report = {0};
        report.answer = fence_node(watch);
        user_helper_end(&watch->helper, &report);
    }
    watch->helper.context = watch;
    watch->helper.on_done = on_fenced;
}

/* Asks for the settings at once and from time to time, but not so late that an answer which does
 * not come would delay the fence. */
static void miss_slurmd(struct slurmd_watch *watch, int64_t now_us)
{
    bool is_news = watch->gone_since_us == 0;
    if (is_news)
        watch->gone_since_us = watch->next_ask_us = now_us;
    int64_t fence_us = watch->gone_since_us + watch->timeout_us / 3 * 2;
    if (watch->timeout_us > 0 && now_us >= fence_us)
        begin_fence(watch);
    else if (is_news || watch->timeout_us == 0 || now_us + HELPER_MS * MS_US < fence_us)
        ask_settings(watch, now_us);
}

static void on_period(uv_timer_t *timer)
{
    struct slurmd_watch *watch = timer->data;
    int64_t now_us = clock_monotonic_us();
    if (watch->timeout_us < 0) {
        ask_settings(watch, now_us);
    } else if (is_slurmd_there(watch)) {
        if (watch->gone_since_us) { /* it was restarted, perhaps with other settings */
            watch->next_ask_us = now_us;
            ask_settings(watch, now_us);
        }
        watch->gone_since_us = 0;
    } else {
        miss_slurmd(watch, now_us);
    }
}

int slurmd_watch_open(struct node *node)
{
    struct slurmd_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return -ENOMEM;
    *watch = (struct slurmd_watch){.node = node, .timeout_us = -1};
    uv_timer_init(node->parts.loop, &watch->timer);
    watch->timer.data = watch;
    uv_timer_start(&watch->timer, on_period, 0, PERIOD_MS);
    node->slurmd = watch;
    return 0;
}

void slurmd_watch_close(struct node *node)
{
    if (!node->slurmd)
        return;
    user_helper_leave(&node->slurmd->helper);
    uv_close((uv_handle_t *)&node->slurmd->timer, NULL);
}

void slurmd_watch_destroy(struct node *node)
{
    free(node->slurmd);
}
