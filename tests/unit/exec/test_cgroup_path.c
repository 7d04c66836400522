/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of cgroups from what /proc says on real machines, and bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "exec/cgroup_path.h"

static char path[256];

static void the_mount_is_found(void **state)
{
    static const char unified[] =
        "22 28 0:20 / /sys rw,nosuid - sysfs sysfs rw\n"
        "26 22 0:23 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    static const char hybrid[] =
        "31 30 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
        "32 30 0:27 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    static const char part[] = "26 22 0:23 /docker/7 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    assert_true(cgroup_parse_mount(unified, path, sizeof path));
    assert_string_equal(path, "/sys/fs/cgroup");
    assert_true(cgroup_parse_mount(hybrid, path, sizeof path));
    assert_string_equal(path, "/sys/fs/cgroup/unified");
    assert_false(cgroup_parse_mount(part, path, sizeof path)); /* paths below it mean others */
    assert_false(cgroup_parse_mount("", path, sizeof path));
    assert_false(cgroup_parse_mount("- cgroup2\n - cgroup2 \n", path, sizeof path));
    assert_false(cgroup_parse_mount(unified, path, 5));
}

static void the_own_cgroup_is_found(void **state)
{
    assert_true(cgroup_parse_own("4:memory:/x\n0::/system.slice/c\n", path, sizeof path));
    assert_string_equal(path, "/system.slice/c");
    assert_true(cgroup_parse_own("0::/", path, sizeof path));
    assert_string_equal(path, "/");
    assert_false(cgroup_parse_own("4:memory:/0::/\n", path, sizeof path));
    assert_false(cgroup_parse_own("0::/abcdef\n", path, 4));
}

static void assert_base(const char *own, const char *expected, bool expected_may)
{
    bool may;
    assert_true(cgroup_find_base("/sys/fs/cgroup", own, path, sizeof path, &may));
    assert_string_equal(path, expected);
    assert_int_equal(may, expected_may);
}

static void controllers_are_enabled_only_where_no_process_is(void **state)
{
    bool may;
    assert_base("/", "/sys/fs/cgroup", true);
    assert_base(
        "/system.slice/collocd.service", "/sys/fs/cgroup/system.slice/collocd.service", false);
    assert_base("/system.slice/collocd.service/daemon",
        "/sys/fs/cgroup/system.slice/collocd.service", true);
    assert_base("/daemon", "/sys/fs/cgroup", true);
    assert_base("/mydaemon", "/sys/fs/cgroup/mydaemon", false);
    assert_false(cgroup_find_base("/sys/fs/cgroup", "/abc", path, 16, &may));
}

static void attempts_have_names_and_back(void **state)
{
    char other[256];
    uint64_t task;
    int attempt;
    assert_true(cgroup_of_attempt("/c/colloc", "/var/lib/colloc/tasks/12/3", path, sizeof path));
    assert_true(cgroup_of_attempt("/c/colloc", "/srv/tasks/1/tasks/12/3", other, sizeof other));
    assert_string_not_equal(path, other);
    const char *name = strrchr(path, '/') + 1;
    assert_true(cgroup_parse_name(name, "/var/lib/colloc", &task, &attempt));
    assert_int_equal(task, 12);
    assert_int_equal(attempt, 3);
    assert_false(cgroup_parse_name(name, "/srv/tasks/1", &task, &attempt)); /* another daemon's */
    assert_true(cgroup_parse_name(strrchr(other, '/') + 1, "/srv/tasks/1", &task, &attempt));
    assert_false(cgroup_parse_name("try-17", "/var/lib/colloc", &task, &attempt));
    assert_false(cgroup_parse_name("cgroup.procs", "/var/lib/colloc", &task, &attempt));
    assert_false(cgroup_of_attempt("/c", "/var/lib/colloc/12/3", path, sizeof path));
    assert_false(cgroup_of_attempt("/c", "/tasks/12/3", path, 8));
}

static void assert_attempt(const char *own, uint64_t task, int attempt)
{
    uint64_t found_task = 0;
    int found_attempt = 0;
    assert_int_equal(
        cgroup_parse_attempt(own, "/x/colloc", "/var/lib/colloc", &found_task, &found_attempt),
        task > 0);
    if (task) {
        assert_int_equal(found_task, task);
        assert_int_equal(found_attempt, attempt);
    }
}

