/* SPDX-License-Identifier: Apache-2.0 */
/* containers.json as podman 4.3.1 writes it, shortened. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/file.h"
#include "cli/podman_storage.h"

#define ID       "b50c776a344696c1164c77cbd82438f94fb8aabff094533cadcec57d77d4c97c"
#define OTHER_ID "ce2c1c9e77302cfb7f9bc3a3ecba63d0d430713731ac6ee8598251730caab3f3"

static const char containers[] =
    "[{\"id\":\"" OTHER_ID "\",\"names\":[\"other\"],\"metadata\":\"{}\"},"
    "{\"id\":\"" ID "\",\"names\":[\"ada\"],\"image\":\"ce2c1c9e7730\",\"layer\":\"3a8f526c7273\","
    "\"metadata\":\"{\\\"image-name\\\":\\\"localhost/lab/train:1\\\",\\\"image-id\\\":"
    "\\\"ce2c1c9e7730\\\",\\\"name\\\":\\\"ada\\\",\\\"created-at\\\":1795997217}\","
    "\"created\":\"2026-11-30T00:06:57.295961294Z\",\"flags\":{\"MountLabel\":\"\"}}]";

static void test_an_image(void **state)
{
    char image[PODMAN_IMAGE_SIZE];
    (void)state;
    assert_int_equal(podman_image_parse(span_of(containers), "b50c776a3446", image), 0);
    assert_string_equal(image, "localhost/lab/train:1");
    assert_int_equal(podman_image_parse(span_of(containers), "ce2c1c9e7730", image), -ENOENT);
    assert_int_equal(podman_image_parse(span_of(containers), "000000000000", image), -ENOENT);
}

static void test_other_texts(void **state)
{
    static const char *const texts[] = {"", "[]", "{}", "[3]", "[{\"id\":3}]",
        "[{\"id\":\"" ID "\"}]", "[{\"id\":\"" ID "\",\"metadata\":{\"image-name\":\"x\"}}]",
        "[{\"id\":\"" ID "\",\"metadata\":\"{\\\"image-name\\\":3}\"}]",
        "[{\"id\":\"" ID "\",\"metadata\":\"{\\\"image-name\\\":\\\"x\"}", "\xff"};
    char image[PODMAN_IMAGE_SIZE];
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(podman_image_parse(span_of(texts[i]), "b50c776a3446", image), -ENOENT);
}

/* Users write their storage as they like. */
static void test_a_long_name_of_other_characters(void **state)
{
    static char text[4096] = "[{\"id\":\"" ID "\",\"metadata\":\"{\\\"image-name\\\":\\\"\\\\u001b";
    char image[PODMAN_IMAGE_SIZE];
    (void)state;
    memset(text + strlen(text), 'x', 1000);
    strcat(text, "\\\"}\"}]");
    assert_int_equal(podman_image_parse(span_of(text), ID, image), 0);
    assert_int_equal(strlen(image), PODMAN_IMAGE_SIZE - 1);
    assert_int_equal(image[0], '?');
}

static void test_a_user_who_is_none(void **state)
{
    char image[PODMAN_IMAGE_SIZE];
    (void)state;
    int64_t left_us = PODMAN_SEARCHES_US;
    assert_int_equal(podman_image_read((uid_t)-1, ID, &left_us, image), -ENOENT);
}

/* ---- a home that hangs ---- */

static bool hangs;

int __wrap_file_read(
    const char *path, size_t max, struct fault *fault, char **ret_data, size_t *ret_size);
int __wrap_file_read(
    const char *path, size_t max, struct fault *fault, char **ret_data, size_t *ret_size)
{
    if (hangs)
        pause();
    *ret_size = strlen(containers);
    *ret_data = strdup(containers);
    return *ret_data ? 0 : -ENOMEM;
}

/* Ten, and later one of a home that answers. */
static void test_many_containers_of_a_home_that_hangs(void **state)
{
    char image[PODMAN_IMAGE_SIZE];
    int64_t left_us = PODMAN_SEARCHES_US, begun_us = clock_monotonic_us();
    (void)state;
    hangs = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(podman_image_read(geteuid(), ID, &left_us, image), -ENOENT);
    assert_in_range(left_us, 1, PODMAN_SEARCHES_US / 4);
    for (int i = 0; i < 7; i++)
        assert_int_equal(podman_image_read(geteuid(), ID, &left_us, image), -ENOENT);
    assert_true(clock_monotonic_us() - begun_us < 2 * SECOND_US);
    hangs = false;
    left_us = PODMAN_SEARCHES_US;
    assert_int_equal(podman_image_read(geteuid(), ID, &left_us, image), 0);
    assert_string_equal(image, "localhost/lab/train:1");
    assert_in_range(left_us, 1, PODMAN_SEARCHES_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_image),
        cmocka_unit_test(test_other_texts),
        cmocka_unit_test(test_a_long_name_of_other_characters),
        cmocka_unit_test(test_a_user_who_is_none),
        cmocka_unit_test(test_many_containers_of_a_home_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
