/* SPDX-License-Identifier: Apache-2.0 */
/* What the arguments of a training say about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "taskfile/taskfile.h"
#include "taskfile/training_arguments.h"

static void check(
    const char *script, const char *const *arguments, int64_t gpus, const char *wanted)
{
    struct option_value values[TASK_OPTION_MAX] = {[TASK_GPUS] = {.set = gpus > 0, .number = gpus}};
    struct fault fault = {0};
    char taken[256];
    assert_int_equal(
        training_arguments_apply(script, arguments, values, &fault, taken, sizeof taken), 0);
    assert_string_equal(taken, wanted);
    option_values_fini(values, TASK_OPTION_MAX);
}

static void test_arguments_of_published_programs(void **state)
{
    static const struct {
        const char *script, *taken;
    } cases[] = {
        {"python run_clm.py --per_device_train_batch_size 8 --bf16 --gradient_checkpointing\n",
            "--batch=8 --precision=bf16 --checkpointing"},
        {"python sft.py --torch_dtype bfloat16 --bf16 True --gradient_checkpointing=true",
            "--precision=bf16-true --checkpointing"},
        {"x --dtype=float16 --optim adamw_torch_fused", "--optimizer=adamw --precision=fp16-true"},
        {"x --fp16 --optim sgd --max_seq_length 384", "--optimizer=sgd --precision=fp16 --seq=384"},
        {"accelerate launch --mixed_precision=bf16 x.py", "--precision=bf16"},
        {"accelerate launch --mixed_precision no x.py", ""},
        {"x --precision 16-mixed --batch-size=32", "--batch=32 --precision=16-mixed"},
        {"x --precision bf16-true", "--precision=bf16-true"},
        {"train.py --model vit --img-size 224 --amp --opt adam --grad-checkpointing",
            "--optimizer=adam --precision=amp --checkpointing --input=3x224x224"},
        {"x --block_size \\\n  512 \\\n  --per_device_train_batch_size '4'", "--batch=4 --seq=512"},
        {"# x --bf16\necho \"it's\" --fp8\n", ""},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check(cases[i].script, NULL, 0, cases[i].taken);
    const char *const arguments[] = {"train.py", "--batch_size", "16", "--bf16", NULL};
    check("exec \"$@\"", arguments, 0, "--batch=16 --precision=bf16");
}

static void test_what_says_nothing(void **state)
{
    static const char *const scripts[] = {"x --batch_size $N", "x --batch_size",
        "x --batch_size many", "x --batch_size --bf16=False", "x --batch_size 0",
        "x --batch_size -3", "x --batch-size 8\nx --batch-size 16",
        "x --gradient_checkpointing False", "x --precision highest", "x --image_size big",
        "x --img_size 99999999999", "x --torch_dtype auto", "x --=8 -- --", "'x --bf16", "\\",
        "x --bf16\nx --fp16"};
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++)
        check(scripts[i], NULL, 0, "");
    char name[5000] = "x --";
    memset(name + 4, 'a', sizeof name - 5);
    name[sizeof name - 1] = '\0';
    check(name, NULL, 0, "");
}

/* --batch_size of several GPUs may be that of all. */
static void test_several_gpus(void **state)
{
    check("x --batch_size 8", NULL, 1, "--batch=8");
    check("x --batch_size 8", NULL, 2, "");
    check("x --per_device_train_batch_size 8", NULL, 2, "--batch=8");
}

static void test_what_is_given_stays(void **state)
{
    struct option_value values[TASK_OPTION_MAX] = {[TASK_BATCH] = {.set = true, .number = 5}};
    struct fault fault = {0};
    char taken[8];
    assert_int_equal(training_arguments_apply("x --batch_size 8 --seq_len 128 --fp16", NULL, values,
                         &fault, taken, sizeof taken),
        0);
    assert_int_equal(values[TASK_BATCH].number, 5);
    assert_int_equal(values[TASK_SEQ].number, 128);
    assert_true(strlen(taken) < sizeof taken);
    option_values_fini(values, TASK_OPTION_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments_of_published_programs),
        cmocka_unit_test(test_what_says_nothing),
        cmocka_unit_test(test_several_gpus),
        cmocka_unit_test(test_what_is_given_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
