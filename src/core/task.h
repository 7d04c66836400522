/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task: what was requested, which state it is in (task.c draws its life), what it holds. The core
 * has only the data that decisions need; the driver has its script, environment and name.
 */
#ifndef COLLOC_CORE_TASK_H
#define COLLOC_CORE_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure_class.h"
#include "base/reading.h"
#include "core/dependency.h"
#include "core/halving.h"
#include "core/suspension.h"

struct policy;
struct task_queue;

/* What the scheduler may assume of the GPU memory a task takes on each of its GPUs. */
enum need_kind {
    NEED_UNKNOWN,   /* unknown: the policies' minimum of free memory applies */
    NEED_PENDING,   /* an estimate is being made: the task waits for it */
    NEED_ESTIMATED, /* may be wrong: more than every GPU has means "a GPU to itself" */
    NEED_DECLARED,  /* by the user: more than every GPU has is refused */
};

struct need {
    enum need_kind kind;
    int64_t
        bytes; /* of NEED_ESTIMATED and NEED_DECLARED; context included, as nvidia-smi shows it */
};

/* Returns the kind of requirement that the estimator of this name gives: NEED_UNKNOWN for "none",
 * NEED_DECLARED for "declared", NEED_ESTIMATED for all others. */
enum need_kind need_kind_of_estimator(const char *name);

/* How a task shares its GPU with others. */
enum sharing {
    SHARING_STREAMS, /* plain processes, time-sliced by NVIDIA's driver */
    SHARING_MPS,     /* clients of an MPS server */
    SHARING_AUTO,    /* of a request only: one of the above is chosen with its placement */
    SHARINGS
};

/* How an attempt shares its GPUs, and why: core/sharing_choice.h decides it. */
struct sharing_mode {
    enum sharing sharing; /* SHARING_STREAMS or SHARING_MPS */
    enum share_reason {
        SHARE_AS_ASKED,
        SHARE_ALONE,         /* no other task will be placed there */
        SHARE_INSTANCE,      /* a MIG instance without a resident is time-sliced */
        SHARE_ONE_PROCESS,   /* the GPU's compute mode lets in several only through MPS */
        SHARE_FILLS,         /* of old logs: it nearly fills a GPU, and was time-sliced */
        SHARE_WITH_ROOM,     /* nothing speaks against MPS */
        SHARE_AS_NEIGHBOURS, /* the residents are time-sliced */
        SHARE_OTHER_USER,    /* a resident is a client of another user's MPS server */
        SHARE_BESIDE_FILLER, /* of old logs: a resident nearly fills the GPU, and both took turns */
        SHARE_CAPPED,        /* it nearly fills a GPU, and co-residents keep some SMs */
        SHARE_MPS_FAILED,    /* MPS has failed it before */
        SHARE_POSSIBLE_CAUSE,  /* it may have caused a fault under MPS, so it runs without */
        SHARE_TURNS_FASTER,    /* all together are predicted to get more done in turns */
        SHARE_FOR_PROMISE,     /* it leaves SMs to a task there that was promised a speed */
        SHARE_GPU_WITHOUT_MPS, /* the setting mps-gpus does not list the GPU */
        SHARE_REASONS
    } reason;
    int thread_percent;      /* of the SMs, of an MPS client; 0: no limit */
    int64_t mem_limit_bytes; /* on each GPU, of an MPS client; 0: none */
};

/*
 * What a task is expected to do to each of its GPUs while it has them to itself, as its user, an
 * estimator or a catalogue gives it. What is not given is not valid: never zero.
 */
struct expectation {
    struct reading smact;   /* 0..1, SM-time with a warp resident */
    struct reading gract;   /* 0..1, time with any kernel resident */
    struct reading dram;    /* 0..1, of the memory's bandwidth */
    struct reading time_us; /* how long an attempt takes; never 0 */
};

/* Classes of priority. The queue is in their order, and within a class in that of submission. */
enum { PRIORITY_LOW = -1, PRIORITY_NORMAL, PRIORITY_HIGH, PRIORITY_URGENT };

