/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collocd: the live driver of the core.
 *
 *     main.c            options, signals, the order in which the parts start and stop
 *     driver.c          feeds events to the core, writes the log, carries out effects
 *     live_tasks.c      what the daemon knows of a task beyond the core
 *     audit.c           one line of the daemon's log for each thing that happens to a task
 *     inputs.c          the core's inputs, recorded to a file
 *     disk.c            space in the state folder, the log's reserve and checkpoints
 *     retention.c       forgets ended tasks
 *     run_history.c     what ended tasks took, for the estimators
 *     reload.c          the configuration read again
 *     notify.c          state notifications to systemd
 *     time_base.c       the core's clock over restarts and jumps of the wall clock
 *     user_helper.c     a child process for what may block; user_names.c: names of users
 *     attempts/         runner.c: launch, watch, adopt; task_environment.c, attempt_cgroups.c,
 *                       attempt_list.c: where and when each attempt of a task ran
 *     gpus/             sampler.c, attribution.c: processes to tasks; usage.c, usage_file.c: activity
 *                       and energy; history_ring.c, idle_holders.c, overrun.c
 *     http/             routes*.c; submission_queue.c, submission.c, memory_requirement.c;
 *                       task_json.c, prometheus.c; user_file.c: reads a user's file
 *     mps/              mps_manager.c: one MPS control daemon per user
 */
#ifndef COLLOC_DAEMON_DAEMON_H
#define COLLOC_DAEMON_DAEMON_H

#include <jansson.h>
#include <uv.h>

#include "api/server.h"
#include "base/day_sum.h"
#include "core/core.h"
#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/http/user_file.h"
#include "daemon/mps/mps_manager.h"
#include "daemon/notify.h"
#include "daemon/preallocation.h"
#include "daemon/run_history.h"
#include "daemon/user_names.h"
#include "exec/ancestry_cache.h"
#include "exec/attempt.h"
#include "exec/cgroup_path.h"
#include "gpu/attribution.h"
#include "store/store.h"

/* What a task has had of its GPUs so far, all attempts together. */
struct usage {
    struct reading energy_j;
    double smact_s, span_s; /* its part of SMACT over time, and that time: GPU-seconds of which
                               SMACT was known */
    bool is_estimated;      /* at some time the driver did not tell whose the activity was */
};

/* What the daemon knows of a task that has not ended, beside what the core knows. */
struct job {
    uint64_t id;
    uid_t uid;
    char *name;
    char *user;
    char *command;   /* the command line as people read it; "": not known */
    char *estimator; /* "" when nothing was estimated */
    struct reading estimate_bytes;
    enum preallocation preallocation; /* as its environment says it */
    int64_t text_bytes;               /* of its script, environment and summary in the log */
    json_t *subject;                  /* what the next run of this network is known by, or NULL */
    char *evidence;                   /* of the last failure, or NULL */
    enum failure_class failure;       /* the last */
    json_t *overruns;                 /* overruns_beside at the last GPU OOM; or NULL */
    json_t *attempts;                 /* as docs/protocol.md shows them; never NULL */
    struct reading mem_used_bytes, mem_peak_bytes; /* on all its GPUs together */
    int peak_gpu;    /* of the view, where that peak was seen; -1: not known */
    bool peak_whole; /* it had its GPUs to itself then */
    struct usage usage;
    struct attempt_watch watch; /* while it runs; pidfd -1 otherwise */
    uv_poll_t *poll;
    bool awaits_mps; /* its start waits for its user's MPS control daemon */
    bool to_adopt; /* an attempt, of an earlier daemon or ended, that has not been looked at yet */
    int started_attempt;   /* the last whose start is in the log; 0: none */
    bool has_folder;       /* of an attempt whose shim could not be spawned yet */
    char *put_off_why;     /* what the machine is short of, until it has that; or NULL */
    int64_t look_awaited;  /* its end is judged after that look at the GPUs; 0: it is not awaited */
    int64_t look_limit_us; /* but no later */
    struct daemon *daemon;
};

/* A list of tasks that is being made. */
struct listing;

/* A request that waits for a task to end. */
struct waiter;

/* One who holds a GPU, and its part of what the GPU did at the last look. */
struct share {
    uint64_t task; /* 0: a process that is not ours */
    struct gpu_holder holder;
    struct reading smact, power_w;
};

