/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preloaded library's place in the daemon (docs/preload.md): threads of tasks that wait for
 * GPU memory are answered, and the counts of processes become the exact peak of their task.
 *
 * Contract:
 * 1. Without the socket or the library, tasks run without it, and the log has the reason once. That
 *    is no error of the daemon.
 * 2. A waiting thread is reported to the core and gets the core's answer; after the time of the
 *    setting memory-wait it gets the true error.
 */
#ifndef COLLOC_DAEMON_PRELOAD_PRELOAD_MANAGER_H
#define COLLOC_DAEMON_PRELOAD_PRELOAD_MANAGER_H

#include "daemon/preload/preload_options.h"
#include "daemon/rooms/room_pool.h"
#include "preload/page_orders.h"

struct preload_manager;

/* Creates the part. `options` is copied. Returns NULL when memory is out. */
struct preload_manager *preload_manager_create(const struct preload_manager_options *options);

/* Listens beside the daemon's socket, whose folder exists by now. */
void preload_manager_open(struct preload_manager *manager);

/* Stops listening; threads that wait try again by themselves until the next daemon. NULL is
 * fine. */
void preload_manager_close(struct preload_manager *manager);

/* Releases the part once the loop has run after preload_manager_close. NULL is fine. */
void preload_manager_destroy(struct preload_manager *manager);

/* A task pauses. If that is for a probe (core/probe.h), steps are read more often until its end. */
void preload_manager_note_pause(struct preload_manager *manager);

/* Returns the socket that processes of tasks connect to; NULL: tasks run without the library. */
const char *preload_manager_socket(const struct preload_manager *manager);

/*
 * Closes or opens the gate that keeps a process of the task, or all of them (pid 0), from
 * synchronizing calls (preload/page.h).
 * Returns PRELOAD_GATE_CLEAR: no such call is in flight; PRELOAD_GATE_BUSY: one is, and returns
 * when the GPU has done its work; PRELOAD_GATE_AWAY: the process is not connected: it runs without
 * the library, or has not called CUDA since the daemon was started; PRELOAD_GATE_NONE: this daemon
 * runs all tasks without the library.
 */
enum preload_gate_answer {
    PRELOAD_GATE_CLEAR,
    PRELOAD_GATE_BUSY,
    PRELOAD_GATE_AWAY,
    PRELOAD_GATE_NONE
};
enum preload_gate_answer preload_manager_set_gate(
    struct preload_manager *manager, uint64_t task, struct process_id id, bool is_closed);

/*
 * Has the carrier of a process take its memory off the GPU, or bring it back; to be called again
 * until it answers. The gate of the process is closed.
 */
enum preload_carry_answer preload_manager_carry(
    struct preload_manager *manager, uint64_t task, struct process_id id, bool is_away);

/*
 * Says where the process's next copy goes (preload/copy_place.h), and hands over the memory.
 *
 * fd: the caller's; it may be closed afterwards. -1: for the process's own memory
 *
 * Returns false: the process does not read, has ended, or its library cannot use the place.
 */
bool preload_manager_give_room(struct preload_manager *manager, uint64_t task, struct process_id id,
    enum preload_place place, uint64_t bytes, uint64_t offset, int fd);

/* Has a copy of the process that lies on a neighbour GPU go to the place on the host that it was
 * given; to be called again until it answers. */
enum preload_carry_answer preload_manager_relocate(
    struct preload_manager *manager, uint64_t task, struct process_id id, enum preload_place place);

/* Returns where the copy of the process lies, whose memory is away. */
enum preload_place preload_manager_lies(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* Returns how much of the process's next copy would lie in the daemon's host memory
 * (room_pool.h): all of it, or 0. */
uint64_t preload_manager_room_bytes(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* Has the next copy of the process go there. Returns false: it cannot. */
bool preload_manager_lend_room(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* Limits the host memory held ready for copies: what suspended tasks leave of suspend-memory-max.
 */
void preload_manager_limit_rooms(struct preload_manager *manager, int64_t idle_max_bytes);

/* Return how much host memory is held ready for copies, in all and for a task; as
 * room_pool_totals and room_pool_of_task. */
struct room_totals preload_manager_rooms(const struct preload_manager *manager);
bool preload_manager_rooms_of_task(
    const struct preload_manager *manager, uint64_t task, struct room_of_task *ret_rooms);

/* Is its memory away, or on its way there? */
bool preload_manager_is_away(struct preload_manager *manager, uint64_t task, struct process_id id);

/* Can the carrier of the process take its memory away (page_can_carry)? */
bool preload_manager_can_carry(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* Returns how much of the process's GPU memory the carrier takes away; 0: none. */
uint64_t preload_manager_carried_bytes(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* Logs where each of the task's processes stands, as ranks of NCCL (preload/rank_text.h). */
void preload_manager_log_ranks(const struct preload_manager *manager, uint64_t task);

/*
 * Writes which process of the task cannot be carried, and why (page_explain_carrier).
 *
 * id: of its process; pid 0: of any that has the library
 *
 * Returns false, and writes nothing, when they can.
 */
bool preload_manager_explain_carrier(
    struct preload_manager *manager, uint64_t task, struct process_id id, char *text, size_t size);

/* Has the process of the task called CUDA with the library? */
bool preload_manager_knows(
    const struct preload_manager *manager, uint64_t task, struct process_id id);

/*
 * Holds the collectives of NCCL of the task's processes; to be called again until it answers. They
 * pass again when the gate of a process is opened (preload_manager_set_gate).
 */
enum preload_hold_answer preload_manager_hold(struct preload_manager *manager, uint64_t task);

/* Are the collectives of the process counted? */
bool preload_manager_counts_collectives(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* Returns whether the process is known to be in no communicator of NCCL, though it may have loaded
 * it, as each process with PyTorch has. */
bool preload_manager_has_no_ranks(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* Returns the flags of the page of a process (preload/page.h); 0: it runs without the library. */
uint32_t preload_manager_flags(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* Returns how long a process of the task has not called CUDA, in microseconds. Not valid: it was
 * never seen to, as a process without the library, or one with an older one. */
struct reading preload_manager_calls_idle_us(
    struct preload_manager *manager, uint64_t task, struct process_id id);

/* The core has decided about the allocation of the task that waits: it is tried again, or fails. */
void preload_manager_answer_memory(struct preload_manager *manager, uint64_t task, bool is_granted);

/* The GPUs were polled: peaks and calls are noted, waits and the calls of tasks that are suspended
 * because they made none are reported to the core. */
void preload_manager_polled(struct preload_manager *manager);

#endif