/* CPUs and main memory of the server; 0: not counted (host_check.c). */
struct host_resources {
    int cpus;
    int64_t memory_bytes;
};

/* Of the list of kinds, with its NUL. Chosen: four long names. */
enum { TASK_GPU_KIND_SIZE = 128 };

/* Of a list of single GPUs. Chosen: the UUIDs of 32 MIG instances. */
enum { TASK_GPU_LIST_SIZE = 2048 };

/* A service has no end: it is run again whatever ended it, and trainings beside it give way when it
 * misses its latency target (service.c). */
struct service_request {
    bool is_service;
    int64_t p99_us; /* its target: 99 % of its requests take no longer; 0: none */
};

struct task_request {
    int gpus;                    /* all or none; 0: it needs none (pass/host_pass.c) */
    int nodes;                   /* that they are spread over, as many on each and of the same
                                    indices there; 0 and 1: all are of one node */
    struct host_resources host;  /* of all its processes together */
    const struct policy *policy; /* NULL: the core's default */
    bool exclusive;              /* no other task on its GPUs as long as it runs */
    bool takes_turns;            /* it is suspended when its time slot has ended and others wait */
    bool limited;                /* the limits of its user apply (core_settings) */
    bool once;                   /* it is not run again after an attempt, whatever ended that */
    enum sharing sharing;
    int thread_percent; /* of the SMs, by MPS; 0: as the core sees fit */
    int priority;       /* PRIORITY_LOW to PRIORITY_URGENT */
    struct need need;
    int64_t time_limit_us; /* of one attempt; 0: none */
    struct expectation expect;
    struct service_request service;
    struct reading slowdown_max; /* the promise of its speed: the greatest ratio of its time to that
                                    alone (state/promise.c); not valid: nothing is promised */
    int64_t begin_us;            /* it does not start before; 0: at once */
    const struct dependency *after; /* of SUBMIT; a task holds those that are open: see below */
    int n_after;
    bool without_library; /* its user or the daemon wants no preloaded library, or allocations
                             never wait */
    const char
        *gpu_kind; /* kinds that its GPUs may be of (core/kind_match.h); NULL: any. Of SUBMIT;
                             a task has a copy, on the heap */
};

enum task_state {
    TASK_HELD,       /* in no queue until released */
    TASK_BLOCKED,    /* in the queue of tasks that may not start yet (eligibility.c) */
    TASK_QUEUED,     /* in the main queue */
    TASK_RECOVERING, /* in the recovery queue: it ran out of GPU memory */
    TASK_STARTING,   /* has its GPUs, its process is not known yet */
    TASK_RUNNING,    /* has its GPUs and a process */
    TASK_PAUSED,     /* as RUNNING, but its processes are frozen */
    TASK_SUSPENDING, /* as RUNNING, but it is being taken off its GPUs */
    TASK_SUSPENDED,  /* has a process, but no GPUs: in the queue of suspended tasks, unless it stays
                        suspended (task_stays_suspended) */
    TASK_RESUMING,   /* has new GPUs, on which its process is being put */
    TASK_MOVING,     /* has its GPUs and those to which its process is being moved */
    TASK_ENDING,     /* as RUNNING, but colloc is ending it (`ending` says why) */
    TASK_EXITED,     /* its process has ended; the same step decides what follows */
    TASK_COMPLETED,  /* from here on: done */
    TASK_FAILED,
    TASK_CANCELLED,
    TASK_TIMEOUT,
    TASK_OUT_OF_MEMORY,
    TASK_STOPPED, /* by the stop rule of its array */
    TASK_STATES
};

struct task_exit {
    enum failure_class failure;
    int code;         /* exit status, or -1 */
    int signal;       /* that ended it, or 0 */
    int64_t ended_us; /* when it ended, where that is known better than by the event; 0: then */
    bool by_gpu;      /* of FAILURE_GPU_FAULT: the GPU itself is at fault, by an ECC error or so */
};

