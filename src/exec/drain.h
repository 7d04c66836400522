/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the MPS clients of a task that is to end, in the order of exec/drain_plan.h. Each function
 * acts as the user and returns within two seconds, also if the MPS daemon does not answer. If the
 * task's environment names no MPS, there are no clients, and nothing is done.
 */
#ifndef COLLOC_EXEC_DRAIN_H
#define COLLOC_EXEC_DRAIN_H

#include <stddef.h>
#include <sys/types.h>

#include "exec/drain_plan.h"
#include "gpu/mps.h"

/* Of all servers of the user. Chosen: five GPUs full of clients (48 each from Volta on, by NVIDIA's
 * guide to MPS); further ones are not drained. */
enum { DRAIN_CLIENTS_MAX = 256 };

/* The MPS control daemon of the user, as the task's environment names it. */
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
        pid_t top; /* this process and its descendants belong to the client */
    } list[DRAIN_CLIENTS_MAX];
};

/*
 * Finds the MPS clients among the descendants of `root`, and decides the fate of each.
 *
 * ret_clients: empty if the MPS control daemon does not answer in time.
 */
void drain_find(const struct drain_mps *mps, pid_t root, struct drain_clients *ret_clients);

/* Lets the MPS server drop the work of the clients with that fate (terminate_client). */
void drain_drop(
    const struct drain_mps *mps, const struct drain_clients *clients, enum drain_fate fate);

/* Lets the MPS server drop the work of all descendants of `root` that are clients now. */
void drain_drop_all(const struct drain_mps *mps, pid_t root);

#endif
