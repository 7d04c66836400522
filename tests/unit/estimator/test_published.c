/* SPDX-License-Identifier: Apache-2.0 */
/* Horus against what was published for real models, where COLLOC_EVAL_DATA says their summaries
 * are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/file.h"
#include "base/units.h"
#include "estimator/estimator.h"

struct published {
    const char *file;
    int64_t batch;
    double mib, tolerance; /* relative */
};

static const struct published figures[] = {
    {"resnet50_32", 32, 7903.9316, 1e-6},
    {"resnet50_64", 64, 14910.3711, 1e-6},
    {"resnet50_32", 128, 28923.25, 1e-6},
    {"resnet18_cifar100", 128, 6397.9595, 1e-6},
    {"resnet34_cifar100", 32, 3513.4539, 1e-6},
    {"Xception_32", 128, 31465.3574, 1e-6},
    {"mobilenet_32", 64, 6420.7646, 1e-6},
    {"Inception_32", 128, 21288.6953, 5e-4},
    {"efficientnet_32", 128, 12999.0977, 5e-4},
    {"vgg_32", 128, 82119.9297, 5e-4},
};

static double horus_mib(const char *data, const struct published *p)
{
    char path[512], *text;
    size_t size;
    struct fault fault = {""};
    struct model *model = NULL;
    struct estimate e;
    snprintf(path, sizeof path, "%s/carma/models/%s.model", data, p->file);
    if (file_read(path, MODEL_SIZE_MAX, &fault, &text, &size) < 0 ||
        model_parse(text, size, &fault, &model) < 0)
        fail_msg("%s: %s", path, fault.text);
    struct estimate_request request = {.model = model, .batch = p->batch};
    assert_int_equal(estimate_run("horus", &request, NULL, &e), 0);
    model_destroy(model);
    free(text);
    return e.bytes.value / MIB;
}

static void test_figures(void **state)
{
    const char *data = getenv("COLLOC_EVAL_DATA");
    if (!data)
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
        double mib = horus_mib(data, &figures[i]), off = mib / figures[i].mib - 1;
        if (off > figures[i].tolerance || off < -figures[i].tolerance)
            fail_msg("%s at %lld: %.4f MiB, published %.4f", figures[i].file,
                (long long)figures[i].batch, mib, figures[i].mib);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_figures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
