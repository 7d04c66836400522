/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: everything that ever happens to the core. Inputs report what happened outside, decisions
 * are the core's own. Both change the state through core_apply, and all but samples, latencies and
 * ticks are written to the log. The names in event.c are stored: they do not change.
 */
#ifndef COLLOC_CORE_EVENT_H
#define COLLOC_CORE_EVENT_H

#include "core/view.h"
#include "fairness/usage_window.h"

/* Readers of events refuse more bytes or microseconds. Chosen: sums of a few do not overflow. */
#define EVENT_NUMBER_MAX (INT64_C(1) << 60)

enum event_kind {
    /* inputs */
    EVENT_GPUS,      /* the list of GPUs: known ones keep their index, missing ones are lost (their
                        tasks may still run), those marked is_gone have ended */
    EVENT_SUBMIT,    /* a task, queued or held */
    EVENT_ESTIMATE,  /* what a waiting task of unknown memory or activity will take */
    EVENT_SAMPLE,    /* of one GPU */
    EVENT_STARTED,   /* the attempt has a process; repeated after a restart */
    EVENT_UNSTARTED, /* the attempt has run nothing and never will, though STARTED may have been
                        logged: back to its queue */
    EVENT_EXITED,    /* the attempt's process tree has ended */
    EVENT_CANCEL,    /* an authorised user cancels the task */
    EVENT_RUN_AGAIN, /* an authorised user has the running task ended, then requeued; or the core
                        decides that, for lack of memory */
    EVENT_HOLD,
    EVENT_RELEASE,
    EVENT_UPDATE,            /* an authorised user changes the request */
    EVENT_SUSPEND,           /* an authorised user suspends the task */
    EVENT_RESUME,            /* an authorised user lets it continue; or the core, ranks that have
                                to be back (pass/recall.c) */
    EVENT_MOVE,              /* an authorised user moves it to these GPUs */
    EVENT_SUSPENDED,         /* it is off its GPUs */
    EVENT_RESUMED,           /* it runs on the GPUs of RESUMING */
    EVENT_MOVED,             /* it runs on the GPUs of MOVING */
    EVENT_RELOCATED,         /* its copy, or its context, lies on the host now */
    EVENT_SUSPENSION_FAILED, /* instead of one of these four; or after PAUSE: it was not paused */
    EVENT_MEMORY_WAIT,     /* an allocation waits in its process for GPU memory; may be repeated */
    EVENT_MEMORY_WAIT_END, /* it waits no longer, by itself */
    EVENT_DEPENDENCY, /* a dependency of the task holds, or never can: decided by the core where it
                              knows the tasks that have ended, else reported by the driver */
    EVENT_RESERVE,    /* an operator reserves GPUs for users, from a time on (advances.c); of no
                              task */
    EVENT_UNRESERVE,  /* such a reservation is cancelled; of no task */
    EVENT_IDLE,       /* the running task has not used its GPUs for long */
    EVENT_WAKE,       /* the task that was suspended for that calls CUDA again */
    EVENT_METRIC,     /* a task of an array has reported its metric at a rung of the stop rule;
                              the event's task is the array (sweeps.c) */
    EVENT_STEP,       /* srun in the task's script has begun or ended a step; the detail says which.
                         The core takes no notice */
    EVENT_LATENCY,    /* how long the requests of a service take; not in the log */
    EVENT_SPEED,      /* how many times as long as alone a task takes; not in the log */
    EVENT_SUSPENSION_COST, /* what suspensions and resumptions cost on a GPU; of no task */
    EVENT_TICK,            /* time has passed */
    /* decisions */
    EVENT_PLACE,         /* the task gets these GPUs */
    EVENT_EXPIRE,        /* its time limit is reached: it is ended */
    EVENT_STOP,          /* it is losing by the stop rule of its array: it is ended */
    EVENT_EVICT,         /* its MIG instance was removed: it is ended, then requeued */
    EVENT_EXTERNAL_SEEN, /* external processes were beside it: an OOM may not be its own fault */
    EVENT_RECOVER,       /* OOM beside others or under a limit of colloc: into the recovery queue */
    EVENT_REQUEUE,       /* its GPU, its MPS server or perhaps a co-resident failed it; or
                            a user has it run again */
    EVENT_RESTART,       /* the service has ended: it is run again, but not at once */
    EVENT_END,           /* it is done, in this state */
    EVENT_SUSPENDING,    /* it is taken off its GPUs */
    EVENT_RELOCATING,    /* its copy goes from the neighbour GPU to the host; or its context */
    EVENT_RESUMING,      /* it is put on these GPUs */
    EVENT_MOVING,        /* it is moved to these GPUs */
    EVENT_PAUSE,         /* its processes are frozen */
    EVENT_CONTINUE,      /* they continue */
    EVENT_MEMORY_ANSWER, /* the waiting allocation is tried again, or fails */
    EVENT_ELIGIBLE,      /* nothing but its turn keeps the task from starting: into its queue */
    EVENT_LATEST_START,  /* with preemption the task comes first from then on (fifo_schedule.c) */
    EVENT_FIFO,   /* when each GPU would be free under first come, first served; of no task */
    EVENT_USAGE,  /* what a user has used so far (record_usage.c); of no task */
    EVENT_DELAYS, /* how much a user's tasks have been delayed by others so far
                     (record_delays.c); of no task */
    EVENT_KINDS
};

