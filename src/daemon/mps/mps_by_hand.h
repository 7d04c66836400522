/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc mps`: users list, start and stop their control daemons. Contract 2 of mps_manager.h.
 */
#ifndef COLLOC_DAEMON_MPS_BY_HAND_H
#define COLLOC_DAEMON_MPS_BY_HAND_H

#include <jansson.h>

#include "api/request.h"

struct mps;

/*
 * Starts or stops a user's daemon and answers `asker` when that is done.
 *
 * instance: UUID of the MIG instance whose control daemon is meant; "": that of whole GPUs
 *
 * Returns 0, or a fault, and then the caller answers `asker`: -EBUSY (tasks use it, or it is
 * starting or stopping), -ESRCH (there is none).
 */
int mps_start_by_hand(
    struct mps *mps, uid_t uid, gid_t gid, struct api_request *asker, struct fault *fault);
int mps_stop_by_hand(struct mps *mps, uid_t uid, const char *instance, struct api_request *asker,
    struct fault *fault);

/* Returns the users with a control daemon, now or earlier, as docs/protocol.md shows them. The
 * caller releases the list. */
json_t *mps_list(const struct mps *mps);

/* Writes the group of the user's control daemon, which may have ended. Returns false when the user
 * never had one. */
bool mps_find_group(const struct mps *mps, uid_t uid, gid_t *ret_gid);

#endif