struct gpu_state {
    struct gpu_sample sample;    /* the last; the loop's */
    struct gpu_sample incoming;  /* the one being taken; the pool thread's while daemon->sampling */
    struct reading energy_j;     /* at the last sample that had one */
    int64_t looked_us;           /* when the last sample was taken, of whatever health */
    bool is_idle;                /* known to be */
    int64_t idle_since_us;       /* if so: the first of the samples in a row that showed it */
    bool xids_cleared;           /* somebody says so; told to the set before the next look */
    bool unused_said;            /* in the log */
    char trouble_said[112];      /* likewise; "": none */
    int view;                    /* its index in the core's view; -1: not managed */
    struct gpu_process *foreign; /* the last sample's processes that are not ours */
    size_t n_foreign, foreign_room;
    struct series *series; /* NULL: not kept */
    struct gpu_meter meter;
    struct drawn {
        struct reading energy_j, power_w;
        double idle_part;
    } drawn;              /* since the look before */
    struct share *shares; /* our tasks there, then each foreign process that can compute */
    size_t n_shares, share_room;
    struct share *shares_before; /* the same at the sample before */
    size_t n_shares_before, share_room_before;
    bool shares_estimated;
};

struct daemon {
    struct config config;
    int argc; /* the command line: it wins over the file also when that is read again */
    char **argv;
    bool ends_with_terminal; /* which it was started in */
    struct notify notify;
    uv_loop_t loop;
    struct driver *driver;
    struct mps *mps;
    struct core *core;
    struct store *store;
    struct run_history run_history;
    struct api_server *server;
    struct names *names;
    struct user_files *user_files;

    struct gpu_set *gpus; /* NULL: none to be had, `gpus_why` says why */
    char gpus_why[512];
    struct gpu_state *gpu_states; /* one per GPU of the set */
    struct gpu_set *gpus_next;    /* what there is since the last look, NULL: the same; the pool
                                     thread's while sampling */
    int64_t usage_saved_us;
    struct ancestry_cache ancestry;

    FILE *inputs; /* NULL: not recorded */

    char cgroup_home[CGROUP_PATH_SIZE]; /* "": attempts have no cgroups */

    void *jobs;             /* a tsearch tree of struct job by id */
    void *owners;           /* a tsearch tree: how many jobs each user has */
    int stranger_jobs;      /* of users that the user database lacks, together */
    int64_t stranger_bytes; /* of their texts */
    struct day_sum stranger_bytes_ended;
    uint64_t next_id;
    int64_t open_files;               /* the soft limit as it was: the tasks' */
    bool disk_full, disk_nearly_full; /* and the log said so */
    int64_t checkpointed_us;

    struct submission *submissions_first, *submissions_last; /* not read yet */
    int n_submissions;
    int submitters;    /* how many submitted at the same time lately */
    int64_t gather_us; /* how long to wait for the rest of them */
    struct waiter *waiters;
    struct listing *listings; /* lists of tasks that are being made */

    uv_poll_t server_poll;
    uv_timer_t server_timer, sample_timer, history_timer, disk_timer;
    uv_idle_t server_soon, list_turn;
    uv_signal_t term_signal, int_signal, hangup_signal;
    uv_work_t sample_work;
    bool sampling, sample_again, stopping;
    bool look_closely; /* the look under way also asks what there is */
    int64_t looks_begun, looks_ended;
    int exits_awaiting_look;

    /* for /v1/stats: while there were live tasks since this daemon started */
    bool lived; /* was there one since the last sample? */
    double energy_j, smact_sum;
    int64_t smact_n;
};

/* ---- main.c ---- */

/* In the next turn of the loop, what was answered outside of a request's handler goes out. */
void daemon_serve_soon(struct daemon *daemon);

/* ---- reload.c ---- */

/* Reads the configuration again, takes over what can change, and says in the log what did. */
void configuration_reload(struct daemon *daemon);

/* ---- audit.c ---- */

/* A line in the daemon's log. The event is durable, and the core has its task (but for SUBMIT). `detail`: what is
 * in the event log beside it, borrowed, may be NULL. */
void audit_event(struct daemon *daemon, const struct event *event, const json_t *detail);

/* ---- runner.c ---- */

void runner_start(struct daemon *daemon, uint64_t task);
void runner_kill(struct daemon *daemon, uint64_t task);
void runner_adopt_all(struct daemon *daemon); /* after the log was replayed */
void runner_try_again(struct daemon *daemon); /* what a full disk or the like put off */
void runner_mps_ready(
    struct daemon *daemon, uid_t uid);     /* or is not to be had: who waits for it starts */
