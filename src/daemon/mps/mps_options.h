/* SPDX-License-Identifier: Apache-2.0 */
/* What the part mps is given when it is created: the tasks and GPUs that it serves, the hooks that
 * it calls, and what it borrows. */
#ifndef COLLOC_DAEMON_MPS_OPTIONS_H
#define COLLOC_DAEMON_MPS_OPTIONS_H

#include <uv.h>

#include "base/hash.h"
#include "core/core.h"
#include "daemon/config.h"
#include "service/user_names.h"

/* Returns the short name of a MIG instance by its UUID; 0 for "", which is all whole GPUs. */
static inline uint64_t mps_instance_number(const char *uuid)
{
    return *uuid ? hash_text(HASH_START, uuid) : 0;
}

struct mps_instance {
    const char *uuid, *label; /* borrowed; the label is "0:1" */
    bool is_gone;             /* the driver no longer has it */
};

/*
 * Which tasks the part serves, and on which GPUs: in collocd those of the core (mps_ask_core), in
 * the agent of a Slurm node its steps and GPUs. All must be set; each gets `context`.
 */
struct mps_source {
    const void *context;

    /* Returns how many clients the user has: tasks that share by MPS now, on the MIG instance of
     * that number or, with 0, on whole GPUs. */
    int (*count_clients)(const void *context, uid_t uid, uint64_t instance);

    /* Lists the UUIDs of the whole GPUs that a control daemon serves, borrowed. Returns how many,
     * at most `max`. Called in a helper process. */
    size_t (*list_gpus)(const void *context, const char **uuids, size_t max);

    /* Finds a MIG instance, also one that is gone, by its number. Returns false when the machine
     * never had it. Called in a helper process, too. */
    bool (*find_instance)(
        const void *context, uint64_t instance, struct mps_instance *ret_instance);
};

/* Returns the answers of a core, which outlives the part. */
struct mps_source mps_ask_core(const struct core *core);

/* What the part calls up. All must be set; each gets `context`. */
struct mps_hooks {
    void *context;

    /* This user's control daemon was started or stopped, or could not be: tasks that wait for it
     * may start now. */
    void (*ready)(void *context, uid_t uid);

    /* A request was answered outside of its handler. */
    void (*answered)(void *context);
};

struct mps_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    struct names *names;
    struct mps_source source;
    struct mps_hooks hooks;
};

#endif
