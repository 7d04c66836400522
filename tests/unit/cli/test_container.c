/* SPDX-License-Identifier: Apache-2.0 */
/* The words for podman and docker, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "cli/container.h"
#include "cli/docker_words.h"

static void the_container_has_the_tasks_gpus_only(void **state)
{
    static const char *const command[] = {"python", "a b.py", "--volume=/:/host", "$(id)", NULL};
    const struct container_order order = {.image = "docker.io/pytorch/pytorch:2.4",
        .folder = "/home/ada",
        .gpus = "2,0:1",
        .command = command};
    struct fault fault = {""};
    char **words;
    assert_int_equal(container_words(&order, &fault, &words), 0);
    static const char *const first[] = {"podman", "run", "--rm", "--cgroups=disabled",
        "--device=nvidia.com/gpu=2", "--device=nvidia.com/gpu=0:1", "--volume=/home/ada:/home/ada",
        "--workdir=/home/ada", "--env=COLLOC_TASK_ID"};
    for (size_t i = 0; i < ARRAY_SIZE(first); i++)
        assert_string_equal(words[i], first[i]);
    size_t image = 0, n = 0;
    for (; words[n]; n++) {
        if (strcmp(words[n], order.image) == 0)
            image = n;
        assert_null(strstr(words[n], "CUDA_VISIBLE_DEVICES")); /* the container counts anew */
    }
    assert_int_equal(n - image, 5); /* words of the command are never options of podman */
    for (size_t i = 0; command[i]; i++)
        assert_string_equal(words[image + 1 + i], command[i]);
    container_free(words);
}

static void an_init_passes_signals_on(void **state)
{
    static const char *const command[] = {"python", NULL};
    const struct container_order order = {.image = "a:1",
        .folder = "/w",
        .gpus = "",
        .command = command,
        .name = "colloc-12-47",
        .init = "/usr/bin/catatonit"};
    struct fault fault = {""};
    char **words;
    assert_int_equal(container_words(&order, &fault, &words), 0);
    assert_string_equal(words[4], "--name=colloc-12-47");
    assert_string_equal(words[5], "--init");
    assert_string_equal(words[6], "--init-path=/usr/bin/catatonit");
    container_free(words);
}

static void docker_has_the_tasks_cgroup_gpus_and_user(void **state)
{
    static const char *const command[] = {"python", "--gpus", "8", NULL};
    static const struct docker_task task = {"12", "0,2", "/colloc/a-12.1"};
    const struct container_order order = {
        "a:1", NULL, "/w", "0,2", command, &task, 1000, 100, NULL};
    static const char *const expected[] = {"docker", "run", "--rm", "--init",
        "--cgroup-parent=/colloc/a-12.1", "--label=colloc.task=12",
        "--env=NVIDIA_VISIBLE_DEVICES=0,2", "--gpus=\"device=0,2\"", "--user=1000:100",
        "--volume=/w:/w", "--workdir=/w"};
    struct fault fault = {""};
    char **words;
    size_t n = 0;
    assert_int_equal(container_words(&order, &fault, &words), 0);
    for (; n < ARRAY_SIZE(expected); n++)
        assert_string_equal(words[n], expected[n]);
    while (words[n + 4])
        n++;
    assert_string_equal(words[n], "a:1");
    assert_string_equal(words[n + 2], "--gpus");
    container_free(words);
}

/* root of a container of a user's dockerd is that user */
static void a_dockerd_in_the_task_needs_no_cgroup_and_no_user(void **state)
{
    static const char *const none[] = {NULL};
    static const struct docker_task task = {"12", "1", NULL};
    const struct container_order order = {"a:1", NULL, "/w", "1", none, &task, 1000, 100, NULL};
    struct fault fault = {""};
    char **words;
    assert_int_equal(container_words(&order, &fault, &words), 0);
    assert_string_equal(words[4], "--label=colloc.task=12");
    assert_string_equal(words[6], "--gpus=device=1");
    for (size_t i = 0; words[i]; i++)
        assert_true(!strstr(words[i], "--user") && !strstr(words[i], "--cgroup-parent"));
    container_free(words);
}

static void a_task_without_gpus_gets_none(void **state)
{
    static const char *const none[] = {NULL};
    const struct container_order order = {
        .image = "localhost/a@sha256:00", .folder = "/", .gpus = "", .command = none};
    struct fault fault = {""};
    char **words;
    assert_int_equal(container_words(&order, &fault, &words), 0);
    for (size_t i = 0; words[i]; i++)
        assert_null(strstr(words[i], "--device"));
    container_free(words);
}

static void what_is_no_image_is_refused(void **state)
{
    static const char *const none[] = {NULL};
    static const struct container_order wrong[] = {{"", NULL, "/w", "0", none, NULL, 0, 0, NULL},
        {"--privileged", NULL, "/w", "0", none, NULL, 0, 0, NULL},
        {"a b", NULL, "/w", "0", none, NULL, 0, 0, NULL},
        {"a;id", NULL, "/w", "0", none, NULL, 0, 0, NULL},
        {"a", NULL, "w", "0", none, NULL, 0, 0, NULL},
        {"a", NULL, "/w:/etc", "0", none, NULL, 0, 0, NULL},
        {"a", NULL, "/w", "all", none, NULL, 0, 0, NULL},
        {"a", NULL, "/w", "0 --privileged", none, NULL, 0, 0, NULL}};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct fault fault = {""};
        char **words;
        if (container_words(&wrong[i], &fault, &words) != -EINVAL)
            fail_msg("%zu", i);
        assert_non_null(strstr(fault.text, "container: "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_container_has_the_tasks_gpus_only),
        cmocka_unit_test(an_init_passes_signals_on),
        cmocka_unit_test(docker_has_the_tasks_cgroup_gpus_and_user),
        cmocka_unit_test(a_dockerd_in_the_task_needs_no_cgroup_and_no_user),
        cmocka_unit_test(a_task_without_gpus_gets_none),
        cmocka_unit_test(what_is_no_image_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
