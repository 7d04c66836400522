/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a room: its pages, seals, and what is left of its content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/room_file.h"

static int64_t bytes_of(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    return (int64_t)status.st_blocks * 512;
}

static char *map(int fd, size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

static void its_pages_exist_and_are_clear(void **state)
{
    int fd = room_file_create();
    assert_true(fd >= 0);
    assert_int_equal(room_file_grow(fd, 0, 2 * ROOM_FILE_GRAIN, -1), 0);
    assert_int_equal(bytes_of(fd), 2 * ROOM_FILE_GRAIN);
    assert_int_equal(room_file_grow(fd, 2 * ROOM_FILE_GRAIN, 3 * ROOM_FILE_GRAIN, 0), 0);
    assert_int_equal(bytes_of(fd), 3 * ROOM_FILE_GRAIN);
    char *at = map(fd, 3 * ROOM_FILE_GRAIN);
    assert_int_equal(at[0] | at[3 * ROOM_FILE_GRAIN - 1], 0);
    munmap(at, 3 * ROOM_FILE_GRAIN);
    close(fd);
}

static void a_process_that_has_it_cannot_change_its_size(void **state)
{
    int fd = room_file_create();
    assert_int_equal(room_file_grow(fd, 0, ROOM_FILE_GRAIN, -1), 0);
    assert_int_equal(room_file_seal(fd), 0);
    if (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) { /* not in a tmpfs */
        assert_int_equal(ftruncate(fd, 0), -1);
        assert_int_equal(ftruncate(fd, 2 * ROOM_FILE_GRAIN), -1);
    }
    assert_int_equal(room_file_seal(fd), 0); /* again, for its next copy */
    close(fd);
}

/* Whatever still has it mapped finds nothing there. */
static void what_is_given_back_is_gone_from_mappings_too(void **state)
{
    int fd = room_file_create();
    assert_int_equal(room_file_grow(fd, 0, ROOM_FILE_GRAIN, -1), 0);
    room_file_seal(fd);
    char *at = map(fd, ROOM_FILE_GRAIN);
    memset(at, 'x', ROOM_FILE_GRAIN);
    room_file_empty(fd, ROOM_FILE_GRAIN);
    assert_int_equal(bytes_of(fd), 0);
    assert_int_equal(at[5], 0);
    munmap(at, ROOM_FILE_GRAIN);
    close(fd);
}

static void a_size_that_cannot_be_is_an_error(void **state)
{
    int fd = room_file_create();
    assert_true(room_file_grow(fd, 0, UINT64_C(1) << 62, -1) < 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_pages_exist_and_are_clear),
        cmocka_unit_test(a_process_that_has_it_cannot_change_its_size),
        cmocka_unit_test(what_is_given_back_is_gone_from_mappings_too),
        cmocka_unit_test(a_size_that_cannot_be_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
