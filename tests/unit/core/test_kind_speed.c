/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of GPUs of several kinds, relative to the kind that an expected time holds for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/kind_speed.h"

struct server {
    struct gpu_view gpus[3];
    struct cluster_view view;
};

static void set_gpu(struct gpu_view *gpu, const char *name, int speed)
{
    *gpu = (struct gpu_view){.is_listed = true, .id = {.is_place = true, .speed = speed}};
    strcpy(gpu->id.name, name);
}

static void set_server(struct server *server, int h100, int l4, int t4)
{
    set_gpu(&server->gpus[0], "NVIDIA H100 80GB HBM3", h100);
    set_gpu(&server->gpus[1], "NVIDIA L4", l4);
    set_gpu(&server->gpus[2], "Tesla T4", t4);
    server->view = (struct cluster_view){.gpus = server->gpus, .n_gpus = 3};
    kind_speed_compare(&server->view);
}

static struct task task_of(int gpus, const char *kinds)
{
    return (struct task){.request = {.gpus = gpus, .gpu_kind = kinds}};
}

static void the_reference_is_the_fastest_kind_that_the_task_may_use(void **state)
{
    struct server server;
    struct task any = task_of(1, NULL), named = task_of(1, "L4,T4");
    (void)state;
    set_server(&server, 800, 400, 200);
    assert_true(kind_speed_of(&server.view, 2) == 0.25);
    assert_true(kind_speed_at(&server.view, &any, 0) == 1);
    assert_true(kind_speed_at(&server.view, &any, 1) == 0.5);
    assert_true(kind_speed_at(&server.view, &named, 1) == 1);
    assert_true(kind_speed_at(&server.view, &named, 2) == 0.5);
    assert_true(kind_speed_least(&server.view, &any) == 0.25);
}

static void a_task_of_several_gpus_is_as_fast_as_on_the_slowest(void **state)
{
    struct server server;
    struct task pair = task_of(2, NULL);
    (void)state;
    set_server(&server, 800, 400, 200);
    assert_true(kind_speed_on(&server.view, &pair, (const int[]){0, 1}, 2) == 0.5);
    assert_true(kind_speed_at(&server.view, &pair, 0) == 0.25); /* the other may be the T4 */
}

static void unknown_and_equal_speeds_are_not_compared(void **state)
{
    struct server server;
    struct task any = task_of(1, NULL);
    (void)state;
    set_server(&server, 800, 0, 200);
    assert_int_equal(server.view.speed_max, 0);
    assert_true(kind_speed_at(&server.view, &any, 2) == 1);
    set_server(&server, 300, 300, 300);
    assert_int_equal(server.view.speed_max, 0);
    server.gpus[1].id.is_place = false; /* a GPU divided into MIG instances */
    server.gpus[1].id.speed = 0;
    server.gpus[0].id.speed = 600;
    kind_speed_compare(&server.view);
    assert_int_equal(server.view.speed_max, 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_is_the_fastest_kind_that_the_task_may_use),
        cmocka_unit_test(a_task_of_several_gpus_is_as_fast_as_on_the_slowest),
        cmocka_unit_test(unknown_and_equal_speeds_are_not_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
