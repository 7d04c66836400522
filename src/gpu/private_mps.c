/* SPDX-License-Identifier: Apache-2.0 */
/* Starts an MPS control daemon for measurements, which must not depend on an earlier MPS server.
 * The names of its sockets limit the length of its path, so its folder is in /tmp. */
#include "gpu/private_mps.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "gpu/mps.h"

static void remove_files(const char *folder)
{
    char path[PATH_MAX];
    static const char *const names[] = {"pipe/control", "pipe/control_lock",
        "pipe/control_privileged", "pipe/log", "log/control.log", "log/server.log"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "log" : "pipe");
        rmdir(path);
    }
    rmdir(folder);
}

int private_mps_start(
    struct private_mps *mps, const char *const *uuids, size_t count, struct fault *fault)
{
    char folder[] = "/tmp/colloc-mps-XXXXXX", log[64];
    if (!mkdtemp(folder))
        return fault_set(fault, errno, "%s: %s", folder, strerror(errno));
    snprintf(mps->pipe, sizeof mps->pipe, "%s/pipe", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    return mps_start(mps->pipe, log, uuids, count, fault);
}

void private_mps_stop(struct private_mps *mps)
{
    struct fault ignored = {0};
    if (!*mps->pipe)
        return;
    mps_stop(mps->pipe, &ignored);
    *strrchr(mps->pipe, '/') = '\0';
    remove_files(mps->pipe);
    *mps->pipe = '\0';
}
