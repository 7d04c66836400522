/* SPDX-License-Identifier: Apache-2.0 */
/* What a confined process can still do, and what not. Each test confines a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/confine.h"

#define USER_TEXT "64042" /* without an account */

enum { USER = 64042, REFUSED = 100, CALLS = 3 };

/* Returns the exit status of a child that runs the function once it is confined. */
static int run_confined(const char *user, int (*function)(void *context), void *context)
{
    struct fault fault = {0};
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(confine_process(user, &fault) == 0 ? function(context) : REFUSED);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int error_of(long result)
{
    return result < 0 ? errno : 0;
}

/* ---- rights ---- */

static int find_rights(void *context)
{
    char line[256];
    unsigned long long capabilities = 1;
    int found = 0, value = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "CapEff: %llx", &capabilities) == 1 ||
            sscanf(line, "CapPrm: %llx", &capabilities) == 1)
            found += capabilities == 0;
        if (sscanf(line, "NoNewPrivs: %d", &value) == 1 || sscanf(line, "Seccomp: %d", &value) == 1)
            found += value > 0;
    }
    if (found != 4)
        return 1;
    if (prctl(PR_GET_DUMPABLE) != 0)
        return 2;
    const bool *is_root = context;
    if (*is_root && (getuid() != USER || geteuid() != USER || getgid() != USER ||
                        getgroups(0, NULL) > 1 || setresuid(0, 0, 0) == 0))
        return 3;
    return 0;
}

static void rights(void **state)
{
    bool is_root = geteuid() == 0;
    assert_int_equal(run_confined(USER_TEXT, find_rights, &is_root), 0);
}

static void never_root_nor_an_unknown_user(void **state)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(run_confined("root", find_rights, NULL), REFUSED);
    assert_int_equal(run_confined("0", find_rights, NULL), REFUSED);
    assert_int_equal(run_confined("no-such-user", find_rights, NULL), REFUSED);
    assert_int_equal(run_confined("", find_rights, NULL), REFUSED);
}

/* ---- calls ---- */

static int try_network(void *context)
{
    struct sockaddr_un service = {.sun_family = AF_UNIX, .sun_path = "/nonexistent/service"};
    if (error_of(socket(AF_INET, SOCK_STREAM, 0)) != EAFNOSUPPORT ||
        error_of(socket(AF_INET6, SOCK_DGRAM, 0)) != EAFNOSUPPORT ||
        error_of(socket(AF_NETLINK, SOCK_RAW, 0)) != EAFNOSUPPORT)
        return 1;
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    if (local < 0)
        return 2;
    memcpy(service.sun_path, context, strlen(context) + 1);
    return error_of(connect(local, (struct sockaddr *)&service, sizeof service)) == ENOENT ? 0 : 3;
}

/* A service listens, and everybody may write to its socket. */
static void no_network(void **state)
{
    char folder[] = "/tmp/confine-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct sockaddr_un service = {.sun_family = AF_UNIX};
    snprintf(service.sun_path, sizeof service.sun_path, "%s/service", folder);
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&service, sizeof service), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(chmod(folder, 0755) | chmod(service.sun_path, 0777), 0);
    assert_int_equal(run_confined(USER_TEXT, try_network, service.sun_path), 0);
    close(listening);
    unlink(service.sun_path);
    rmdir(folder);
}

static int try_processes(void *context)
{
    struct rlimit limit;
    pid_t parent = getppid();
#if !CONFINE_IS_SANITIZED
    static char name[] = "true";
    char *arguments[] = {name, NULL};
    if (error_of(fork()) != EPERM || execv("/bin/true", arguments) == 0 || errno != EPERM)
        return 1;
#endif
    if (error_of(kill(parent, 0)) != EPERM ||
        error_of(syscall(SYS_tgkill, parent, parent, 0)) != EPERM)
        return 2;
    if (error_of(prlimit(parent, RLIMIT_AS, NULL, &limit)) != EPERM ||
        prlimit(0, RLIMIT_AS, NULL, &limit) != 0)
        return 3;
    if (error_of(unshare(CLONE_NEWUSER)) != EPERM ||
        error_of(syscall(SYS_keyctl, 0, 0, 0)) != EPERM ||
        error_of(syscall(SYS_io_uring_setup, 1, NULL)) != ENOSYS)
        return 4;
    return 0;
}

