/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a task as the request for an estimate. */
#include "taskfile/estimate_options.h"

#include <errno.h>

#include "../assert_has.h"
#include "base/units.h"
#include "taskfile/taskfile.h"

static void each_option_is_in_the_request(void **state)
{
    (void)state;
    char optimizer[] = "lion", precision[] = "bfloat16", parallel[] = "zero3",
         offload[] = "optimizer";
    struct option_value values[TASK_OPTION_MAX] = {
        [TASK_BATCH] = {.set = true, .number = 32},
        [TASK_SEQ] = {.set = true, .number = 128},
        [TASK_OPTIMIZER] = {.set = true, .text = optimizer},
        [TASK_PRECISION] = {.set = true, .text = precision},
        [TASK_GPUS] = {.set = true, .number = 4},
        [TASK_PARALLEL] = {.set = true, .text = parallel},
        [TASK_OFFLOAD] = {.set = true, .text = offload},
        [TASK_MICRO_BATCHES] = {.set = true, .number = 8},
        [TASK_MEMORY] = {.set = true, .number = 3 * GIB},
        [TASK_LOADER_RATE] = {.set = true, .number = 612 * (int64_t)MILLION},
    };
    struct estimate_request request = {.gpu_kind = "NVIDIA H200"};
    struct fault fault = {0};
    assert_int_equal(estimate_options_apply(values, &fault, &request), 0);
    assert_int_equal(request.batch, 32);
    assert_int_equal(request.sequence_length, 128);
    assert_int_equal(request.optimizer, OPTIMIZER_OTHER);
    assert_string_equal(request.optimizer_text, "lion");
    assert_int_equal(request.precision, PRECISION_BF16);
    assert_int_equal(request.gpus, 4);
    assert_int_equal(request.parallel, parallel_parse("fsdp"));
    assert_int_equal(request.offload, OFFLOAD_OPTIMIZER);
    assert_int_equal(request.micro_batches, 8);
    assert_int_equal(request.declared_bytes, 3 * GIB);
    assert_true(request.loader_rate == 612);
    assert_string_equal(request.gpu_kind, "NVIDIA H200");
}

static void what_was_not_given(void **state)
{
    (void)state;
    struct option_value values[TASK_OPTION_MAX] = {0};
    struct estimate_request request = {0};
    assert_int_equal(estimate_options_apply(values, NULL, &request), 0);
    assert_true(request.batch == ESTIMATE_NOT_GIVEN);
    assert_int_equal(request.precision, PRECISION_NOT_GIVEN);
    assert_int_equal(request.gpus, 1);
    assert_null(request.optimizer_text);
}

static void an_unknown_precision(void **state)
{
    (void)state;
    char precision[] = "fp7";
    struct option_value values[TASK_OPTION_MAX] = {
        [TASK_PRECISION] = {.set = true, .text = precision}};
    struct estimate_request request = {0};
    struct fault fault = {0};
    assert_int_equal(estimate_options_apply(values, &fault, &request), -EINVAL);
    assert_non_null(strstr(fault.text, "fp7"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_is_in_the_request),
        cmocka_unit_test(what_was_not_given),
        cmocka_unit_test(an_unknown_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
