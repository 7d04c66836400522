/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this part share. */
#ifndef COLLOC_DAEMON_SUSPENSION_STATE_H
#define COLLOC_DAEMON_SUSPENSION_STATE_H

#include "checkpoint/helper_pool.h"
#include "checkpoint/suspend_rules.h"
#include "checkpoint/suspension_record.h"
#include "daemon/suspension/suspension.h"
#include "exec/cgroup_path.h"

enum { SUSPENSION_WHY_SIZE = 256 };

enum order_kind { ORDER_SUSPEND, ORDER_RESUME, ORDER_MOVE, ORDER_RELOCATE };

/* The carriers of all processes have answered: done, or the worst of their answers. */
typedef void suspension_carried(struct suspension *s, enum preload_carry_answer answer);

/* All processes have memory of the neighbour GPU; or `why_not` they have not. */
typedef void suspension_lent(struct suspension *s, const char *why_not);

/* An order that is with the driver, or was (order_driver.c). */
struct driver_run {
    struct pooled_group group;
    struct suspension_record record; /* the order's, meanwhile */
};

struct order {
    struct order *next;
    uint64_t task;
    uid_t uid; /* of the task */
    enum order_kind kind;
    bool is_urgent;     /* another task, a service or an operator waits for its GPU */
    int64_t started_us; /* when it was first begun; 0: it waits for its turn */
    bool is_under_way;  /* the first order of the queue, or none; not while it is with the driver */
    struct driver_run *run;     /* NULL: it has not come to the driver yet */
    struct suspend_facts facts; /* when it was decided */
    bool is_warned;             /* its task had the signal of its --signal, if it handles one */
    bool is_found;              /* an earlier daemon began it: the driver may hold its processes */
    bool is_undoing;            /* it has failed: what the driver holds is made to run again, */
    bool keeps_context;         /* and then the task is suspended with its context on its GPU */
    bool leaves_again; /* a resumption for which there is no memory: the driver takes it back */
    int retries, lost_helpers;
    uint64_t retry_at_ms;      /* it is not begun again before, in the loop's time */
    struct api_request *asker; /* answered when it is done; or NULL */

    /* What it waits for is the task's: where it goes on when its turn comes again. */
    void (*next_step)(struct suspension *s); /* NULL: from the beginning */
    int64_t held_us;                         /* when its collectives were held */
    int64_t gate_closed_us;                  /* when; 0: its gates were not closed yet */
    bool is_near;         /* its processes have memory of a neighbour GPU for their copies */
    bool has_near_failed; /* it goes on without */
    struct {
        bool is_away;
        int64_t begun_us, copying_us; /* when it was ordered, and when the first one copied */
        suspension_carried *next;
    } carry; /* order_carrier.c */
    struct {
        enum suspension_failure failure;
        char why[SUSPENSION_WHY_SIZE];
    } failed; /* a suspension whose memory comes back first */
};

/* Why the last suspension of a task failed. */
struct failure {
    struct failure *next;
    uint64_t task;
    char why[SUSPENSION_WHY_SIZE];
};

struct suspension {
    struct suspension_options parts;
    struct helper_pool helpers;
    struct copy_speed speed;
    int cuda_version; /* of the driver; CUDA_VERSION_UNKNOWN before it was queried */
    size_t n_gpus;
    char driver_fault[128]; /* why the driver cannot be used; "": it can */
    bool may_hang_host;     /* the driver's kernel module */
    struct order *orders;   /* the present one is the first */
    struct failure *failures;
    uv_timer_t timer;
    bool is_closed, is_asking;
    void (*begin_order)(struct suspension *s); /* it is the turn of the first order */
    void (*begin_next)(struct suspension *s);  /* suspension_begin_next */
    void (*take_group)(struct suspension *s, enum group_answer answer); /* suspension_take_group */