/* How a task gives way, and what that has come to. */
struct task_yield {
    enum yield_reason reason; /* of the last time */
    uint64_t to_task;         /* the task that it gave way to, the last time; 0: none */
    bool by_user;             /* a user suspended it: only a user resumes it */
    bool is_unused;           /* it did not use its GPUs: it stays suspended until it calls CUDA */
    bool cannot_suspend;      /* found out in this attempt */
    bool cannot_pause;        /* likewise */
    bool is_frozen;           /* its processes are to be frozen */
    bool keeps_context;       /* that it was last to be suspended so (ask/context_place.h) */
    int *to_gpus;             /* of a move: where to; NULL when it is not moving */
    int n_to_gpus;
    int from_gpu;      /* the first GPU that it had when it was suspended */
    int *context_gpus; /* all of them, while its contexts stay there though it is suspended; NULL:
                          they do not */
    int n_context_gpus;
    struct reading bytes;         /* on each GPU, when it was suspended; never 0 */
    struct reading context_bytes; /* how much of `bytes` stayed so, the last time in this attempt;
                                     not valid: nothing does */
    double counted_bytes;         /* of host memory, for its user (state/copies.c) */
    bool has_ranks;               /* ranks of NCCL: it must be back in time; of this attempt */
    int mps_clients;              /* how many clients of MPS these processes are */
    int neighbour;         /* with has_neighbour: the GPU that has, or is to have, the copy of its
                           memory while it is suspended (ask/neighbour.h) */
    bool has_neighbour;    /* else that copy is on the host */
    bool is_relocating;    /* that copy goes to the host; without one, its context */
    bool neighbour_failed; /* in this attempt: not tried again */
    int64_t relocate_retry_us;  /* the way to the host failed: not tried again before */
    int context_refusals;       /* how often the driver refused to take its context, since it last
                                   took it in this attempt */
    int64_t since_us;           /* since when it does not compute; 0: it does */
    int64_t ordered_us;         /* when it was last to be suspended, resumed or moved */
    int64_t until_us;           /* of a pause for a probe: it goes on then, at the latest */
    int64_t resumed_us;         /* when it last came back in this attempt; 0: never */
    int64_t retry_us;           /* its resumption failed: not tried again before */
    int failures;               /* of resumptions, since the last that succeeded */
    int64_t stopped_us;         /* not computing, all attempts; finished stops only */
    int64_t attempt_stopped_us; /* the same of this attempt */
    int64_t cost_us;            /* of that: suspending, resuming and moving */
    int suspensions, moves, pauses;
    int probes;          /* finished pauses for probes, all attempts: of `pauses`, */
    int64_t probed_us;   /* how long they took together, */
    uint64_t probed_for; /* and the task that the last one was for */
};

/* An allocation of the task that waits in its process for GPU memory to become free. */
struct memory_wait {
    int64_t bytes; /* 0: none waits */
    int64_t since_us;
    bool is_unconfirmed; /* the driver was restarted, and has not reported it again yet */
    int count;           /* of waits, all attempts */
    int64_t waited_us;   /* in finished waits, all attempts */
    int n_refused; /* tries of this allocation that the driver refused though enough was free */

    /* What was done for its waits so that it gets memory: others gave way, or it was moved. */
    int n_unpaid;            /* such waits of this attempt after which it has not grown */
    int64_t unpaid_since_us; /* since_us of the last of them */
    int64_t paid_at_bytes;   /* with that much on a GPU it has grown since then */
};

/* What keeps a task BLOCKED that has no open dependency and may begin. */
enum task_gate {
    GATE_NONE,
    GATE_ARRAY,
    GATE_USER_TASKS, /* of core_settings.user_limits, in the order of struct use_limits */
    GATE_USER_GPUS,
    GATE_USER_MEMORY,
    GATE_USER_USAGE,
    GATE_PROJECT_TASKS, /* of project_limits */
    GATE_PROJECT_GPUS,
    GATE_PROJECT_MEMORY,
    GATE_PROJECT_USAGE,
    TASK_GATES
};

