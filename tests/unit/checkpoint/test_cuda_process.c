/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc shows, parsed; and of a process that is there. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "base/units.h"
#include "checkpoint/cuda_process.h"

/* The entry of a process that cannot be read; NULL: all can be. */
static const char *hidden_entry;

int __real_process_read_entry(
    pid_t pid, const char *name, size_t max, char **ret_text, size_t *ret_size);
int __wrap_process_read_entry(
    pid_t pid, const char *name, size_t max, char **ret_text, size_t *ret_size);

int __wrap_process_read_entry(
    pid_t pid, const char *name, size_t max, char **ret_text, size_t *ret_size)
{
    *ret_text = NULL;
    return hidden_entry && strcmp(name, hidden_entry) == 0
               ? -EACCES
               : __real_process_read_entry(pid, name, max, ret_text, ret_size);
}

static struct cuda_process maps(const char *text)
{
    struct cuda_process process = {0};
    cuda_process_parse_maps(span_of(text), &process);
    return process;
}

static void test_maps(void **state)
{
    assert_false(maps("").has_profiler);
    assert_false(maps("7f00-7f01 r-xp 0 0:1 5 /opt/torch/lib/libcupti.so.13\n").has_profiler);
    assert_true(
        maps("7f00-7f01 r-xp 0 0:1 5 /opt/nsys/libToolsInjectionProxy64.so\n").has_profiler);
    assert_true(maps("7f00-7f01 r-xp 0 0:1 5 /opt/ncu/libcuda-injection.so").has_profiler);
    assert_false(maps("7f00-7f01 rw-p 0 0:1 5 /data/libToolsInjection.d/set.bin\n").has_profiler);
    assert_true(maps("1-2 r-xp 0 0:1 5 /a\n1-2 r-xp 0 0:1 5 /x/libnccl.so.2\n").has_nccl);
    assert_false(maps("1-2 r-xp 0 0:1 5 /x/nccl.py\n").has_nccl);
}

static bool can_be_profiled(const char *text, size_t size)
{
    struct cuda_process process = {0};
    cuda_process_parse_environ((struct span){text, size}, &process);
    return process.has_profiler;
}

static void test_environ(void **state)
{
    static const char with[] = "PATH=/bin\0KINETO_USE_DAEMON=1\0HOME=/root",
                      without[] = "PATH=/bin\0MY_KINETO_USE_DAEMON=1\0KINETO_USE_DAEMON=";
    assert_true(can_be_profiled(with, sizeof with));
    assert_true(can_be_profiled(with, sizeof with - 1));
    assert_false(can_be_profiled(with, 12));
    assert_false(can_be_profiled(without, sizeof without));
    assert_false(can_be_profiled("", 0));
}

static struct cuda_process status(const char *text)
{
    struct cuda_process process = {0};
    cuda_process_parse_status(span_of(text), &process);
    return process;
}

static bool is_without_library(const char *text, size_t size)
{
    struct cuda_process process = {0};
    cuda_process_parse_environ((struct span){text, size}, &process);
    return process.is_without_library;
}

/* An environment that was not read says nothing. */
static void test_the_library_in_an_environment(void **state)
{
    static const char with[] = "PATH=/bin\0COLLOC_PRELOAD_SOCKET=/run/s\0HOME=/root",
                      without[] = "PATH=/bin\0XCOLLOC_PRELOAD_SOCKET=/s\0COLLOC_PRELOAD_SOCKET=";
    assert_false(is_without_library(with, sizeof with));
    assert_true(is_without_library(without, sizeof without));
    assert_true(is_without_library("", 0));
    assert_false(status("State:\tR (running)\n").is_without_library);
}

static bool is_secure(const unsigned long *vector, size_t size)
{
    struct cuda_process process = {0};
    cuda_process_parse_auxv((struct span){(const char *)vector, size}, &process);
    return process.is_secure;
}

static void test_a_setuid_program(void **state)
{
    static const unsigned long with[] = {AT_PAGESZ, 4096, AT_SECURE, 1, AT_NULL, 0},
                               without[] = {AT_SECURE, 0, AT_UID, AT_SECURE, AT_SECURE};
    struct cuda_process process;
    assert_true(is_secure(with, sizeof with));
    assert_false(is_secure(with, sizeof with / 2));
    assert_false(is_secure(without, sizeof without));
    assert_false(is_secure(NULL, 0));
    assert_int_equal(cuda_process_read(getpid(), &process), 0);
    assert_int_equal(process.is_secure, getauxval(AT_SECURE) != 0);
}

static void test_status(void **state)
{
    assert_false(status("State:\tR (running)\nTracerPid:\t0\n").is_stopped);
    assert_true(status("State:\tT (stopped)\nTracerPid:\t0\n").is_stopped);
    assert_true(status("State:\tt (tracing stop)\n").is_stopped);
    assert_true(status("TracerPid:\t812\n").is_traced);
    assert_false(status("TracerPid:\t0\n").is_traced);
}