    /* of the order under way */
    struct helper_client *client; /* one of the helpers */
    int64_t awaited_poll;         /* 0: none */
    struct suspension_record record;
    struct suspend_facts facts;
    bool is_without_library; /* one of its processes was started without the preloaded library, */
    bool is_secure;          /* or with it, and is a setuid program */
    bool is_not_known;       /* one has not called CUDA since this daemon was started */
    size_t inspected;
    void (*on_facts)(struct suspension *s);
    suspension_lent *on_lent;
    size_t n_lent; /* processes that have got memory of a neighbour */
    uint64_t lent_bytes;
    char cgroup[CGROUP_PATH_SIZE]; /* of the task's attempt; "": it has none */
};

/* Returns the core's task; NULL: it has ended. */
static inline const struct task *suspension_find_task(const struct suspension *s, uint64_t id)
{
    return core_task(s->parts.core, id);
}

/* ---- order_queue.c ---- */

/* Adds an order of the core, unless the task has the same one. It begins when its turn comes. */
void suspension_add_order(struct suspension *s, uint64_t task, enum order_kind kind);

/* Keeps why the task could not be suspended, moved or paused, for users, until it ends. */
void suspension_note_failure(struct suspension *s, uint64_t task, const char *why);

/* Releases an order that is in no queue, and not with the driver. */
void suspension_free_order(struct order *order);

/* Begins the order whose turn it is, unless one is under way. */
void suspension_begin_next(struct suspension *s);

/* The task has ended: no reason of a failed suspension is kept. */
void suspension_forget_failure(struct suspension *s, uint64_t task);

/* End the order under way: the event that the core waits for is fed, a request that waits is
 * answered, and the next order begins. */
void suspension_complete_order(struct suspension *s, enum event_kind kind);
void suspension_fail_order(
    struct suspension *s, enum suspension_failure failure, bool is_suspended, const char *why);

/* Ends the turn of the order under way: it is begun again later, and others may be first. */
void suspension_retry_later(struct suspension *s, uint64_t wait_ms);

/*
 * The order under way waits for the task's own processes: for a moment at the front of the queue,
 * as most answer at once, then among the orders that are retried.
 *
 * poll_ms:  until it is asked again at the front
 * since_us: when it began to wait
 */
void suspension_wait_for_task(struct suspension *s, uint64_t poll_ms, int64_t since_us,
    void (*next_step)(struct suspension *s));

/* The order under way is void: its task has ended. The next one begins. */
void suspension_drop_order(struct suspension *s);

/* ---- suspension_files.c ---- */

/* Loads the record of the task's order; a record of an earlier suspension of the attempt does not
 * count. Returns whether there is one. */
bool suspension_load_record(struct suspension *s, const struct task *task);

/* Returns 0 or -errno. */
int suspension_save_record(const struct suspension *s, uint64_t task);
void suspension_remove_record(const struct suspension *s, uint64_t task);

/* Returns how often the task was suspended or moved. */
int suspension_count_stops(const struct task *task);

/* Sets the known faults of the driver's kernel module. */
void suspension_load_module(struct suspension *s);

/* The learned copy speed. */
void suspension_load_speed(struct suspension *s);
void suspension_save_speed(const struct suspension *s);

/* Reports the learned speed to the core, if it differs from the core's. */
void suspension_report_speed(struct suspension *s);

/* ---- order_pages.c ---- */

/* Closes or opens the gates of the task's processes. Returns the worst answer of them. */
enum preload_gate_answer suspension_set_gate(struct suspension *s, bool is_closed);

/* Returns how much GPU memory of the i-th process the carrier takes: by its page, which may claim
 * anything, at most what the driver has listed of it. */
uint64_t suspension_carried_bytes(const struct suspension *s, size_t i);

/* Returns how much of the copies of the record's processes would lie in the daemon's memory. */
uint64_t suspension_room_bytes(const struct suspension *s);

/* Returns how much of the copies lies on the neighbour; not valid: nothing does. */
struct reading suspension_near_bytes(const struct suspension *s);

/* Returns how much of the memory of the record's processes stays on their GPU while their blocks
 * are away. */
struct reading suspension_context_bytes(const struct suspension *s);