/* The state of a service (service.c). Its reports are not in the log. */
struct task_service {
    struct reading p99_us; /* of its last report; not valid: not known */
    int64_t reported_us;   /* when that was; 0: never in this attempt */
    int64_t met_since_us;  /* since when it meets its target; 0: it does not, or that is unknown */
    int64_t missed_since_us;
    int64_t joined_us;  /* when a task last came beside it */
    int64_t changed_us; /* when one last came, or gave way */
    int doublings;      /* of the time for which it has to meet its target before another comes */
    int quick_ends;     /* attempts in a row that ended soon */
    int restarts;
};

/* The state of a promise of speed, and what is measured of a task without one (promise.c). Reports
 * are not in the log. */
struct task_promise {
    struct reading slowdown; /* times as long as alone, as last measured and believed */
    double passed_slowdown;  /* when a pass was last needed for it; 0: never, or not known then */
    struct reading average;  /* times as long as alone, of all windows that were measured */
    double windows_s;        /* how long these were */
    double alone_s;          /* what they would have been alone */
    bool is_doubted;         /* the report said more than is believed */
    int64_t reported_us;     /* when that was; 0: never in this attempt, or not known any more */
    int64_t missed_since_us; /* 0: it is not missed, or that is unknown */
    struct reading step_us;  /* what a step took, as last measured */
    int64_t joined_us;       /* when a task last came beside it */
    int64_t gave_way_us;     /* when one last gave way to it; 0: never */
    int64_t changed_us;      /* the later of the two */
    int doublings;           /* of the time before the next one comes */
    int n_gave_way;
    int64_t probe_begun_us; /* when tasks were last paused to measure it alone; 0: never */
    int64_t probe_until_us; /* they go on then, at the latest; the past: they have */
    int n_probes;
};

/* The array that a task is of. Its tasks have rising ids, all above the array's own. */
struct task_array {
    uint64_t id; /* 0: of none */
    int index;   /* of this task */
    int limit;   /* of tasks in queues and running at a time; 0: none */
};

/* How people name a task: "12", or "14_3" of array 14. */
struct task_label {
    char text[36];
};

/*
 * What only a task has that was placed once, or that can never start. Most tasks of a long queue
 * share one that is empty and constant: it may be read of every task, and written of a task that
 * has an attempt, or has had one.
 */
struct task_run {
    struct sharing_mode share; /* of this attempt */
    bool need_is_least;        /* the requirement is what it was seen to want: it may want more */
    bool has_library;          /* the preloaded library was given to this attempt's processes;
                                  until STARTED: it is expected */
    double kind_speed;         /* of its slowest GPU, relative to the kind that its expected time
                                  holds for (kind_speed.h); 0: it has not been placed */
    int unstarted;             /* attempts that never started */
    struct reading free_bytes; /* on each of its GPUs when this attempt was placed there */
    struct reading reached_bytes; /* of FAILURE_GPU_OOM: how much of each GPU was left to it */
    struct task_exit exit;        /* of the last attempt */
    struct dependency_end broken; /* of FAILURE_DEPENDENCY: the one that can never hold */
    struct task_yield yield;
    struct task_service service;
    struct task_promise promise;
    struct memory_wait memory_wait;
    struct halving_rank stop; /* of its last report at a rung; `of` 0: none */
    int n_rungs;              /* it reports no more at rungs below */
};

/* A daemon may have tens of thousands: members are in an order without holes. */
struct task {
    uint64_t id;
    struct task_array array;
    struct task *next, *previous; /* in `queue` */
    struct task_queue *queue;     /* the one it is in, or NULL */
    int64_t number;               /* rising along the queue: see queue.c */
    uint32_t uid;
    enum task_state state;
    struct task_request request;
    struct task_run *run; /* never NULL; shared until the first placement */

