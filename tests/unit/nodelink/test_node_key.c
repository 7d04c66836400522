/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the key that agents and controller share: whatever it is, it is read or refused with
 * what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nodelink/node_key.h"

static char folder[] = "/tmp/colloc-node-key-XXXXXX", path[64], link_path[64];

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/node.key", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    return 0;
}

static int remove_folder(void **state)
{
    return rmdir(folder);
}

static int remove_files(void **state)
{
    if (rmdir(path) < 0)
        unlink(path);
    unlink(link_path);
    return 0;
}

static void write_file(const char *text, size_t size, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), size);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void write_line(const char *line)
{
    write_file(line, strlen(line), 0400);
}

static void assert_refused(const char *name, int error, const char *part)
{
    uint8_t key[SHA256_SIZE];
    struct fault fault = {0};
    int r = node_key_read(NODE_AUTH_TLS, name, &fault, key);
    if (r != -error || !strstr(fault.text, part) || !strstr(fault.text, name))
        fail_msg("%d, %s", r, fault.text);
}

static void read_key(const char *name, uint8_t ret_key[static SHA256_SIZE])
{
    struct fault fault = {0};
    if (node_key_read(NODE_AUTH_TLS, name, &fault, ret_key) != 1)
        fail_msg("%s", fault.text);
}

static const char line[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void test_key_of_a_line(void **state)
{
    uint8_t key[SHA256_SIZE], same[SHA256_SIZE];
    char hex[SHA256_HEX_SIZE], digest[SHA256_HEX_SIZE], with_end[80];
    write_line(line);
    read_key(path, key);
    sha256_format(key, hex);
    sha256_hex(line, strlen(line), digest);
    assert_string_equal(hex, digest);
    snprintf(with_end, sizeof with_end, "%s\r\nmore\n", line);
    write_line(with_end); /* as copied by whatever means */
    read_key(path, same);
    assert_memory_equal(key, same, sizeof key);
    write_line("0123456789abcdef0123456789abcdee"); /* 32 characters */
    read_key(path, same);
    assert_memory_not_equal(key, same, sizeof key);
    assert_int_equal(symlink(path, link_path), 0);
    read_key(link_path, key);
    assert_memory_equal(key, same, sizeof key);
}

static void test_munge(void **state)
{
    uint8_t key[SHA256_SIZE];
    struct fault fault = {0};
    assert_int_equal(node_key_read(NODE_AUTH_MUNGE, "", &fault, key), 0);
    assert_int_equal(node_key_read(NODE_AUTH_MUNGE, path, &fault, key), -EINVAL);
    assert_non_null(strstr(fault.text, "node-auth is munge; set node-auth to tls"));
}

static void test_bad_content(void **state)
{
    char bytes[5000];
    write_line("");
    assert_refused(path, EINVAL, "must have at least 32 characters: make one with");
    write_line("\n0123456789abcdef0123456789abcdef\n");
    assert_refused(path, EINVAL, "must have at least 32 characters");
    write_line("0123456789abcdef0123456789abcde"); /* 31 */
    assert_refused(path, EINVAL, "must have at least 32 characters");
    memset(bytes, 'a', sizeof bytes);
    write_file(bytes, 501, 0400);
    assert_refused(path, EINVAL, "at most 500 printable ASCII characters");
    write_file(bytes, sizeof bytes, 0400);
    assert_refused(path, EFBIG, "larger than");
    for (int byte = 0; byte < 256; byte++) {
        if (strchr("\r\n", byte) || (byte >= ' ' && byte < 0x7f))
            continue;
        bytes[3] = (char)byte;
        write_file(bytes, 64, 0400);
        assert_refused(path, EINVAL, byte == 0 ? "printable" : "printable ASCII characters");
    }
}

static void test_who_can_read_it(void **state)
{
    static const mode_t wrong[] = {0404, 0440, 0620, 0602, 0644, 0601};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file(line, strlen(line), wrong[i]);
        assert_refused(path, EPERM, "must be a file that other users cannot read: chmod 600");
    }
    if (geteuid() != 0)
        skip();
    write_line(line);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_refused(path, EPERM, "belongs to user 65534, who can change it: chown it to root");
}

static void test_not_a_file(void **state)
{
    assert_refused(path, ENOENT, "make one with `(umask 277; openssl rand -hex 32 >");
    assert_int_equal(symlink(path, link_path), 0);
    assert_refused(link_path, ENOENT, "make one with");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(path, EPERM, "must be a file");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* without a writer */
    assert_refused(path, EPERM, "must be a file");
    unlink(path);
    assert_int_equal(symlink("link", path), 0); /* in a circle */
    assert_refused(path, ELOOP, "Too many levels");
    assert_refused("/dev/null", EPERM, "must be a file");
}

int main(void)
{
#define KEY_TEST(name) cmocka_unit_test_teardown(name, remove_files)
    const struct CMUnitTest tests[] = {
        KEY_TEST(test_key_of_a_line),
        KEY_TEST(test_munge),
        KEY_TEST(test_bad_content),
        KEY_TEST(test_who_can_read_it),
        KEY_TEST(test_not_a_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
