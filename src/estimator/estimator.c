/* SPDX-License-Identifier: Apache-2.0 */
/* Names and parts of requests and estimates. */
#include "estimator/estimator.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"

struct count estimate_batch(const struct estimate_request *request)
{
    if (request->batch != ESTIMATE_NOT_GIVEN)
        return (struct count){.value = request->batch, .known = true};
    return request->model ? request->model->batch : (struct count){0};
}

const char *evidence_name(enum evidence evidence)
{
    static const char *const names[EVIDENCE_KINDS] = {
        "none",
        "doubtful summary",
        "summary",
        "declared",
        "export",
        "script",
        "export with kernels",
        "one other run",
        "several runs",
        "same run",
        "other optimizer",
        "compiled step",
        "other runs",
    };
    return names[evidence];
}

static const struct {
    const char *name;
    int percent;
} quantiles[QUANTILES] = {
    [QUANTILE_P50] = {"p50", 50},
    [QUANTILE_P90] = {"p90", 90},
    [QUANTILE_P99] = {"p99", 99},
};

int quantile_parse(const char *text, enum quantile *ret_quantile)
{
    double part = -1;
    if (parse_double(text, 0, 1, &part) < 0)
        part = -1;
    for (enum quantile q = QUANTILE_P50; q < QUANTILES; q++)
        if (strcasecmp(text, quantiles[q].name) == 0 || part == quantiles[q].percent / 100.0) {
            *ret_quantile = q;
            return 0;
        }
    return -EINVAL;
}

int quantile_percent(enum quantile quantile)
{
    return quantiles[quantile].percent;
}

struct reading estimate_quantile(const struct estimate *estimate, enum quantile quantile)
{
    const struct reading all[QUANTILES] = {
        estimate->p50_bytes, estimate->p90_bytes, estimate->p99_bytes};
    return all[quantile];
}

struct reading estimate_reserved(const struct estimate *estimate, enum quantile quantile)
{
    struct reading bytes = estimate_quantile(estimate, quantile);
    return bytes.valid ? bytes : estimate->bytes;
}