void runner_looked(struct daemon *daemon); /* at the GPUs: what waited for that goes on */
void runner_unwatch(struct job *job);
void runner_clean(struct daemon *daemon, const struct task *task); /* once its end is durable */
void attempt_folder(
    const struct daemon *daemon, uint64_t task, int attempt, char *buffer, size_t size);

/* ---- attempt_cgroups.c ---- */

/* Finds out at start whether attempts can have cgroups, and logs it once when not. */
void cgroups_open(struct daemon *daemon);

/* The cgroup of the attempt with this folder. False: there are none. */
bool cgroups_name(const struct daemon *daemon, const char *folder, char *path, size_t size);

/* Kills what is in an attempt's cgroup and removes it. Returns how many processes there were. */
int cgroups_sweep(const struct daemon *daemon, const char *folder);

/* The same for all attempts of this state folder that do not run: after a restart. */
void cgroups_sweep_left(struct daemon *daemon);

/* ---- sampler.c ---- */

int sampler_open(struct daemon *daemon, struct fault *fault);
void sampler_start(struct daemon *daemon);
void sampler_look_now(struct daemon *daemon);

/* The number of a look that begins from now on and also asks what GPUs there are; 0: there are none
 * to look at. */
int64_t sampler_look_closely(struct daemon *daemon);

/* The driver lost the GPU of this index in the view, or has no such instance any more: why, or
 * NULL. */
const char *sampler_why_gone(const struct daemon *daemon, int view);
void sampler_close(struct daemon *daemon);

/* ---- attribution.c ---- */

/* Residents of a GPU that are looked at. */
enum { RESIDENTS_SEEN_MAX = 256 };

/*
 * Fills the sample's tasks, for which there is room for RESIDENTS_SEEN_MAX, and foreign processes,
 * and the state's shares but for what they did. A task is among them with no memory when the driver
 * lists no process of it and all memory in use is somebody's; when it may have some that is
 * nobody's, it is not among them.
 */
void attribute(struct daemon *daemon, struct gpu_state *state, struct core_sample *sample);

/* ---- history_ring.c ---- */

/* After the core knows the GPUs, and when there are others. A disk that does not take them costs
 * the past, not the daemon. */
void samples_open(struct daemon *daemon);
void samples_take(struct daemon *daemon, size_t i);

/* Writes what is kept of all GPUs since `since_us` (wall time) as JSON. Returns 0 or -errno. */
int samples_write(struct daemon *daemon, int64_t since_us, FILE *out);

/* ---- usage.c ---- */

/* What GPU `i` of the set drew since the look before; a card's turn is before its instances'. */
void usage_measure(struct daemon *daemon, size_t i);

/* Divides what the GPU did since the look before among its shares, and books it to their tasks. */
void usage_take(struct daemon *daemon, struct gpu_state *state);

/* Books what the task did from the last sample to its end, which is now: its share there goes on. */
void usage_end(struct daemon *daemon, struct job *job);

/* The task's mean part of SMACT on each of its GPUs. */
struct reading usage_smact(const struct usage *usage);

/* ---- usage_file.c ---- */

void usage_load(struct daemon *daemon); /* after the log was replayed */
void usage_save(struct daemon *daemon);
void usage_save_sometimes(struct daemon *daemon);

/* ---- live_tasks.c ---- */

/* A job from a SUBMIT's detail. NULL when memory is out. */
struct job *job_add(struct daemon *daemon, uint64_t id, uid_t uid, const json_t *detail);

/* How many tasks of this user, or of all strangers, have not ended. */
int jobs_of_user(struct daemon *daemon, uid_t uid);

/* Whether the user database lacks this user: their tasks count together, as one user of a machine
 * may have thousands of ids. */
void jobs_set_stranger(struct daemon *daemon, uid_t uid, bool is_stranger);

/*
 * How many bytes the scripts, environments and summaries of those have, and of tasks that have ended
 * in the last 24 hours: the log keeps their texts, too. A restart forgets those that have ended.
 */
int64_t bytes_of_user(struct daemon *daemon, uid_t uid);
void jobs_fini(struct daemon *daemon);
/* The detail of a task's SUBMIT from the log, to be released; NULL when it is not there. 0 or a
 * fault. */
int job_read_detail(struct daemon *daemon, uint64_t id, struct fault *fault, json_t **ret_detail);

struct job *job_find(struct daemon *daemon, uint64_t id);
void job_remove(struct daemon *daemon, struct job *job);

