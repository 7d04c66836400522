/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this part share. */
#ifndef COLLOC_DAEMON_GPUS_GPUS_STATE_H
#define COLLOC_DAEMON_GPUS_GPUS_STATE_H

#include "daemon/gpu_report.h"
#include "daemon/gpus/gpus_options.h"
#include "daemon/gpus/poll_thread.h"
#include "daemon/jobs.h"
#include "exec/ancestry_cache.h"

/* Energy of a GPU since the sample before. */
struct drawn {
    struct reading energy_j, power_w;
    double idle_part; /* part of the energy, 0 to 1, that it would have drawn without work */
};

struct gpu_state {
    struct gpu_sample sample;   /* the last; the loop's */
    struct gpu_sample incoming; /* the one being taken; the thread's while it is polled */
    struct poll_thread
        *stuck;              /* the thread whose call about this GPU does not return; NULL: none */
    bool is_skipped;         /* in the poll under way: it or its card is stuck */
    bool is_fresh;           /* `sample` is of the poll that is taken in */
    int view;                /* its index in the core's view; -1: not managed */
    int64_t activity_fed_us; /* when the activity of the core's last sample was measured; 0: none */
    struct reading energy_j; /* at the last sample that had one */
    bool has_lived;          /* there were tasks since then */

    /* sampler.c: what the log has */
    bool errors_cleared;         /* by an administrator; passed on before the next poll */
    char trouble_logged[112];    /* "": none */
    const char *health_reported; /* by the hook health_changed; NULL: "ok" */
    int64_t health_reported_us;  /* when, of the last failure; 0: never */

    /* idle_holders.c */
    int64_t sampled_us;    /* when the last sample was taken, of whatever health */
    bool is_idle;          /* known to be */
    int64_t idle_since_us; /* if so: the first of the samples in a row that showed it */
    bool idle_logged;

    /* process_attribution.c: the last sample's external and misplaced processes, the memory of
     * those that have ended, and shares now and a sample before */
    struct gpu_process *external;
    size_t n_external, external_capacity;
    struct left_memory *left;
    size_t n_left, left_capacity;
    struct misplaced_process *misplaced, *misplaced_before;
    size_t n_misplaced, misplaced_capacity, n_misplaced_before, misplaced_capacity_before;
    struct share *shares;
    size_t n_shares, share_capacity;
    struct share *shares_before;
    size_t n_shares_before, share_capacity_before;
    bool shares_estimated;

    /* usage.c */
    double activity_part; /* of the sampled activity, 0 to 1: what its processes did */
    struct gpu_meter meter;
    struct drawn drawn;
};

/* The attempts under way. */
struct task_roots {
    pid_t *shims;
    uint64_t *tasks;
    int *attempts; /* the number of each */
    size_t count, shim_capacity, task_capacity, attempt_capacity;
};

/* A process that the driver lists (listed_processes.c). */
struct listed_process {
    pid_t pid, session;
    unsigned long long born; /* its start in clock ticks; 0: it was never seen alive */
    uint64_t task;           /* that it is of; 0: of none */
    int attempt;             /* of that task */
    int64_t noted_us;        /* when it was listed first */
    int64_t checked_us;      /* when /proc was read; 0: never */
    int64_t gone_us;         /* since when it is known to have ended; 0: it has not */
    int64_t poll;            /* the last that listed it */
    pid_t holder;            /* of its memory, once it is left behind; 0: not known */
    bool is_logged;
};

/* A search for the process that holds memory which is left behind. */
struct left_search {
    pid_t pid, session;
    int minor;
    pid_t holder; /* the answer */
};

/* Chosen: processes of which memory is left behind that are searched for in a poll. */
enum { LEFT_SEARCHES_MAX = 8 };

struct gpus {
    struct gpus_options parts;
    struct gpu_set *set; /* NULL: there are none, `why_none` says why */
    char why_none[512];
    struct gpu_state *states; /* one per GPU of the set */
    struct ancestry_cache ancestry;
    struct task_roots roots;       /* as of the poll that is taken in */
    struct listed_process *listed; /* on all GPUs in the last poll */
    size_t n_listed, listed_capacity;
    struct left_search
        searches[LEFT_SEARCHES_MAX]; /* of the poll under way: its thread's, before it
                                                       polls the first GPU */
    size_t n_searches;
    int64_t next_search_us;

    uv_timer_t timer;
    uv_async_t polled;          /* the thread has done its work */
    struct poll_thread *thread; /* the poll under way; NULL: none */
    struct poll_thread *opener; /* lists the GPUs at the start; NULL: that is done */
    struct poll_thread *stuck;  /* its query of what GPUs there are does not return; NULL: none */
    struct fault open_fault;    /* the opener's, as the next two */
    int open_result;
    struct gpu_set *opened;
    int64_t open_began_us;
    bool poll_again, is_closed, is_left; /* is_left: a thread still uses it at the end */
    bool renew_logged;
    bool lacks_thread;    /* for the last poll, which was left out */
    bool had_jobs;        /* when the last poll began */
    int64_t polls_begun;  /* the number of the last */
    int64_t close_polls;  /* polls up to this number also list what GPUs there are */
    bool is_close_poll;   /* the poll under way does */
    struct gpu_set *next; /* what there is since the last poll, NULL: the same; the pool thread's
                              while it polls */
    int64_t usage_saved_us;
    char dcgm_logged[160]; /* how DCGM was used when that was logged last */