/* Are its processes ranks of NCCL, or may be? */
bool suspension_are_ranks(const struct suspension *s);

/* ---- memory_loan.c ---- */

/* Finds the attempt's cgroup, and notes its memory limit in the record. */
void suspension_note_memory_limit(struct suspension *s);

/* Raises that limit by the GPU memory of the record's processes, without what the daemon's memory
 * holds; may be repeated. */
void suspension_lend_memory(const struct suspension *s);

/* Sets the limit back. */
void suspension_return_memory(const struct suspension *s);

/* ---- order_facts.c ---- */

/* Collects the task's processes and the facts about them, and calls `next`. */
void suspension_gather_facts(struct suspension *s, void (*next)(struct suspension *s));

/* Leaves the daemon's memory for copies what suspended tasks leave of suspend-memory-max. */
void suspension_limit_rooms(struct suspension *s);

/* Has the host memory for so much more of suspended tasks? Writes why not. */
bool suspension_has_host_room(struct suspension *s, double bytes, char *why, size_t size);

/* Writes the UUIDs of GPUs of the core's view. */
void suspension_name_gpus(
    const struct suspension *s, const int *gpus, int n, struct gpu_name *ret_names);

/* ---- order_carrier.c ---- */

/* Takes into account how long the carriers copied that have just answered, unless a part may have
 * been copied before. */
void suspension_learn_carry(struct suspension *s, enum copy_way way);

/* Can the carriers of all processes of the record take their memory away, and is there one? */
bool suspension_can_carry(const struct suspension *s);

/* Has all processes of the record take their memory away, or bring it back, and calls `next`. */
void suspension_carry(struct suspension *s, bool is_away, suspension_carried *next);

/* ---- order_neighbour.c ---- */

/* May the copy of the order's task go to the neighbour GPU that the core has chosen? All facts are
 * known. */
bool suspension_may_go_near(const struct suspension *s);

/* Hands memory of the neighbour GPU to the processes, and calls `next`. Returns false: the order
 * needs none, or has it. */
bool suspension_lend_first(struct suspension *s, suspension_lent *next);

/* Takes that memory back, and the record of the order; its processes hold their own memory. */
void suspension_leave_neighbour(struct suspension *s, const char *why);

/* Has the driver take the contexts of the record's processes. The carrier has their memory. */
void suspension_take_context(struct suspension *s);

/* Moves the copies of the record's processes from the neighbour to the host. */
void suspension_run_relocation(struct suspension *s);

/* ---- order_driver.c ---- */

/* Returns which GPUs of the core's view orders with the driver have; the caller frees it. */
bool *suspension_claims(const struct suspension *s);

/* Adds the GPUs of the order to the claims. */
void suspension_claim_gpus(const struct suspension *s, const struct order *order, bool *claims);

/* Returns whether the order has none of the claimed GPUs. */
bool suspension_may_go_on(
    const struct suspension *s, const struct order *order, const bool *claims);

/* Returns whether the driver is at work for the order, or its answer was not taken. */
bool suspension_is_with_driver(const struct order *order);

/* Returns the runner of the order under way, whose group and moves are to be set. */
struct group_runner *suspension_runner(struct suspension *s);

/* The order under way goes to the driver by its runner, and the next one begins. */
void suspension_start_driver(struct suspension *s);

/* Returns whether the order is back from the driver, and its answer was not taken. */
bool suspension_is_answered(const struct order *order);

/* The first order goes on with the driver's answer. */
void suspension_take_answer(struct suspension *s);

/* ---- order_groups.c ---- */

/* All facts are known: suspends the task, or refuses it. */
void suspension_decide(struct suspension *s);

/* Suspends the processes of the record, once no synchronising call of them is in flight. */
void suspension_run_suspension(struct suspension *s);

/* Resumes the processes of the record on the GPUs that the core gave the task. */
void suspension_run_resumption(struct suspension *s);

/* The driver has answered for the group of the order under way. */
void suspension_take_group(struct suspension *s, enum group_answer answer);

#endif
