/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing whole files: limits, errors, atomic replacement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char folder[] = "/tmp/colloc-test-file-XXXXXX";
static char path[4096];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int enter_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int leave_folder(void **state)
{
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int count_entries(const char *of)
{
    DIR *dir = opendir(of);
    int n = 0;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static void write_file(const char *name, const void *data, size_t size)
{
    assert_int_equal(file_write_atomic(in_folder(name), data, size, 0644), 0);
}

static void test_read_gives_bytes_and_a_nul(void **state)
{
    struct fault fault;
    char *data;
    size_t size;
    write_file("bytes", "a\0b", 3);
    assert_int_equal(file_read(in_folder("bytes"), 3, &fault, &data, &size), 0);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b", 4);
    free(data);
}

static void test_read_empty(void **state)
{
    char *data;
    size_t size = 7;
    write_file("empty", "", 0);
    assert_int_equal(file_read(in_folder("empty"), 0, NULL, &data, &size), 0);
    assert_int_equal(size, 0);
    assert_string_equal(data, "");
    free(data);
}

static void test_read_refuses_what_is_too_large(void **state)
{
    struct fault fault;
    char *data = NULL;
    size_t size;
    write_file("large", "0123456789", 10);
    assert_int_equal(file_read(in_folder("large"), 9, &fault, &data, &size), -EFBIG);
    assert_non_null(strstr(fault.text, path));
    assert_int_equal(file_read("/dev/zero", 100000, &fault, &data, &size), -EFBIG);
    assert_non_null(strstr(fault.text, "/dev/zero"));
    assert_null(data);
}

static void test_read_names_what_is_not_there(void **state)
{
    struct fault fault;
    char *data;
    size_t size;
    assert_int_equal(file_read(in_folder("nowhere"), 10, &fault, &data, &size), -ENOENT);
    assert_non_null(strstr(fault.text, path));
    assert_int_equal(file_read(folder, 10, &fault, &data, &size), -EISDIR);
    assert_non_null(strstr(fault.text, folder));
}

static void test_read_of_a_file_without_a_size(void **state)
{
    char *data;
    size_t size;
    assert_int_equal(file_read("/proc/self/status", 1 << 20, NULL, &data, &size), 0);
    assert_true(size > 0);
    assert_int_equal(strlen(data), size);
    free(data);
}

/* More than a pipe holds at once would block, so this stays under 64 KiB yet over the first buffer.
 */
static void test_read_fd_grows_with_what_comes(void **state)
{
    int ends[2];
    char sent[20000], *data;
    size_t size;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)('a' + i % 26);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(file_write_fd(ends[1], sent, sizeof sent), 0);
    close(ends[1]);
    assert_int_equal(file_read_fd(ends[0], "pipe", sizeof sent, NULL, &data, &size), 0);
    assert_int_equal(size, sizeof sent);
    assert_memory_equal(data, sent, size);
    assert_true(fcntl(ends[0], F_GETFD) >= 0);
    close(ends[0]);
    free(data);
}

static void test_read_fd_starts_where_the_descriptor_is(void **state)
{
    char *data;
    size_t size;
    write_file("offset", "0123456789", 10);
    int fd = open(in_folder("offset"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
    assert_int_equal(file_read_fd(fd, "offset", 10, NULL, &data, &size), 0);
    assert_string_equal(data, "456789");
    free(data);
    close(fd);
}

static void test_read_fd_says_why_not(void **state)
{
    struct fault fault;
    char *data;
    size_t size;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(file_read_fd(fd, "closed to reading", 10, &fault, &data, &size), -EBADF);
    assert_non_null(strstr(fault.text, "closed to reading: "));
    close(fd);
}

static void test_write_fd_says_why_not(void **state)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_fd(fd, "x", 1), -ENOSPC);
    assert_int_equal(file_write_fd(fd, "", 0), 0);
    close(fd);
}

static void test_atomic_write_replaces(void **state)
{
    char *data;
    size_t size;
    struct stat status;
    write_file("config", "old and longer", 14);
    assert_int_equal(file_write_atomic(in_folder("config"), "new", 3, 0600), 0);
    assert_int_equal(file_read(path, 100, NULL, &data, &size), 0);
    assert_string_equal(data, "new");
    free(data);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
}

static void test_atomic_write_leaves_nothing_behind(void **state)
{
    assert_int_equal(file_make_folders(in_folder("taken"), 0755), 0);
    int before = count_entries(folder);
    assert_int_equal(file_write_atomic(in_folder("taken"), "x", 1, 0644), -EISDIR);
    assert_int_equal(file_write_atomic(in_folder("no/such/folder"), "x", 1, 0644), -ENOENT);
    assert_int_equal(count_entries(folder), before);
    char longest[8192];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(file_write_atomic(longest, "x", 1, 0644), -ENAMETOOLONG);
}

static void test_make_folders(void **state)
{
    struct stat status;
    assert_int_equal(file_make_folders(in_folder("a/b//c/"), 0750), 0);
    assert_int_equal(file_make_folders(in_folder("a/b/c"), 0700), 0);
    assert_int_equal(stat(in_folder("a/b/c"), &status), 0);
    assert_true(S_ISDIR(status.st_mode));
    assert_int_equal(status.st_mode & 07777, 0750);
    assert_int_equal(file_make_folders("/", 0755), 0);
}

static void test_make_folders_refuses(void **state)
{
    char longest[8192];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    write_file("plain", "", 0);
    assert_int_equal(file_make_folders("", 0755), -ENOENT);
    assert_int_equal(file_make_folders(in_folder("plain"), 0755), -ENOTDIR);
    assert_int_equal(file_make_folders(in_folder("plain/below"), 0755), -ENOTDIR);
    assert_int_equal(file_make_folders(longest, 0755), -ENAMETOOLONG);
}

static void test_read_start_cuts_and_ends_with_a_nul(void **state)
{
    char text[4] = "???";
    write_file("start", "abcdef", 6);
    assert_int_equal(file_read_start(in_folder("start"), text, sizeof text), 3);
    assert_string_equal(text, "abc");
    write_file("start", "a", 1);
    assert_int_equal(file_read_start(in_folder("start"), text, sizeof text), 1);
    assert_string_equal(text, "a");
    assert_int_equal(file_read_start(in_folder("absent"), text, sizeof text), -ENOENT);
    assert_string_equal(text, "");
    assert_int_equal(file_read_start(folder, text, sizeof text), -EISDIR);
    assert_string_equal(text, "");
}

int main(void)
{
    umask(022);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_start_cuts_and_ends_with_a_nul),
        cmocka_unit_test(test_read_gives_bytes_and_a_nul),
        cmocka_unit_test(test_read_empty),
        cmocka_unit_test(test_read_refuses_what_is_too_large),
        cmocka_unit_test(test_read_names_what_is_not_there),
        cmocka_unit_test(test_read_of_a_file_without_a_size),
        cmocka_unit_test(test_read_fd_grows_with_what_comes),
        cmocka_unit_test(test_read_fd_starts_where_the_descriptor_is),
        cmocka_unit_test(test_read_fd_says_why_not),
        cmocka_unit_test(test_write_fd_says_why_not),
        cmocka_unit_test(test_atomic_write_replaces),
        cmocka_unit_test(test_atomic_write_leaves_nothing_behind),
        cmocka_unit_test(test_make_folders),
        cmocka_unit_test(test_make_folders_refuses),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