/* A task of an array that is submitted. */
struct array_element {
    uint64_t task;
    int index;
};

/* What an UPDATE changes. */
struct task_update {
    bool sets_time_limit, sets_priority, sets_need, sets_begin, sets_after, sets_host;
    bool may_raise;             /* limits of a task that has started: an operator asks for it */
    struct host_resources host; /* 0: unchanged */
    int64_t time_limit_us;
    int priority;
    struct need need;
    int64_t begin_us;               /* 0: at once */
    const struct dependency *after; /* instead of the open ones */
    int n_after;
};

enum { ADVANCE_USERS_MAX = 32 }; /* chosen */

/* GPUs that are reserved in advance: others' tasks leave them free from then until then. */
struct advance {
    uint64_t id; /* rising; not that of a task */
    int gpus;    /* how many; which ones follows from what runs */
    int64_t from_us, until_us;
    int n_users;
    uint32_t users[ADVANCE_USERS_MAX]; /* whose tasks may use them: uids */
};

/* One GPU at one instant. */
struct core_sample {
    int gpu;
    bool lost;
    bool faulty;      /* it answers, but gets no further task */
    bool more_follow; /* of the same poll: tasks are placed when all have been applied */
    struct reading mem_used_bytes;
    struct reading smact;              /* 0..1 */
    bool smact_repeats;                /* as in the sample before: none has been measured since */
    struct reading utilisation;        /* 0..1 */
    struct reading external_processes; /* compute processes of no task */
    struct reading power_w;            /* of the card, also for a MIG instance */
    struct reading pcie_bytes_per_s;   /* both ways together */
    struct task_memory {
        uint64_t task;
        struct reading mem_used_bytes;
        int mps_clients;      /* its processes that are clients of MPS, as far as they are listed */
        int hooked, unhooked; /* its listed processes with and without the preloaded library */
        int carried;          /* of the former: the carrier can take their memory away */
        bool is_inactive;     /* they have long not used the GPU (setting unused-after) */
    } * tasks;                /* as far as the driver reports them; may be incomplete */
    int n_tasks;
};

