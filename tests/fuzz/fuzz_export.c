/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of any bytes: an estimate, or a fault with words. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "estimator/estimator.h"
#include "fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_estimate(const struct export *export, int64_t batch)
{
    struct estimate_request request = {.model = export->model, .export = export, .batch = batch};
    struct estimate estimate;
    struct fault fault = {""};
    static const char *const estimators[] = {"graph", "faketensor"};
    for (size_t i = 0; i < ARRAY_SIZE(estimators); i++) {
        int r = estimate_run(estimators[i], &request, &fault, &estimate);
        if (r < 0)
            require(fault.text[0] != '\0');
        else
            require(r == ESTIMATE_UNKNOWN ? estimate.note[0] != '\0'
                                          : estimate.bytes.valid && estimate.bytes.value > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct export *export = NULL;
    struct fault fault = {""};
    if (export_parse((const char *)data, size, &fault, &export) < 0) {
        require(fault.text[0] != '\0');
        return 0;
    }
    require(export->model->n_layers > 0 && export->n_tensors > 0);
    check_estimate(export, 1);
    check_estimate(export, 1000);
    check_estimate(export, ESTIMATE_BATCH_MAX);
    export_destroy(export);
    return 0;
}
