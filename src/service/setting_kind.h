/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of values that settings of the daemons have, beside those of base/setting.h and of the
 * core's settings. */
#ifndef COLLOC_SERVICE_SETTING_KIND_H
#define COLLOC_SERVICE_SETTING_KIND_H

#include <stddef.h>

#include "base/setting.h"
#include "core/setting_table.h"

/* How long samples of the GPUs are stored, and at which resolution; n 0: not at all. */
struct samples_ring {
    int64_t step_us; /* of one mean */
    int64_t keep_us; /* how far it goes back; a multiple of the step */
};
enum { SAMPLES_RINGS_MAX = 8 };
struct samples_kept {
    struct samples_ring rings[SAMPLES_RINGS_MAX]; /* the finest first */
    size_t n;
};

/* What happens with processes that use GPUs outside of tasks. */
enum outside_way {
    OUTSIDE_SHOW,    /* colloc gpus lists them */
    OUTSIDE_MESSAGE, /* their users get a message, too */
    OUTSIDE_LIMIT,   /* and no further one can open a GPU */
};

extern const struct setting_kind setting_web, setting_address, setting_mail_server,
    setting_mail_address, setting_alerts, setting_host_port, setting_user, setting_request_memory,
    setting_policy, setting_quantile, setting_samples, setting_outside, setting_sharing,
    setting_node_auth, setting_log_level;

#endif