static void no_other_process(void **state)
{
    assert_int_equal(run_confined(USER_TEXT, try_processes, NULL), 0);
}

static void *note_call(void *context)
{
    ++*(int *)context;
    return NULL;
}

static int try_threads(void *context)
{
    int calls = 0;
    for (int i = 0; i < CALLS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, note_call, &calls) != 0 ||
            pthread_join(thread, NULL) != 0)
            return 1;
    }
    return calls == CALLS ? 0 : 2;
}

static void threads_are_allowed(void **state)
{
    assert_int_equal(run_confined(USER_TEXT, try_threads, NULL), 0);
}

static int abort_itself(void *context)
{
    abort();
}

static void it_can_abort(void **state)
{
    assert_int_equal(run_confined(USER_TEXT, abort_itself, NULL), -SIGABRT);
}

/* ---- files and limits ---- */

static int try_descriptors(void *context)
{
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 1;
    return fcntl(STDOUT_FILENO, F_GETFD) >= 0 ? 0 : 2;
}

static void no_descriptor_is_left(void **state)
{
    int of_root = open("/proc/self/status", O_RDONLY);
    assert_true(of_root > STDERR_FILENO);
    assert_int_equal(run_confined(USER_TEXT, try_descriptors, NULL), 0);
    close(of_root);
}

static int try_limits(void *context)
{
    static const size_t mib = 1 << 20;
    struct rlimit limit;
    if (getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max > CONFINE_CPU_S)
        return 1;
    if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max != 0)
        return 2;
    static const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t large = (size_t)CONFINE_DATA_BYTES + mib;
    /* Addresses alone, as CUDA reserves them, are not limited. */
    if (mmap(NULL, 64 * large, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        return 3;
    if (mmap(NULL, large / 2, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
        return 4;
#if !CONFINE_IS_SANITIZED
    if (mmap(NULL, large, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED)
        return 5;
#endif
    return 0;
}

static void limits(void **state)
{
    assert_int_equal(run_confined(USER_TEXT, try_limits, NULL), 0);
}

/* NVIDIA's number without its driver: ENXIO says that opening was allowed. */
static int try_device(void *context)
{
    const char *const *paths = context;
    int r = error_of(open(paths[0], O_RDWR));
    if (r != ENXIO && r != ENODEV && r != 0)
        return r;
    return error_of(open(paths[1], O_RDONLY)) == EACCES ? 0 : REFUSED + 1;
}

static void devices_that_all_may_open(void **state)
{
    char folder[] = "/tmp/confine-XXXXXX", device[64], secret[64];
    const char *paths[] = {device, secret};
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(device, sizeof device, "%s/nvidia0", folder);
    snprintf(secret, sizeof secret, "%s/secret", folder);
    bool is_made = mknod(device, S_IFCHR | 0666, makedev(195, 0)) == 0;
    if (is_made)
        assert_int_equal(chmod(device, 0666), 0);
    int made = open(secret, O_CREAT | O_WRONLY, 0600);
    assert_true(made >= 0);
    close(made);
    int r = is_made ? run_confined(USER_TEXT, try_device, paths) : 0;
    unlink(device);
    unlink(secret);
    rmdir(folder);
    if (!is_made || r == EPERM) /* a container without device files */
        skip();
    assert_int_equal(r, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rights),
        cmocka_unit_test(never_root_nor_an_unknown_user),
        cmocka_unit_test(no_network),
        cmocka_unit_test(no_other_process),
        cmocka_unit_test(threads_are_allowed),
        cmocka_unit_test(it_can_abort),
        cmocka_unit_test(no_descriptor_is_left),
        cmocka_unit_test(limits),
        cmocka_unit_test(devices_that_all_may_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