struct event {
    enum event_kind kind;
    int64_t time_us;
    uint64_t task; /* 0: of no task */
    union {
        struct {
            const struct gpu_identity *list;
            int n;
            bool keeps_samples; /* what known GPUs were sampled to do still holds */
        } gpus;
        struct {
            uint32_t uid;
            bool held;
            struct task_request request;
            const struct array_element
                *elements; /* of an array, by rising id: all above the event's
                                                     task, which is the array; NULL: of none */
            int n_elements;
            struct halving_rule stop; /* of an array; factor 0: none */
            int array_limit;          /* of its tasks in queues and running at a time; 0: none */
        } submit;
        struct task_update update;
        struct advance reserve;
        uint64_t unreserve; /* the id of the reservation */
        struct task_estimate estimate;
        struct core_sample sample;
        struct {
            bool by_streams;  /* no MPS server could be started */
            bool has_library; /* the preloaded library was given to its processes */
        } started;
        int64_t run_again_bytes; /* of RUN_AGAIN by the core: what it requires at least */
        struct task_exit exited;
        struct {
            const int *gpus;
            int n;
            bool exclusive;
            struct sharing_mode share;
        } place;
        enum task_state end;
        struct {
            const int *gpus; /* of MOVE, MOVING and RESUMING; of SUSPENDING the neighbour that its
                                copy goes to, if n is 1 */
            int n;
            enum yield_reason reason; /* of SUSPENDING, MOVING and PAUSE */
            uint64_t to_task;         /* the task that it gives way to; 0: none */
            int64_t until_us;         /* of PAUSE for a probe: it goes on then, at the latest */
            struct reading bytes;     /* of MOVING: its memory on each new GPU; never 0. Of
                                         SUSPENDING with a neighbour: what it holds */
            bool keeps_context;       /* of SUSPENDING: of a time-sliced task (context_place.h) */
        } yield;
        struct {
            struct reading bytes;         /* of SUSPENDED: its memory on each GPU; never 0 */
            int64_t took_us;              /* of SUSPENDED, RESUMED and MOVED */
            struct reading context_bytes; /* of SUSPENDED: of that, what stays on its GPU, as the
                                             context of an MPS client; not valid: nothing does */
            bool has_ranks;            /* of SUSPENDED: ranks of NCCL, which must be back in time */
            struct reading copy_bytes; /* of SUSPENDED: of that, what lies on the neighbour of
                                             SUSPENDING; not valid: the copy is on the host */
        } yielded;
        struct {
            enum suspension_failure why;
            bool is_suspended; /* the process is off its GPUs; else it runs where it was */
        } suspension_failed;
        struct dependency_end dependency;
        struct {
            int64_t bytes; /* on one GPU */
            bool is_again; /* it waited before, and the try that it was granted has failed */
        } memory_wait;
        bool memory_granted; /* of MEMORY_ANSWER: it is tried again */
        struct {
            enum suspension_way way;
            int of_gpu; /* its index in the view, plus 1; 0: of those whose cost is not known */
            struct suspension_cost cost;
        } suspension_cost;
        int64_t latest_start_us;
        struct {
            int64_t last_start_us;
            const int64_t *free_us; /* of each GPU, the earliest first */
            int n;
        } fifo;
        int64_t idle_us;    /* of IDLE: for how long */
        int64_t restart_us; /* of RESTART: it does not start before */
        struct {
            uint64_t task;
            int rung;
            struct reading value; /* not valid: it is no finite number, the worst */
        } metric;
        struct halving_rank stop; /* of STOP */
        struct reading p99_us;    /* of LATENCY; not valid: not known */
        struct {
            struct reading slowdown; /* of SPEED; not valid: not known */
            struct reading step_us;  /* of SPEED: what a step takes now; not valid: not known */
        };
        struct {
            uint32_t uid;
            int64_t usage_us;           /* GPU time charged, decayed to the time of the event */
            struct usage_window window; /* and what counts in the window then; its own time is
                                           not read */
        } usage;
        struct {
            uint32_t uid;
            enum sharing sharing;              /* SHARING_STREAMS or SHARING_MPS */
            int64_t measured_us, predicted_us; /* as struct delay_sum */
        } delays;
    };
};

/*
 * Copies an event with all lists and texts that it points to, for a queue that keeps it longer.
 * Policies are tables of the program: the copy has the same pointer.
 *
 * ret_copy: for event_release; not set on an error
 *
 * Returns 0 or -ENOMEM.
 */
int event_copy(const struct event *event, struct event *ret_copy);

/* Frees what a copy points to. The event itself is the caller's. */
void event_release(struct event *copy);

/* The answers of core_step and core_apply to an event that does not suit the state. */
enum { CORE_NO_SUCH_TASK = 1, CORE_NOT_NOW = 2 };

/* Returns "SUBMIT", "PLACE", ...: stable, since they stand in logs. */
const char *event_name(enum event_kind kind);

/* Reads such a name. Returns 0, or -EINVAL for another text. */
int event_parse_name(const char *name, enum event_kind *ret_kind);

#endif
