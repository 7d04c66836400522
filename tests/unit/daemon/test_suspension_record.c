/* SPDX-License-Identifier: Apache-2.0 */
/* The file about suspended processes, and from their GPUs to others. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/suspension_record.h"

#define GPU(n) "GPU-8f3a1c00-e4a7-4a1e-9b00-00000000000" #n

static const char TEXT[] = "attempt 2\nnumber 3\nphase suspending\ngpu " GPU(0) "\ngpu " GPU(
    1) "\nprocess 4711 88123\nmemory " GPU(0) " 1000\nmemory " GPU(1) " 70\nprocess 4712 88124\n"
                                                                      "memory " GPU(0) " 500\n";

static struct suspension_record record_of(const char *text)
{
    struct suspension_record record;
    assert_int_equal(suspension_record_read(span_of(text), &record), 0);
    return record;
}

static void test_is_read_as_written(void **state)
{
    struct suspension_record record = record_of(TEXT);
    assert_int_equal(record.attempt, 2);
    assert_int_equal(record.number, 3);
    assert_int_equal(record.n_gpus, 2);
    assert_int_equal(record.n_processes, 2);
    assert_int_equal(record.processes[0].n_memory, 2);
    assert_int_equal(record.processes[1].born, 88124);
    char *text = suspension_record_write(&record);
    assert_string_equal(text, TEXT);
    free(text);
    assert_false(record.is_carried || record.are_clients);
    record.is_resuming = record.is_carried = record.are_clients = true;
    text = suspension_record_write(&record);
    assert_true(
        record_of(text).is_resuming && record_of(text).is_carried && record_of(text).are_clients);
    free(text);
}

/* NVML may list a process with no memory of a GPU. */
static void test_no_memory_is_read_as_written(void **state)
{
    struct suspension_record record = record_of(TEXT);
    record.processes[0].memory[1].bytes = 0;
    char *text = suspension_record_write(&record);
    assert_int_equal(record_of(text).processes[0].memory[1].bytes, 0);
    assert_int_equal(record_of(text).processes[0].n_memory, 2);
    free(text);
}

static void test_the_most_on_one_gpu(void **state)
{
    struct suspension_record record = record_of(TEXT);
    assert_int_equal(suspension_record_bytes(&record).value, 1500);
}

static void test_damaged(void **state)
{
    static const char *const wrong[] = {"", "attempt 1\n", "attempt 0\n", "attempt x\n",
        "phase sleeping\n", "gpu GPU-1\n", "memory " GPU(0) " 5\n", "process 1\n", "process 0 5\n",
        "process 1 5 6 7\n", "attempt  1\n", "else 1\n",
        "attempt 1\ngpu " GPU(0) "\nprocess 5 5\nmemory " GPU(0) " -1\n",
        "attempt 1\ngpu " GPU(0) "\n", "attempt 1\nprocess 5 5\n"};
    struct suspension_record record;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(suspension_record_read(span_of(wrong[i]), &record), -EINVAL);
}

/* A file that was cut off is never a whole one of fewer processes without notice: the end of a
 * line is missing, or the processes that are there are complete. */
static void test_cut_anywhere(void **state)
{
    struct suspension_record record;
    for (size_t n = 0; n < sizeof TEXT - 1; n++)
        if (suspension_record_read((struct span){TEXT, n}, &record) == 0)
            assert_true(record.n_gpus > 0 && record.n_processes > 0);
}

static void test_more_than_fits(void **state)
{
    struct suspension_record record;
    char text[64 * 200] = "attempt 1\ngpu " GPU(0) "\n";
    for (int i = 0; i < GROUP_PROCESSES_MAX; i++)
        strcat(text, "process 5 5\n");
    assert_int_equal(suspension_record_read(span_of(text), &record), 0);
    strcat(text, "process 5 5\n");
    assert_int_equal(suspension_record_read(span_of(text), &record), -EINVAL);
}

static void test_moves(void **state)
{
    struct suspension_record record = record_of(TEXT);
    struct gpu_move moves[HELPER_MOVES_MAX];
    const struct gpu_name same[] = {{GPU(1)}, {GPU(0)}};
    assert_int_equal(suspension_record_map(&record, same, 2, moves), 0);
    const struct gpu_name one[] = {{GPU(1)}, {GPU(3)}};
    assert_int_equal(suspension_record_map(&record, one, 2, moves), 1);
    assert_string_equal(moves[0].from, GPU(0));
    assert_string_equal(moves[0].to, GPU(3));
    const struct gpu_name both[] = {{GPU(2)}, {GPU(3)}};
    assert_int_equal(suspension_record_map(&record, both, 2, moves), 2);
    assert_string_equal(moves[1].from, GPU(1));
    assert_string_equal(moves[1].to, GPU(3));
    assert_int_equal(suspension_record_map(&record, both, 1, moves), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_read_as_written),
        cmocka_unit_test(test_no_memory_is_read_as_written),
        cmocka_unit_test(test_the_most_on_one_gpu),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_more_than_fits),
        cmocka_unit_test(test_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
