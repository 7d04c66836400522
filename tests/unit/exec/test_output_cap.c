/* SPDX-License-Identifier: Apache-2.0 */
/* The cap on kept output: which part of a file is dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* clang-format off */
#include <cmocka.h>
/* clang-format on */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/output_cap.h"

#define KIB 1024

/* As on a file system without holes. */
static bool has_no_holes;

int __real_fallocate64(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size);

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size)
{
    if (!has_no_holes)
        return __real_fallocate64(fd, mode, offset, size);
    errno = EOPNOTSUPP;
    return -1;
}

static void test_below_the_cap(void **state)
{
    assert_int_equal(output_cap_begin(0, 0, 64 * KIB), 0);
    assert_int_equal(output_cap_begin(0, 64 * KIB - 1, 64 * KIB), 0);
    assert_int_equal(output_cap_begin(8 * KIB, 72 * KIB - 1, 64 * KIB), 8 * KIB);
}

static void test_the_older_half_goes_in_whole_blocks(void **state)
{
    assert_int_equal(output_cap_begin(0, 64 * KIB, 64 * KIB), 32 * KIB);
    assert_int_equal(output_cap_begin(0, 65 * KIB, 64 * KIB), 32 * KIB);
    assert_int_equal(output_cap_begin(32 * KIB, 100 * KIB, 64 * KIB), 68 * KIB);
    assert_int_equal(output_cap_begin(0, INT64_MAX - 1, 64 * KIB) % (4 * KIB), 0);
}

static void test_a_file_that_its_owner_shortened(void **state)
{
    assert_int_equal(output_cap_begin(32 * KIB, 10, 64 * KIB), 0);
}

static void test_a_writer_that_appends(void **state)
{
    char folder[] = "/tmp/colloc-test-XXXXXX", path[64];
    static char text[40 * KIB];
    struct stat status;
    memset(text, 'x', sizeof text);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/stdout", folder);
    assert_int_equal(output_cap_open(folder, "stdout", 64 * KIB).fd, -1);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    struct output_cap cap = output_cap_open(folder, "stdout", 64 * KIB);
    assert_true(fd >= 0 && cap.fd >= 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(write(fd, text, sizeof text), sizeof text);
        output_cap_apply(&cap);
        assert_int_equal(fstat(fd, &status), 0);
        assert_in_range(status.st_blocks * 512, 0, 64 * KIB);
    }
    assert_int_equal(status.st_size, 20 * sizeof text);
    assert_int_equal(lseek(cap.fd, 0, SEEK_DATA), cap.begin);
    close(fd);
    close(cap.fd);
    unlink(path);
    rmdir(folder);
}

static void test_without_holes_the_file_begins_anew(void **state)
{
    static const char line[] =
        "colloc: 1.6 MiB of the output before this were dropped (setting kept-output)\nlast\n";
    char folder[] = "/tmp/colloc-test-XXXXXX", path[64], kept[2 * sizeof line];
    static char text[800 * KIB];
    struct stat status;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/stdout", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    struct output_cap cap = output_cap_open(folder, "stdout", 64 * KIB);
    has_no_holes = true;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(write(fd, text, sizeof text), sizeof text);
        output_cap_apply(&cap);
        output_cap_apply(&cap);
        assert_int_equal(fstat(fd, &status), 0);
        assert_in_range(status.st_size, 1, 100);
    }
    has_no_holes = false;
    assert_int_equal(write(fd, "last\n", 5), 5);
    assert_int_equal(pread(cap.fd, kept, sizeof kept, 0), sizeof line - 1);
    assert_memory_equal(kept, line, sizeof line - 1);
    close(fd);
    close(cap.fd);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_below_the_cap),
        cmocka_unit_test(test_the_older_half_goes_in_whole_blocks),
        cmocka_unit_test(test_a_file_that_its_owner_shortened),
        cmocka_unit_test(test_a_writer_that_appends),
        cmocka_unit_test(test_without_holes_the_file_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
