/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be known of a task's CUDA processes while they are off their GPUs, and which no driver
 * reports then: a file of the state folder, written before the first process is locked and removed
 * when all run again.
 *
 *     attempt 1
 *     number 3                       of the suspensions and moves of the task before this one
 *     phase suspending               or resuming: all were suspended
 *     carried                        blocks are away, or may be (docs/carrier.md)
 *     clients                        of MPS: only blocks leave, the driver takes no part
 *     memory-max 68719476736         of the attempt's cgroup, if that has a limit (memory_loan.c)
 *     gpu GPU-8f...                  the task's, in its order
 *     process 4711 88123
 *     memory GPU-8f... 7841251328    of the process above
 */
#ifndef COLLOC_CHECKPOINT_SUSPENSION_RECORD_H
#define COLLOC_CHECKPOINT_SUSPENSION_RECORD_H

#include "base/reading.h"
#include "base/text.h"
#include "checkpoint/process_group.h"

struct gpu_name {
    char uuid[GPU_UUID_SIZE];
};

struct suspension_record {
    int attempt, number;
    bool is_resuming;
    bool is_carried;          /* their blocks go by the carrier, before the driver and after it */
    bool are_clients;         /* of MPS, or as such: their blocks go, their contexts stay */
    int64_t memory_max_bytes; /* of the attempt's cgroup before it was raised; 0: it has no limit */
    struct gpu_name gpus[GROUP_GPUS_MAX];
    size_t n_gpus;
    struct group_process processes[GROUP_PROCESSES_MAX];
    size_t n_processes;
};

/* Returns the text, which the caller frees; NULL when memory is out. */
char *suspension_record_write(const struct suspension_record *record);

/* Reads any bytes. Returns 0 or -EINVAL. */
int suspension_record_read(struct span text, struct suspension_record *ret_record);

/*
 * Maps the GPUs of the record to others: those that stay keep their place, the others follow in
 * order.
 *   gpus:      the same number as in the record
 *   ret_moves: HELPER_MOVES_MAX entries; only GPUs that change
 * Returns the number of moves, or -EINVAL: another number of GPUs.
 */
int suspension_record_map(const struct suspension_record *record, const struct gpu_name *gpus,
    size_t n_gpus, struct gpu_move *ret_moves);

/* Returns the most bytes that the processes hold together on one GPU; unknown where the record has
 * none. */
struct reading suspension_record_bytes(const struct suspension_record *record);

/* Returns the process of the record, which is added if it is not there yet; NULL: the record has as
 * many as it can have. */
struct group_process *suspension_record_process(struct suspension_record *record, pid_t pid);

#endif
