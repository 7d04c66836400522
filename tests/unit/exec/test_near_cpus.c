/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs, and what a process may still run on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "exec/near_cpus.h"

static void lists_are_read(void **state)
{
    static const struct {
        const char *list;
        int count, first;
    } table[] = {{"0", 1, 0}, {"2-5", 4, 2}, {"1,3", 2, 1}, {"0-1,0-3", 4, 0}, {"7,5-6", 3, 5},
        {"1000-5000", CPU_SETSIZE - 1000, 1000}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        cpu_set_t set;
        int first = 0;
        assert_int_equal(near_cpus_parse(table[i].list, &set), 0);
        assert_int_equal(CPU_COUNT(&set), table[i].count);
        while (!CPU_ISSET(first, &set))
            first++;
        assert_int_equal(first, table[i].first);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const lists[] = {"", ",", "1,", "a", "1-", "-1", "3-2", "1 ,2", "1;2",
        "99999999999999999999", "5000", "0x1", " 1"};
    cpu_set_t set;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        if (near_cpus_parse(lists[i], &set) != -EINVAL)
            fail_msg("\"%s\"", lists[i]);
}

/* How many CPUs a process may use that has bound itself; 200 + what bind returned, negated. */
static int bound_to(const char *list, int64_t needed)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t set;
        int r = near_cpus_bind(list, needed);
        sched_getaffinity(0, sizeof set, &set);
        _exit(r < 0 ? 200 - r : CPU_COUNT(&set));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void a_process_is_bound_where_that_is_enough(void **state)
{
    cpu_set_t all;
    char first[16];
    int cpu = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    snprintf(first, sizeof first, "%d", cpu);
    assert_int_equal(bound_to(first, 0), 1);
    assert_int_equal(bound_to(first, 1), 1);
    assert_int_equal(bound_to(first, 2), CPU_COUNT(&all));  /* it needs more */
    assert_int_equal(bound_to("1023", 0), CPU_COUNT(&all)); /* it may not use that one */
    assert_int_equal(bound_to("x", 0), 200 + EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(a_process_is_bound_where_that_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