static void attempts_are_found_above_a_process(void **state)
{
    static const char users[] = "/user.slice/user@1000.service";
    char below[400];
    assert_true(cgroup_of_attempt("/x/colloc", "/var/lib/colloc/tasks/12/3", path, sizeof path));
    assert_attempt(path, 12, 3);
    snprintf(below, sizeof below, "%s/docker/5e0b", path);
    assert_attempt(below, 12, 3);
    snprintf(below, sizeof below, "%s%s", users, path);
    assert_attempt(below, 0, 0); /* a user's own cgroup of that name */
    snprintf(below, sizeof below, "/x/colloc/other%s", path);
    assert_attempt(below, 0, 0);
    assert_true(cgroup_of_attempt("/x/colloc", "/srv/tasks/12/3", path, sizeof path));
    assert_attempt(path, 0, 0); /* another daemon's */
    assert_true(cgroup_of_attempt("/x/collocs", "/var/lib/colloc/tasks/12/3", path, sizeof path));
    assert_attempt(path, 0, 0); /* not below the home of attempts */
    assert_attempt("/", 0, 0);
    assert_attempt("", 0, 0);
    assert_attempt("/x/colloc", 0, 0);
    assert_attempt("/x/colloc/", 0, 0);
    memset(below, '9', sizeof below - 1);
    memcpy(below, "/x/colloc/1f0c9a77-", 19);
    below[sizeof below - 1] = '\0';
    assert_attempt(below, 0, 0);
}

static void counters_are_read(void **state)
{
    assert_int_equal(cgroup_parse_value("low 0\noom 2\noom_kill 1\n", "oom_kill"), 1);
    assert_int_equal(cgroup_parse_value("oom_kill 3", "oom_kill"), 3);
    assert_int_equal(cgroup_parse_value("oom_group_kill 3\n", "oom_kill"), -1);
    assert_int_equal(cgroup_parse_value("oom_kill x\n", "oom_kill"), -1);
    assert_int_equal(cgroup_parse_value("", "oom_kill"), -1);
}

static void slices_of_containers(void **state)
{
    char name[64];
    uint64_t task;
    int attempt;
    char cgroup[128], own[256];
    assert_true(
        cgroup_of_attempt("/c/colloc", "/var/lib/colloc/tasks/12/3", cgroup, sizeof cgroup));
    assert_true(cgroup_slice_of(cgroup, name, sizeof name));
    assert_null(strchr(name + strlen("colloc-"), '-')); /* a dash would be a level */
    snprintf(own, sizeof own, "/colloc.slice/%s/docker-1.scope", name);
    assert_true(cgroup_parse_slice(own, "/var/lib/colloc", &task, &attempt));
    assert_int_equal(task, 12);
    assert_int_equal(attempt, 3);
    assert_false(cgroup_parse_slice(own, "/var/lib/other", &task, &attempt));
    assert_true(cgroup_parse_slice_name(name, "/var/lib/colloc", &task, &attempt));
    assert_false(cgroup_slice_of(cgroup, name, 20));
    assert_false(cgroup_slice_of("/c/colloc", name, sizeof name));
    assert_false(cgroup_slice_of("/c/daemon", name, sizeof name));
    assert_false(cgroup_slice_of("", name, sizeof name));
    /* A user's systemd makes such a slice below the user's. */
    snprintf(own, sizeof own, "/user.slice/colloc.slice/%s", name);
    assert_false(cgroup_parse_slice(own, "/var/lib/colloc", &task, &attempt));
    assert_false(cgroup_parse_slice("/colloc.slice", "/var/lib/colloc", &task, &attempt));
    assert_false(cgroup_parse_slice("/colloc.slice/", "/var/lib/colloc", &task, &attempt));
    snprintf(own, sizeof own, "/colloc.slice/%.*s", (int)strlen(name) - 1, name);
    assert_false(cgroup_parse_slice(own, "/var/lib/colloc", &task, &attempt));
    snprintf(own, sizeof own, "/colloc.slice/%sx", name);
    assert_false(cgroup_parse_slice(own, "/var/lib/colloc", &task, &attempt));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_of_containers),
        cmocka_unit_test(the_mount_is_found),
        cmocka_unit_test(the_own_cgroup_is_found),
        cmocka_unit_test(controllers_are_enabled_only_where_no_process_is),
        cmocka_unit_test(attempts_have_names_and_back),
        cmocka_unit_test(attempts_are_found_above_a_process),
        cmocka_unit_test(counters_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
