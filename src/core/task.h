/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task: what was asked for, where it is in its life, what it holds. The core keeps no more of a
 * task than decisions need; its script, environment and name are the driver's.
 */
#ifndef COLLOC_CORE_TASK_H
#define COLLOC_CORE_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure_class.h"
#include "base/reading.h"

struct policy;
struct task_queue;

/* What the scheduler may assume of the GPU memory a task takes on each of its GPUs. */
enum need_kind {
    NEED_UNKNOWN,   /* nothing is known: the policies' floor of free memory applies */
    NEED_PENDING,   /* an estimator is at work: the task waits for it */
    NEED_ESTIMATED, /* may be wrong: a need beyond every GPU means "a GPU to itself" */
    NEED_DECLARED,  /* the user's word: a need beyond every GPU is refused */
};

struct need {
    enum need_kind kind;
    int64_t
        bytes; /* of NEED_ESTIMATED and NEED_DECLARED; context included, as nvidia-smi shows it */
};

/* How a task shares its GPU with others. */
enum sharing {
    SHARING_STREAMS, /* plain processes, time-sliced by the driver */
    SHARING_MPS,     /* clients of an MPS server */
    SHARING_AUTO,    /* of a request only: one of the above is picked with its placement */
};

/* How an attempt shares its GPUs, and why so: core/sharing_choice.h decides it. */
struct sharing_mode {
    enum sharing sharing; /* SHARING_STREAMS or SHARING_MPS */
    enum share_reason {
        SHARE_AS_ASKED,
        SHARE_ALONE,         /* no other task will be placed there */
        SHARE_INSTANCE,      /* a MIG instance is a share of its own */
        SHARE_ONE_PROCESS,   /* the GPU's compute mode lets in several only through MPS */
        SHARE_FILLS,         /* it nearly fills a GPU: nothing to gain from running beside others */
        SHARE_WITH_ROOM,     /* it leaves SMs free, which MPS lets others use at the same time */
        SHARE_AS_NEIGHBOURS, /* the residents are time-sliced */
        SHARE_OTHER_USER,    /* a resident is a client of another user's MPS server */
        SHARE_BESIDE_FILLER, /* a resident nearly fills the GPU and would leave it little */
        SHARE_CAPPED,        /* it nearly fills a GPU, and others are there: they keep some SMs */
        SHARE_MPS_FAILED,    /* MPS has failed it before */
        SHARE_POSSIBLE_CAUSE, /* it may have caused a fault under MPS: time-sliced, faults stay apart */
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
    struct reading smact; /* 0..1, SM-time with a warp resident */
    struct reading gract; /* 0..1, time with any kernel resident */
    struct reading dram;  /* 0..1, of the memory's bandwidth */
    int64_t time_us;      /* how long an attempt takes; 0: not known */
};

struct task_request {
    int gpus;                    /* 1 or more, all or none */
    const struct policy *policy; /* NULL: the core's default */
    bool exclusive;              /* no other task on its GPUs as long as it runs */
    enum sharing sharing;
    int thread_percent; /* of the SMs, by MPS; 0: as the core sees fit */
    struct need need;
    int64_t time_limit_us; /* of one attempt; 0: none */
    struct expectation expect;
};

enum task_state {
    TASK_HELD,       /* in no queue until released */
    TASK_QUEUED,     /* in the main queue */
    TASK_RECOVERING, /* in the recovery queue: it ran out of GPU memory and waits for GPUs to itself
                      */
    TASK_STARTING,   /* has its GPUs, its process is not known yet */
    TASK_RUNNING,    /* has its GPUs and a process */
    TASK_ENDING,     /* as RUNNING, but it has been told to end (`ending` says why) */
    TASK_EXITED,     /* its process is gone, what that means is decided in the same step */
    TASK_COMPLETED,  /* from here on: done */
    TASK_FAILED,
    TASK_CANCELLED,
    TASK_TIMEOUT,
    TASK_OUT_OF_MEMORY,
    TASK_STATES
};

struct task_exit {
    enum failure_class failure;
    int code;         /* exit status, or -1 */
    int signal;       /* that ended it, or 0 */
    int64_t ended_us; /* when it ended, where that is known better than by the event; 0: then */
};

struct task {
    uint64_t id;
    uint32_t uid;
    struct task_request request;
    enum task_state state;
    enum failure_class ending; /* FAILURE_CANCELLED, FAILURE_TIME_LIMIT or FAILURE_GPU_GONE once it
                                  was told to end */

    int *gpus;                 /* its reservation: indices into the view; NULL when it holds none */
    int n_gpus;                /* 0 when it holds none */
    bool has_process;          /* known to run (or to have been spawned) */
    bool exclusive;            /* its GPUs take no other task as long as it runs */
    bool had_coresidents;      /* another task or external process was beside it in this attempt */
    struct sharing_mode share; /* of this attempt */
    int attempts;              /* begun: the number of the last */
    int unstarted;             /* of those, the ones that never started */
    int oom_count;
    struct reading free_bytes; /* on each of its GPUs when this attempt was placed there */
    int passed_count;          /* later tasks that have started before it */
    int requeue_count;         /* ends that were, or may have been, no fault of its own */
    int mps_failures;          /* of those, by MPS */
    bool
        not_at_fault; /* so was the last: its MPS server or its GPU failed it, or it is a suspect */
    bool possible_cause;   /* a fault under MPS stopped it: its own or a co-resident's */
    struct task_exit exit; /* of the last attempt */

    int64_t submitted_us;
    int64_t queued_us;  /* since when it waits, this time */
    int64_t started_us; /* of the last attempt; meaningless before the first */
    int64_t ended_us;
    int64_t waited_us;   /* in queues and held, finished waits only */
    int64_t executed_us; /* in execution, finished attempts only */

    struct task *next, *previous; /* in `queue` */
    struct task_queue *queue;     /* the one it is in, or NULL */
    int64_t number;               /* rising along the queue: see queue.c */
};

/* "PENDING", "RUNNING", ...: the words Slurm users know. */
const char *task_state_word(enum task_state state);

/* The internal name, for traces: "queued", "recovering", ... */
const char *task_state_name(enum task_state state);

/* "streams", "mps", "auto"; and back. */
const char *sharing_name(enum sharing sharing);
int sharing_parse(const char *name, enum sharing *ret_sharing);

static inline bool task_state_is_done(enum task_state state)
{
    return state >= TASK_COMPLETED;
}

static inline bool task_state_holds_gpus(enum task_state state)
{
    return state == TASK_STARTING || state == TASK_RUNNING || state == TASK_ENDING;
}

/* Was it told to end for good? Not for a GPU that is gone: then it goes back to its queue. */
static inline bool task_was_ended(const struct task *task)
{
    return task->ending && task->ending != FAILURE_GPU_GONE;
}

/* May a task go from one state to the other? The life-cycle table. */
bool task_may_move(enum task_state from, enum task_state to);

/*
 * The invariant: in a queue exactly when it waits, a reservation exactly when it is starting,
 * running or ending, a process exactly when running or ending.
 */
bool task_is_sound(const struct task *task);

/* Moves the task. Aborts the program on a move the table does not allow: going on would risk other
 * people's runs. */
void task_move(struct task *task, enum task_state to);

#endif