static bool is_killed(const char *text)
{
    return cuda_process_parse_is_killed(span_of(text));
}

static void test_a_process_that_was_killed(void **state)
{
    assert_true(is_killed("SigPnd:\t0000000000000100\nShdPnd:\t0000000000000100\n"));
    assert_true(is_killed("SigPnd:\t0000000000000000\nShdPnd:\t0000000000004100\n"));
    assert_true(is_killed("SigPnd:\t0000000000000100\n"));
    static const char *const others[] = {"", "SigPnd:", "SigPnd:\n", "ShdPnd:\tx\n",
        "SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n", "SigBlk:\t0000000000000100\n",
        "SigPnd:\t00000000000000000000000000000100\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(is_killed(others[i]));
}

static void test_available_memory(void **state)
{
    struct reading r = host_memory_parse(
        span_of("MemTotal: 99 kB\nMemFree: 1 kB\nMemAvailable:   52344 kB\nBuffers: 2 kB\n"));
    assert_true(r.valid);
    assert_float_equal(r.value, 52344.0 * KIB, 1);
    static const char *const wrong[] = {"", "MemFree: 5 kB\n", "MemAvailable:\n",
        "MemAvailable: x kB\n", "MemAvailable: -1 kB\n", "MemAvailable: 99999999999999999 kB\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(host_memory_parse(span_of(wrong[i])).valid);
    assert_true(host_memory_available().valid);
}

static void test_as_text(void **state)
{
    struct cuda_process process = {.born = 88123,
                            .is_stopped = true,
                            .is_32_bit = true,
                            .has_nccl = true,
                            .is_without_library = true},
                        again;
    char text[128];
    assert_true(cuda_process_write(&process, text, sizeof text) > 0);
    assert_string_equal(text, "88123 stopped 32-bit nccl without-library");
    assert_int_equal(cuda_process_parse(span_of(text), &again), 0);
    assert_true(again.is_stopped && again.is_32_bit && again.has_nccl && again.born == 88123);
    assert_true(again.is_without_library);
    assert_false(again.is_traced || again.has_profiler);
    static const char *const wrong[] = {"", "x", "5 new", "-1", "5  nccl", "5 nccl x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(cuda_process_parse(span_of(wrong[i]), &again), -EINVAL);
    assert_int_equal(cuda_process_write(&process, text, 8), 0);
}

static void test_a_child(void **state)
{
    struct cuda_process process;
    int status_of_child;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(cuda_process_read(child, &process), 0);
    assert_false(process.is_stopped || process.is_traced || process.is_32_bit);
    assert_true(cuda_process_is(child, process.born));
    assert_false(cuda_process_is(child, process.born + 1));
    kill(child, SIGSTOP);
    waitpid(child, &status_of_child, WUNTRACED);
    uint64_t born = process.born;
    assert_int_equal(cuda_process_read(child, &process), 0);
    assert_true(process.is_stopped);
    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT); /* a zombie now */
    assert_false(cuda_process_is(child, born));
    waitpid(child, &status_of_child, 0);
    assert_int_equal(cuda_process_read(child, &process), -ESRCH);
}

/* What it has loaded is not known, which is not "no NCCL"; a state that is not known is no state. */
static void test_a_process_that_cannot_be_read(void **state)
{
    struct cuda_process process;
    assert_int_equal(cuda_process_read(getpid(), &process), 0);
    assert_false(process.is_unread || cuda_process_may_have_driver(getpid()));
    hidden_entry = "maps";
    assert_true(cuda_process_may_have_driver(getpid()));
    assert_int_equal(cuda_process_read(getpid(), &process), 0);
    assert_true(process.is_unread && !process.has_nccl);
    hidden_entry = "status";
    assert_int_equal(cuda_process_read(getpid(), &process), -EACCES);
    hidden_entry = NULL;
}

static void test_a_cgroup_without_a_limit_is_endless(void **state)
{
    struct reading left = cgroup_memory_left("/sys/fs/cgroup", "");
    assert_true(left.valid && isinf(left.value));
    assert_false(cgroup_memory_left("/etc", "").valid);
    assert_true(cgroup_memory_left_of(getpid(), "").valid);
    assert_false(cgroup_memory_left_of(0, "").valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_environ),
        cmocka_unit_test(test_the_library_in_an_environment),
        cmocka_unit_test(test_a_setuid_program),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_a_process_that_was_killed),
        cmocka_unit_test(test_available_memory),
        cmocka_unit_test(test_as_text),
        cmocka_unit_test(test_a_child),
        cmocka_unit_test(test_a_process_that_cannot_be_read),
        cmocka_unit_test(test_a_cgroup_without_a_limit_is_endless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
