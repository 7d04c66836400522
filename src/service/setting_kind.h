/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of values that a setting of the daemon can have: one parser and one printer each. */
#ifndef COLLOC_SERVICE_SETTING_KIND_H
#define COLLOC_SERVICE_SETTING_KIND_H

#include <stddef.h>

#include "store/series.h"

/* How long samples of the GPUs are stored, and at which resolution; n 0: not at all. */
struct samples_kept {
    struct series_ring rings[SERIES_RINGS_MAX];
    size_t n;
};

struct setting_kind {
    /*
     * Parses a value into a field of struct config.
     *   size   of the field, in bytes
     * Returns 0, or -EINVAL and leaves the field as it is.
     */
    int (*set)(void *field, size_t size, const char *value);

    /* Writes the field as text that `set` reads. */
    void (*format)(const void *field, char *text, size_t size);

    const char *expects; /* for the message about a value that `set` refuses: "give ..." */
};

extern const struct setting_kind setting_text, setting_size, setting_request_memory,
    setting_duration, setting_period, setting_fraction, setting_quantile, setting_slowdown,
    setting_count, setting_percentage, setting_flag, setting_policy, setting_sharing,
    setting_statistic, setting_order, setting_half_life, setting_usage_window, setting_samples,
    setting_log_level, setting_web, setting_address, setting_mail_server, setting_mail_address,
    setting_alerts, setting_host_port, setting_user, setting_node_auth;

#endif
