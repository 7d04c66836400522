/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of slurmstepd's plugin (src/spank) to the agent, as one packet of a SOCK_SEQPACKET
 * socket:
 *
 *     start job=12 step=-5 uid=1000 gid=1000 gpus=0,3 sharing=mps
 *     end job=12 step=-5 uid=1000 gid=1000 gpus=0,3 status=256
 *     start job=15 step=-5 uid=1000 gid=1000 gpus=0 array=12 task=3 sharing=auto
 *
 * The agent answers with one packet: variables for the step's environment, one "NAME=VALUE" in a
 * line; or after `end`, "requeued" or "final". Without an answer to `end` the plugin asks again:
 * the agent was killed.
 */
#ifndef COLLOC_DAEMON_NODE_STEP_REQUEST_H
#define COLLOC_DAEMON_NODE_STEP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

enum { STEP_REQUEST_MAX = 512, STEP_ANSWER_MAX = 1024 };

enum step_sharing { STEP_SHARING_ANY, STEP_SHARING_STREAMS, STEP_SHARING_MPS };

struct step_request {
    enum { STEP_STARTS, STEP_ENDS } kind;
    uint32_t job;
    uint32_t array_job, array_task; /* array_job 0: the job is no task of an array */
    int32_t step;
    uid_t uid;
    gid_t gid;
    uint64_t gpus; /* a bit for each index below 64 */
    enum step_sharing sharing;
    int status;     /* as waitpid shows it */
    bool is_pinned; /* in a record only: by the controller */
};

/*
 * Writes `start ...` with a line end, as step_request_parse reads it: the record that an agent
 * leaves of a step for the next one.
 *
 * Returns 0, or -ENOSPC.
 */
int step_request_write(const struct step_request *request, char *text, size_t size);

/* Reads a NUL-terminated packet, which is changed. Returns 0 or -EINVAL with a fault. */
int step_request_parse(char *packet, struct fault *fault, struct step_request *ret_request);

#endif
