/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MPS clients of a task that is to end: exec/drain_plan.h says in which order they lose their
 * work. Everything here acts as the user, within two seconds, also where MPS is sick. Without MPS
 * in the task's environment there are no clients, and nothing is done.
 */
#ifndef COLLOC_EXEC_DRAIN_H
#define COLLOC_EXEC_DRAIN_H

#include <stddef.h>
#include <sys/types.h>

#include "exec/drain_plan.h"
#include "gpu/mps.h"

enum { DRAIN_CLIENTS_MAX = 256 };

/* The user's MPS, as the task's environment names it. */
struct drain_mps {
    const char *const *env; /* the task's, ends in NULL; borrowed */
    uid_t uid;
    gid_t gid;
};

struct drain_clients {
    size_t count;
    struct drain_client {
        struct mps_client client;
        enum drain_fate fate;
        pid_t top; /* it and all processes below it are the client's part of the task */
    } list[DRAIN_CLIENTS_MAX];
};

/*
 * The MPS clients among the descendants of `root`, and what is to become of each. None when the
 * MPS control daemon does not answer in time.
 */
void drain_find(const struct drain_mps *mps, pid_t root, struct drain_clients *ret_clients);

/* Has the MPS server drop the work of the clients with that fate. */
void drain_drop(
    const struct drain_mps *mps, const struct drain_clients *clients, enum drain_fate fate);

/* The same for all descendants of `root` that are clients now. */
void drain_drop_all(const struct drain_mps *mps, pid_t root);

#endif
