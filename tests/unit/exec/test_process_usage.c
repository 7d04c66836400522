/* SPDX-License-Identifier: Apache-2.0 */
/* Usage of process trees: the work of children that have ended stays counted, memory is that of
 * now, and the network is known only of a tree in another namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "exec/process_usage.h"
#include "exec/tree.h"

#define BURN_NS 200000000
#define TOUCHED (32 * MIB)

static void burn(void)
{
    struct timespec used = {0};
    while (used.tv_sec == 0 && used.tv_nsec < BURN_NS)
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
}

/* A root whose first child has burnt CPU time and ended; the second holds memory. */
static pid_t start_tree(bool own_network)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t root = fork();
    if (root == 0) {
        if (own_network && unshare(CLONE_NEWNET) < 0)
            _exit(77);
        if (fork() == 0) {
            burn();
            _exit(0);
        }
        wait(NULL);
        if (fork() == 0) {
            char *memory = malloc(TOUCHED);
            memset(memory, 1, TOUCHED);
            if (write(ends[1], memory, 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
        for (;;)
            pause();
    }
    close(ends[1]);
    ssize_t n = read(ends[0], &byte, 1);
    close(ends[0]);
    if (n == 1)
        return root;
    waitpid(root, NULL, 0);
    return -1;
}

static void end_tree(pid_t root)
{
    assert_int_equal(tree_signal(root, SIGKILL), 1);
    kill(root, SIGKILL);
    waitpid(root, NULL, 0);
}

static void test_sums_of_a_tree(void **state)
{
    pid_t roots[] = {start_tree(false), getpid()};
    struct process_usage usage[2];
    assert_int_equal(process_usage_read(roots, 2, usage), 0);
    assert_true(usage[0].cpu_s.valid && usage[0].cpu_s.value >= 0.15 && usage[0].cpu_s.value < 5);
    assert_true(usage[0].resident_bytes.value >= (double)TOUCHED);
    assert_true(usage[0].resident_bytes.value < 8.0 * (double)TOUCHED);
    assert_true(usage[0].disk_read_bytes.valid && usage[0].disk_written_bytes.valid);
    assert_false(usage[0].net_received_bytes.valid || usage[0].net_sent_bytes.valid);
    assert_true(usage[1].resident_bytes.value > 0);
    end_tree(roots[0]);
    assert_int_equal(process_usage_read(roots, 1, usage), 0);
    assert_true(usage[0].resident_bytes.value == 0);
}

static void test_network_of_its_own(void **state)
{
    pid_t root = start_tree(true);
    struct process_usage usage;
    if (root < 0)
        skip(); /* only root may make a namespace */
    assert_int_equal(process_usage_read(&root, 1, &usage), 0);
    end_tree(root);
    assert_true(usage.net_received_bytes.valid && usage.net_received_bytes.value == 0);
    assert_true(usage.net_sent_bytes.valid && usage.net_sent_bytes.value == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_a_tree),
        cmocka_unit_test(test_network_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
