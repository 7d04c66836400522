/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and counters of a cgroup, on a pretend one: a folder with plain files of the kernel's
 * names. A file that is missing is a controller that is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/units.h"
#include "exec/cgroup.h"

static const char *const files[] = {"cpu.max", "memory.max", "memory.oom.group", "pids.max",
    "memory.high", "cpu.weight", "cgroup.procs", "memory.events", "cgroup.controllers",
    "cgroup.subtree_control"};

static char folder[64];

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_text(const char *name, const char *wanted)
{
    char path[128], *data;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(file_read(path, 4096, NULL, &data, &size), 0);
    assert_string_equal(data, wanted);
    free(data);
}

static int make_cgroup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/colloc-cgroup-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_cgroup(void **state)
{
    char path[128];
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static const struct cgroup_limits limits = {
    .cpus = 12, .cpu_weight = 400, .memory_bytes = 3 * GIB, .processes = 500};

static void limits_are_set_before_a_process_enters(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        put(files[i], "");
    assert_int_equal(cgroup_enter(folder, &limits), 0);
    assert_text("cpu.max", "1200000 100000");
    assert_text("cpu.weight", "400");
    assert_text("memory.high", "max"); /* an older daemon set it */
    assert_text("memory.max", "3221225472");
    assert_text("memory.oom.group", "1");
    assert_text("pids.max", "500");
    assert_text("cgroup.procs", "0");
}

static void no_limit_is_not_set(void **state)
{
    const struct cgroup_limits none = {0};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        put(files[i], "");
    assert_int_equal(cgroup_enter(folder, &none), 0);
    assert_int_equal(cgroup_limit(folder, &none), 0);
    for (size_t i = 0; i < 6; i++)
        assert_text(files[i], "");
}

/* All tasks together have a limit, but are not killed together. */
static void a_limit_of_all_kills_not_all(void **state)
{
    put("memory.max", "");
    put("memory.oom.group", "");
    put("memory.high", "");
    assert_int_equal(cgroup_limit(folder, &(struct cgroup_limits){.memory_bytes = GIB}), 0);
    assert_text("memory.max", "1073741824");
    assert_text("memory.high", "");
    assert_text("memory.oom.group", "");
}

static void a_missing_controller_is_no_error(void **state)
{
    put("cgroup.procs", "");
    put("pids.max", "");
    assert_int_equal(cgroup_enter(folder, &limits), 0);
    assert_text("pids.max", "500");
    assert_text("cgroup.procs", "0");
}

static void a_limit_that_cannot_be_set_is_an_error(void **state)
{
    char path[128];
    snprintf(path, sizeof path, "%s/memory.max", folder);
    put("cgroup.procs", "");
    assert_int_equal(symlink("/dev/null", path), 0); /* a link is not followed */
    assert_int_equal(cgroup_enter(folder, &limits), -ELOOP);
    assert_text("cgroup.procs", "");
}

static void controllers_are_read(void **state)
{
    struct cgroup_controllers has = cgroup_available(folder);
    assert_false(has.cpu || has.memory || has.pids);
    put("cgroup.controllers", "cpuset io memory.x\n");
    has = cgroup_available(folder);
    assert_false(has.cpu || has.memory || has.pids);
    put("cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma\n");
    has = cgroup_available(folder);
    assert_true(has.cpu && has.memory && has.pids);
    put("cgroup.controllers", "pids\n");
    has = cgroup_available(folder);
    assert_true(!has.cpu && !has.memory && has.pids);
}

static void kills_for_want_of_memory_are_counted(void **state)
{
    assert_false(cgroup_oom_kills(folder).valid);
    put("memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\noom_group_kill 1\n");
    assert_true(cgroup_oom_kills(folder).value == 2);
    put("memory.events", "low 0\noom x\n");
    assert_false(cgroup_oom_kills(folder).valid);
}

/* A kernel without cgroup.kill: the list names a process that is in another cgroup by now. */
static void only_its_own_processes_are_killed(void **state)
{
    char list[32];
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    snprintf(list, sizeof list, "%d\n", (int)child);
    put("cgroup.procs", list);
    assert_int_equal(cgroup_kill(folder), 1);
    assert_int_equal(kill(child, SIGTERM), 0); /* a SIGKILL would have come first */
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_cgroup, remove_cgroup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(limits_are_set_before_a_process_enters),
        TEST(no_limit_is_not_set),
        TEST(a_limit_of_all_kills_not_all),
        TEST(a_missing_controller_is_no_error),
        TEST(a_limit_that_cannot_be_set_is_an_error),
        TEST(controllers_are_read),
        TEST(kills_for_want_of_memory_are_counted),
        TEST(only_its_own_processes_are_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