    /* while there were live tasks */
    double energy_j, smact_sum;
    int64_t smact_n;
};

/* Residents of a GPU that are sampled. */
enum { RESIDENTS_SAMPLED_MAX = 256 };

/* ---- nvml_opening.c ---- */

/* The thread that opens NVML has done its work: feeds its GPUs to the core. Returns false when that
 * failed, which is logged. */
bool gpus_finish_opening(struct gpus *gpus);

/* Gives DCGM the sample-period of the configuration, which may have been reloaded. Not during a
 * poll. */
void gpus_update_dcgm_period(struct gpus *gpus);

/* ---- sampler.c ---- */

/* A thread has done its work. */
void sampler_on_done(uv_async_t *polled);

/* Waits a moment for the poll under way, which cannot be ended. */
void sampler_close(struct gpus *gpus);

/* ---- gpu_list.c ---- */

/* Feeds the list of GPUs to the core. `keeps_samples`: what they were sampled to do still holds.
 * Returns 0 or -ENOMEM. */
int gpu_list_feed(struct gpus *gpus, bool keeps_samples);

/* Logs names of the settings gpus, drain and mps-gpus that no GPU has. */
void gpu_list_warn_of_unknown(const struct gpu_set *set, const struct config *config);

/* Continues with this set of GPUs, and logs the changes. */
void gpu_list_replace(struct gpus *gpus, struct gpu_set *now);

/* Releases the samples and lists of a GPU that is not in the set any more. */
void gpu_state_fini(struct gpu_state *state);

/* ---- listed_processes.c ---- */

/* Notes that the driver lists the process in this poll. Returns NULL when memory is out; valid
 * until the next call. */
struct listed_process *listed_process_note(struct gpus *gpus, pid_t pid, int64_t now_us);

/* Reads in /proc whether the process still has its pid. */
void listed_process_check(struct listed_process *process, int64_t now_us);

/* Is the owner of the process unknown? The process may have ended before /proc was read. */
bool listed_process_is_unknown(const struct listed_process *process, int64_t now_us);

/* Has the process ended so long ago that its memory is left behind? */
bool listed_process_is_left(const struct listed_process *process, int64_t now_us);

/* Forgets the processes that this poll has not listed, when it has been taken in. */
void listed_processes_forget(struct gpus *gpus);

/* Chooses, before a poll, what its thread searches for. */
void left_memory_prepare(struct gpus *gpus, int64_t now_us);

/* Searches, in the thread. */
void left_memory_search(struct gpus *gpus);

/* Takes over what the thread has found. */
void left_memory_take(struct gpus *gpus);

/* Notes memory that is left behind on a GPU, and logs it once. */
void left_memory_add(struct gpus *gpus, struct gpu_state *state, struct listed_process *process,
    struct reading used_bytes);

/* ---- process_attribution.c ---- */

/* To be called before the first gpu_attribute of a poll. Without memory, the processes of some
 * tasks count as external. */
void task_roots_collect(struct gpus *gpus);

void task_roots_fini(struct task_roots *roots);

/* Returns the memory of the task's processes on GPUs that it was not given; not valid: it has no
 * such process. `only_again`: not of those that the last sample shows for the first time. */
struct reading gpus_misplaced_bytes(const struct gpus *gpus, uint64_t task, bool only_again);

/*
 * Fills the sample's tasks (space for RESIDENTS_SAMPLED_MAX) and external processes, and the
 * state's shares except their activity. A task of which the driver lists no process is among the
 * sample's tasks with no memory when all memory in use is accounted for; otherwise it may have the
 * rest, and is not among them.
 */
void gpu_attribute(struct gpus *gpus, struct gpu_state *state, struct core_sample *sample);

/* ---- usage.c ---- */

/* Weighs the shares of GPU `i` of the set. To be called when the processes on all GPUs have been
 * attributed. */
void usage_weigh(struct gpus *gpus, size_t i);

/* What GPU `i` of the set drew since the poll before; a card comes before its MIG instances, and
 * all have been weighed. */
void usage_measure(struct gpus *gpus, size_t i);

/* Divides what the GPU did since the poll before among its shares, and adds it to their jobs. */
void usage_divide(struct gpus *gpus, struct gpu_state *state);

/* ---- usage_file.c ---- */

void usage_load(struct gpus *gpus); /* after the log was replayed */
void usage_save_sometimes(struct gpus *gpus);

/* ---- idle_holders.c ---- */

/* To be called with each new sample of a GPU. */
void idle_holders_watch(struct gpus *gpus, struct gpu_state *state);

#endif
