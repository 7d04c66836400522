/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroups are colloc's own; and on real cgroups, where this process may make some: a process
 * of a user in a cgroup beside colloc's cannot open a GPU until the filter ends. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "exec/cgroup.h"
#include "exec/outside_filter.h"

enum { A_USER = 12345, ANOTHER_USER = 12346 };

static void what_is_on_the_way_is_own(void **state)
{
    static const char home[] = "/cg/system.slice/collocd.service/colloc",
                      own[] = "/cg/system.slice/collocd.service/daemon";
    static const struct {
        const char *path;
        bool is_own;
    } paths[] = {{"/cg", true}, {"/cg/system.slice", true}, {"/cg/system.slic", false},
        {"/cg/system.slice2", false}, {"/cg/user.slice", false},
        {"/cg/system.slice/cron.service", false}, {"/cg/system.slice/collocd.service", true},
        {"/cg/system.slice/collocd.service/daemon", true},
        {"/cg/system.slice/collocd.service/colloc", true},
        {"/cg/system.slice/collocd.service/other", false}};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (outside_filter_is_own(paths[i].path, home, own) != paths[i].is_own)
            fail_msg("%s", paths[i].path);
}

/* The errno of opening the device file as the user in the cgroup: ENXIO says that it was allowed,
 * since no driver serves it here. */
static int open_in(const char *cgroup, const char *device, uid_t uid)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (cgroup_enter(cgroup, NULL) < 0 || setresuid(uid, uid, uid) < 0)
            _exit(255);
        _exit(open(device, O_RDONLY) < 0 ? errno : 0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Makes a device file of NVIDIA's number. Returns false where that is not possible. */
static bool make_device(char folder[], char *ret_path, size_t size)
{
    struct stat seen;
    if (geteuid() != 0 || stat("/dev/nvidiactl", &seen) == 0 || !mkdtemp(folder))
        return false;
    snprintf(ret_path, size, "%s/nvidia0", folder);
    return chmod(folder, 0755) == 0 && mknod(ret_path, S_IFCHR | 0666, makedev(195, 0)) == 0 &&
           chmod(ret_path, 0666) == 0;
}

static void a_user_beside_colloc_opens_no_gpu(void **state)
{
    char home[CGROUP_PATH_SIZE], beside[CGROUP_PATH_SIZE + 32], task[CGROUP_PATH_SIZE + 32];
    char folder[] = "/tmp/outside-XXXXXX", device[64] = "";
    struct cgroup_controllers enabled;
    struct fault fault = {""};
    const struct allowed_users listed = {.list = {ANOTHER_USER}, .n = 1};
    if (cgroup_open_home(home, &enabled, &fault) < 0 || outside_filter_try(&fault) < 0 ||
        !make_device(folder, device, sizeof device)) {
        print_message("not tried: %s\n", fault.text);
        skip();
    }
    snprintf(beside, sizeof beside, "%.*s/outside-test-%d", (int)(strrchr(home, '/') - home), home,
        (int)getpid());
    snprintf(task, sizeof task, "%s/outside-test-%d", home, (int)getpid());
    assert_int_equal(mkdir(beside, 0755), 0);
    assert_int_equal(open_in(beside, device, A_USER), ENXIO);
    struct outside_filter *filter = outside_filter_create(home, &listed, &fault);
    if (!filter)
        fail_msg("%s", fault.text);
    assert_int_equal(open_in(beside, device, A_USER), EPERM);
    assert_int_equal(open_in(beside, device, ANOTHER_USER), ENXIO);
    assert_int_equal(open_in(beside, device, 0), ENXIO);
    assert_int_equal(open_in(task, device, A_USER), ENXIO);
    assert_int_equal(rmdir(beside), 0);
    assert_int_equal(mkdir(beside, 0755), 0); /* the same name, another cgroup */
    assert_int_equal(open_in(beside, device, A_USER), ENXIO);
    assert_true(outside_filter_review(filter, &fault) > 0);
    assert_int_equal(open_in(beside, device, A_USER), EPERM);
    outside_filter_destroy(filter);
    assert_int_equal(open_in(beside, device, A_USER), ENXIO);
    rmdir(beside);
    rmdir(task);
    unlink(device);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_on_the_way_is_own),
        cmocka_unit_test(a_user_beside_colloc_opens_no_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