    int *gpus;                 /* those it holds: indices into the view; NULL when it holds none */
    int n_gpus;                /* 0 when it holds none */
    enum failure_class ending; /* why colloc ends it: FAILURE_CANCELLED, FAILURE_TIME_LIMIT,
                                  FAILURE_GPU_GONE, FAILURE_REQUEUED or FAILURE_STOPPED;
                                  FAILURE_NONE: it does not */
    bool has_process;          /* known to run (or to have been spawned) */
    bool exclusive;            /* its GPUs take no other task as long as it runs */
    bool had_coresidents;      /* another task or external process was beside it in this attempt */
    bool not_at_fault;         /* the task did not cause its last end, or may not have: its MPS
                                  server or GPU failed, or a fault under MPS may be a
                                  co-resident's */
    bool possible_cause;       /* a fault under MPS ended it: its own or a co-resident's */
    int attempts;              /* begun: the number of the last */
    int oom_count;
    int passed_count;         /* later tasks that have started before it */
    int n_backfilled;         /* residents that were placed on GPUs reserved for it */
    int requeue_count;        /* ends that the task did not cause, or may not have caused */
    int mps_failures;         /* of those, by MPS */
    enum task_gate gate;      /* of a BLOCKED task: what kept it so when it was last examined */
    int n_after;              /* of `after` */
    struct dependency *after; /* dependencies that are open; on the heap, NULL without one */

    int64_t latest_start_us; /* with preemption: it comes first from then on; 0: it has none,
                                because its time is not known, or it may not start */
    int64_t fair_since_us;   /* since when it waited when it got the first one (fifo_schedule.c) */
    int64_t submitted_us;
    int64_t queued_us;  /* since when it waits, this time */
    int64_t started_us; /* of the last attempt; meaningless before the first */
    int64_t ended_us;
    int64_t waited_us;   /* in queues and held, finished waits only */
    int64_t executed_us; /* in execution, finished attempts only */
};

/* Returns the run that all tasks share which were never placed. */
struct task_run *task_no_run(void);

/* Is the GPU among these `n`? */
static inline bool gpu_is_among(int gpu, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] == gpu)
            return true;
    return false;
}

/* Returns the first of the GPUs on which alone a suspended task can be resumed, as its contexts
 * have stayed there; -1: there are none, or the task is not suspended. */
static inline int task_context_gpu(const struct task *task)
{
    bool is_there = task->state == TASK_SUSPENDED && task->run->yield.context_gpus;
    return is_there ? task->run->yield.from_gpu : -1;
}

/* Is it suspended, and has the driver refused so often to take its context off its GPU that this
 * counts as staying? Only the task's next turn can take it away: it is resumed on what is free
 * (ask/placement.h). */
static inline bool task_is_context_stuck(const struct task *task)
{
    return task_context_gpu(task) >= 0 &&
           task->run->yield.context_refusals >= SUSPENSION_REFUSALS_MAX;
}

/* May a task be put on the GPU, as far as its contexts decide that? A suspended one whose contexts
 * have stayed continues only where they are. */
static inline bool task_may_return_to(const struct task *task, int gpu)
{
    const struct task_yield *yield = &task->run->yield;
    return task_context_gpu(task) < 0 ||
           gpu_is_among(gpu, yield->context_gpus, yield->n_context_gpus);
}

/* Makes the task's run, unless it has been made. It is released by task_end_run. Returns 0 or
 * -ENOMEM. */
int task_begin_run(struct task *task);

/* Has the task a run that it does not share? */
bool task_has_run(const struct task *task);

/* Releases the task's run. */
void task_end_run(struct task *task);

/* Returns Slurm's name of the state: "PENDING", "RUNNING", ... */
const char *task_state_word(enum task_state state);

/* Returns the exact name, for traces: "queued", "recovering", ... */
const char *task_state_name(enum task_state state);

/* Returns "low", "normal", "high" or "urgent". */
const char *priority_name(int priority);

/* Reads such a name. Returns 0, or -EINVAL for another text. */
int priority_parse(const char *name, int *ret_priority);

struct task_label task_label(const struct task *task);

/* The label of a task of no array, or of one that is not known any more. */
struct task_label task_label_of_id(uint64_t id);

/* Returns "streams", "mps" or "auto". */
extern const char *const sharing_names[SHARINGS];
const char *sharing_name(enum sharing sharing);

/* Reads such a name. Returns 0, or -EINVAL for another text. */
int sharing_parse(const char *name, enum sharing *ret_sharing);

static inline bool task_state_is_done(enum task_state state)
{
    return state >= TASK_COMPLETED;
}

