/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of estimators, and what all of them share: the request is checked, one estimator runs,
 * and the result is a number or a note that says why there is none.
 */
#include "estimator/estimator_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

static const struct estimator *const table[] = {
    &estimator_none,
    &estimator_declared,
    &estimator_summary,
    &estimator_horus,
    &estimator_faketensor,
    &estimator_graph,
    &estimator_history,
#if HAVE_GPUMEMNET
    &estimator_gpumemnet_mlp,
    &estimator_gpumemnet_transformer,
#endif
};

const struct estimator *estimator_at(size_t i)
{
    return i < ARRAY_SIZE(table) ? table[i] : NULL;
}

const struct estimator *estimator_find(const char *name)
{
    const struct estimator *e;
    for (size_t i = 0; (e = estimator_at(i)) != NULL; i++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

const char *estimator_choose(
    const char *named, const struct estimate_request *request, const char *usual)
{
    if (named)
        return named;
    if (request->declared_bytes)
        return estimator_declared.name;
    return request->model ? usual : estimator_none.name;
}

int estimate_note(struct estimate *estimate, int r, const char *format, ...)
{
    size_t n = strlen(estimate->note), room = sizeof estimate->note - n;
    int joint = n ? snprintf(estimate->note + n, room, "; ") : 0;
    va_list args;
    va_start(args, format);
    if ((size_t)joint < room)
        vsnprintf(estimate->note + n + joint, room - (size_t)joint, format, args);
    va_end(args);
    text_mend(estimate->note + n);
    return r;
}

static int no_such(const char *name, struct fault *fault)
{
    char names[256] = "";
    const struct estimator *e;
    for (size_t i = 0, n = 0; (e = estimator_at(i)) != NULL && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", e->name);
    return fault_set(fault, ENOENT, "no estimator is called \"%.60s\"; there are: %s", name, names);
}

static int check_request(const struct estimate_request *request, struct fault *fault)
{
    struct count batch = estimate_batch(request);
    if (batch.known && (batch.value < 1 || batch.value > ESTIMATE_BATCH_MAX))
        return fault_set(fault, EINVAL,
            "a batch size of %" PRId64 ": it must be between 1 and %" PRId64, batch.value,
            ESTIMATE_BATCH_MAX);
    if (request->declared_bytes < 0)
        return fault_set(fault, EINVAL,
            "declared memory of %" PRId64 " bytes: it cannot be negative", request->declared_bytes);
    return 0;
}

/* In bytes. The input is wrong where an estimate is larger than this, or not a number. */
static const double bytes_max = 0x1p62;

static int check_answer(const struct estimate *estimate, struct fault *fault)
{
    const struct reading sizes[] = {estimate->bytes, estimate->p50_bytes, estimate->p90_bytes,
        estimate->p99_bytes, estimate->untried_p99_bytes, estimate->floor_bytes};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        if (sizes[i].valid && !(sizes[i].value >= 0 && sizes[i].value <= bytes_max))
            return fault_set(fault, ERANGE,
                "%s comes to %.3g bytes: the batch or the summary cannot be right",
                estimate->estimator, sizes[i].value);
    return 0;
}

int estimate_run(const char *name, const struct estimate_request *request, struct fault *fault,
    struct estimate *ret_estimate)
{
    const struct estimator *e = estimator_find(name);
    if (!e)
        return no_such(name, fault);
    int r = check_request(request, fault);
    if (r < 0)
        return r;
    *ret_estimate = (struct estimate){.estimator = e->name};
    r = e->run(request, fault, ret_estimate);
    return r == 0 ? check_answer(ret_estimate, fault) : r;
}
