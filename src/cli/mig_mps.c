/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of a control daemon is a process on its instance, also while it has no client. The
 * daemon would stop it only when no task has used it for the time of the setting mps-linger.
 */
#include "cli/mig_mps.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "api/client.h"
#include "base/json_member.h"
#include "gpu/mig.h"

static bool is_of_gpu(const char *uuid, const struct mig_gpu *gpu)
{
    for (size_t i = 0; i < gpu->set->count; i++) {
        const struct gpu_info *info = &gpu->set->gpu[i];
        if (info->is_mig && info->parent == gpu->gpu && strcmp(info->uuid, uuid) == 0)
            return true;
    }
    return false;
}

static bool is_unused(const json_t *control, const struct mig_gpu *gpu)
{
    return json_is_integer(json_object_get(control, "pid")) &&
           member_number(control, "tasks", 1) == 0 &&
           is_of_gpu(member_text(control, "gpu_uuid", ""), gpu);
}

/* Returns when it has ended, or cannot be stopped. */
static void stop_control(struct client *client, const json_t *control)
{
    json_t *reply = NULL, *body = json_pack("{s:O, s:O}", "uid", json_object_get(control, "uid"),
                              "gpu_uuid", json_object_get(control, "gpu_uuid"));
    struct fault fault = {0};
    int status;
    if (body)
        client_request(client, "POST", "/v1/mps/stop", body, &fault, &status, &reply);
    json_decref(body);
    json_decref(reply);
}

void mig_mps_release(const struct invocation *invocation, const struct mig_gpu *gpu)
{
    struct client *client;
    struct fault fault = {0};
    json_t *reply = NULL;
    const json_t *control;
    size_t i;
    int status;
    if (client_open(invocation->common[COMMON_SOCKET].text, &fault, &client) < 0)
        return;
    if (!client_is_unserved(client))
        client_request(client, "GET", "/v1/mps", NULL, &fault, &status, &reply);
    json_array_foreach(json_object_get(reply, "daemons"), i, control) {
        if (is_unused(control, gpu))
            stop_control(client, control);
    }
    json_decref(reply);
    client_close(client);
}