/* Has it ended as its submitter wanted? A task that the stop rule of its array ended has. */
static inline bool task_state_is_success(enum task_state state)
{
    return state == TASK_COMPLETED || state == TASK_STOPPED;
}

static inline bool task_state_holds_gpus(enum task_state state)
{
    return state >= TASK_STARTING && state <= TASK_ENDING && state != TASK_SUSPENDED;
}

/* Is an attempt under way? It has a process, or is about to have one. */
static inline bool task_state_has_attempt(enum task_state state)
{
    return state >= TASK_STARTING && state <= TASK_ENDING;
}

/* Is it being suspended, resumed or moved? It is not ended meanwhile: that waits for the answer. */
static inline bool task_state_is_changing(enum task_state state)
{
    return state == TASK_SUSPENDING || state == TASK_RESUMING || state == TASK_MOVING;
}

/* How much has to be free for the allocation that waits: more after each refused try. */
double memory_wait_enough_bytes(const struct memory_wait *wait);

/* How long the present attempt has computed. */
static inline int64_t task_computed_us(const struct task *task, int64_t now_us)
{
    if (!task_state_has_attempt(task->state))
        return 0;
    int64_t until_us = task->run->yield.since_us ? task->run->yield.since_us : now_us;
    return until_us - task->started_us - task->run->yield.attempt_stopped_us;
}

/* How long the task still runs on its GPUs if nothing slows it down; 0: it has overrun its expected
 * time, which has to be known. */
static inline int64_t task_rest_us(const struct task *task, int64_t now_us)
{
    double speed = task->run->kind_speed > 0 ? task->run->kind_speed : 1;
    int64_t takes_us = (int64_t)(task->request.expect.time_us.value / speed);
    int64_t left_us = takes_us - task_computed_us(task, now_us);
    return left_us > 0 ? left_us : 0;
}

/* Since when the running task has its GPUs, this time. */
static inline int64_t task_runs_since_us(const struct task *task)
{
    return task->run->yield.resumed_us ? task->run->yield.resumed_us : task->started_us;
}

/* Does colloc end the task finally? Not if it is requeued: its GPU was lost, or a user has it run
 * again. */
static inline bool task_was_ended(const struct task *task)
{
    return task->ending && task->ending != FAILURE_GPU_GONE && task->ending != FAILURE_REQUEUED;
}

/* Had the task ended by itself before its time limit, although colloc has found the limit to be
 * over? So it is where the daemon was away or stopped meanwhile. False where `ended_us` is 0:
 * unknown. */
static inline bool task_ended_before_limit(const struct task *task, int64_t ended_us)
{
    int64_t limit_us = task->started_us + task->run->yield.attempt_stopped_us +
                       task->request.time_limit_us;
    return task->ending == FAILURE_TIME_LIMIT && ended_us && ended_us < limit_us;
}

/* May a task go from one state to the other, by the table in task.c? */
bool task_may_move(enum task_state from, enum task_state to);

/* What a task will take, learned after its submission. */
struct task_estimate {
    struct need need;
    struct reading smact; /* expected */
};

/* Sets what the request does not say yet; an estimated memory requirement may also rise. Returns
 * whether the estimate says anything of that. */
bool task_request_learn(struct task_request *request, const struct task_estimate *estimate);

/* Returns whether the two tasks have a GPU in common. */
bool task_shares_gpu(const struct task *a, const struct task *b);

/* Returns whether a suspended task is not resumed as soon as enough memory is free: a user
 * suspended it, it did not use its GPUs, or it has to end. */
bool task_stays_suspended(const struct task *task);

/*
 * Tests the invariant: the task is in a queue exactly while it waits, holds GPUs exactly while its
 * state does, has a process exactly from RUNNING to ENDING, has a destination exactly while it is
 * moving, is frozen only while it is paused or ending, and has open dependencies only while it is
 * held or blocked.
 */
bool task_is_sound(const struct task *task);

/* Moves the task to a state. Aborts the program on a move that the table does not allow: to
 * continue with a wrong state would risk other users' tasks. */
void task_move(struct task *task, enum task_state to);

#endif