/* The same, of a task that has just ended: its texts go on counting for a day. NULL is fine. */
void job_retire(struct daemon *daemon, struct job *job);
/* How an attempt ended; `detail` is that of its EXITED. */
void job_note_exit(struct job *job, enum failure_class failure, const json_t *detail);

/* ---- overrun.c ---- */

/* Memory that the task took on each of its GPUs beyond what it declared or what was estimated, in
 * bytes; 0: none; not known without either or without a peak. `job` may be NULL. */
struct reading overrun_bytes(const struct task *task, const struct job *job);

/* The tasks that share a GPU with this one and overran, as {"task", "over_mib", "declared"}; the
 * caller releases the list. */
json_t *overruns_beside(struct daemon *daemon, const struct task *task);

/* "task 19 took 11.4 GiB more than it declared; ...": such a list (may be NULL) as text. */
void overruns_write(const json_t *list, FILE *out);

/* What there is to say of the task's own memory and, after a crash, of its neighbours'; "" when that
 * is nothing. The caller releases it. */
json_t *overrun_text(const struct task *task, const struct job *job);

/* ---- attempt_list.c ---- */

/* Notes in the task's job what an event, once it is applied, says of an attempt: its begin or its
 * end. Events of other kinds and of tasks without a job are ignored. */
void attempts_note(struct daemon *daemon, const struct event *event);

/* A copy of the job's list, which the caller releases; an empty one for NULL. */
json_t *attempts_snapshot(const struct job *job);

/* Gives a record that an older daemon stored, where `attempts` is a number, the keys of today:
 * `attempt_count`, and an empty list. */
void attempts_upgrade(json_t *record);

/* ---- submission_queue.c ---- */

void route_submit(void *context, struct api_request *request);

/* Queues those whose turn it is; the rest stay for the next. */
void submissions_flush(struct daemon *daemon);
void submissions_refuse(struct daemon *daemon); /* the rest, for ever */

/* ---- routes.c and its files ---- */

extern const struct api_route daemon_routes[];
void listings_refuse(struct daemon *daemon); /* at the end */
void waiters_tell(struct daemon *daemon, uint64_t task, const json_t *record);

/* ---- task_json.c ---- */

/* The state as the protocol has it: a task whose start is put off is PENDING. */
const char *record_state(struct daemon *daemon, const struct task *task);

/* "None", "OutOfMemory", ...: how an attempt ended, in one word, as docs/protocol.md has them. */
const char *record_failure_word(enum failure_class failure);

/* The public TASK object of docs/protocol.md. */
json_t *record_task(struct daemon *daemon, const struct task *task);
json_t *record_gpus(struct daemon *daemon);
json_t *record_info(struct daemon *daemon);

/* "ok", "lost" ... as docs/protocol.md has it, with the reason in words ("" when ok). GPU `i` of
 * the set is managed. */
const char *record_gpu_health(struct daemon *daemon, size_t i, const char **ret_text);

/* ---- idle_holders.c ---- */

/* To be called with each new sample of a GPU. */
void unused_watch(struct daemon *daemon, struct gpu_state *state);

/* For how long one who holds the GPU has seen nobody use it, up to the last sample; 0: it is in
 * use. Microseconds. */
struct reading unused_us(
    const struct daemon *daemon, const struct gpu_state *state, const struct resident *resident);

/* Whether that is worth pointing out. */
bool unused_for_long(const struct daemon *daemon, struct reading unused);

/* ---- prometheus.c ---- */

/* GPUs and tasks in Prometheus' text format; the caller frees. NULL: no memory. */
char *metrics_text(struct daemon *daemon);

/* ---- disk.c ---- */

void disk_start(struct daemon *daemon); /* after the log was opened */

/* A file of the state folder could not be written: said once until the disk has room again. */
void disk_failed(struct daemon *daemon, const char *what);

/* ---- retention.c ---- */

void history_start(struct daemon *daemon);

/* ---- inputs.c ---- */

/* Before anything is fed to the core; does nothing unless it is wanted. */
int inputs_open(struct daemon *daemon, struct fault *fault);
void inputs_note_applied(struct daemon *daemon, const struct event *event);
void inputs_note_settings(struct daemon *daemon); /* the core's, which have changed */
void inputs_note_forgotten(struct daemon *daemon, uint64_t task);
void inputs_note_step(struct daemon *daemon, const struct event *event, int answer);
void inputs_close(struct daemon *daemon);

#endif
