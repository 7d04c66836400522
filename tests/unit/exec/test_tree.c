/* SPDX-License-Identifier: Apache-2.0 */
/* Process trees: signals, ancestors, and reused process ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/ancestry_cache.h"
#include "exec/tree.h"

/* A child with an awkward name that has a child, too; both live until they are killed. */
static pid_t start_two(pid_t *ret_grandchild)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, ") R 1 (x");
        pid_t grandchild = fork();
        if (grandchild == 0)
            setsid();
        else if (write(ends[1], &grandchild, sizeof grandchild) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], ret_grandchild, sizeof *ret_grandchild), sizeof *ret_grandchild);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void test_find_root(void **state)
{
    pid_t grandchild, child = start_two(&grandchild);
    const pid_t roots[] = {getppid(), child};
    assert_int_equal(tree_find_root(grandchild, roots, 2), 1);
    assert_int_equal(tree_find_root(child, roots, 2), 1);
    assert_int_equal(tree_find_root(getpid(), roots, 2), 0);
    assert_int_equal(tree_find_root(getpid(), roots + 1, 1), -1);
    assert_int_equal(tree_find_root(0, roots, 2), -1);
    assert_int_equal(tree_find_root(1 << 23, roots, 2), -1);

    assert_int_equal(tree_signal(child, SIGKILL), 1); /* below it, not itself */
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
    assert_true(tree_signal(getpid(), SIGKILL) >= 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(tree_find_root(child, roots + 1, 1), 0); /* known without looking */
    assert_int_equal(tree_find_root(child, roots, 1), -1);
}

static void test_signal_marked(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = {(char *)(uintptr_t) "sleep", (char *)(uintptr_t) "1000", NULL};
        char *const env[] = {
            (char *)(uintptr_t) "A=1", (char *)(uintptr_t) "MARK_OF_TEST=/x/1", NULL};
        execve("/bin/sleep", argv, env);
        _exit(1);
    }
    size_t unknown;
    assert_int_equal(tree_signal_marked("MARK_OF_TEST=/x/", geteuid(), SIGKILL, &unknown), 0);
    assert_int_equal(tree_signal_marked("MARK_OF_TEST=/x/1", geteuid() + 1, SIGKILL, &unknown), 0);
    while (tree_signal_marked("MARK_OF_TEST=/x/1", geteuid(), SIGKILL, &unknown) == 0)
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* exec is still to come */
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void test_ancestry_is_cached_for_a_second(void **state)
{
    static struct ancestry_cache cache;
    pid_t grandchild, child = start_two(&grandchild);
    const pid_t tops[] = {1, child};
    const struct attempt_roots roots = {.shims = tops, .count = 2},
                               one = {.shims = &tops[1], .count = 1};
    const int64_t second_us = 1000000;
    assert_int_equal(ancestry_cache_find_root(&cache, grandchild, &roots, second_us), 1);
    kill(grandchild, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(ancestry_cache_find_root(&cache, grandchild, &roots, 2 * second_us - 1), 1);
    assert_int_equal(ancestry_cache_find_root(&cache, grandchild, &one, 2 * second_us - 1), -1);
    assert_int_not_equal(
        ancestry_cache_find_root(&cache, grandchild, &roots, 2 * second_us + 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find_root),
        cmocka_unit_test(test_ancestry_is_cached_for_a_second),
        cmocka_unit_test(test_signal_marked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
