/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/samples: the stored samples of the GPUs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/routes.h"

static int write_history(const struct http *http, double since_s, FILE *out)
{
    int64_t since_us = clock_wall_us() - (int64_t)(since_s * 1e6);
    return gpus_write_history(http->parts.gpus, since_us, out);
}

void route_samples(void *context, struct api_request *request)
{
    struct http *http = context;
    const char *since = api_request_query(request, "since_s");
    double since_s = 3600;
    char *text = NULL;
    size_t size;
    if (since && parse_double(since, 0, 1e9, &since_s) < 0) {
        api_reply_error(request, 400, "since_s=%.40s: a number of seconds", since);
        return;
    }
    FILE *out = open_memstream(&text, &size);
    int r = out ? write_history(http, since_s, out) : -ENOMEM;
    if (out && fclose(out) != 0)
        r = -ENOMEM;
    if (r == 0) {
        api_reply_text(request, 200, text);
        return;
    }
    free(text);
    api_reply_error(request, 500, "the samples cannot be read: %s", strerror(-r));
}
