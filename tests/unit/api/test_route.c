/* SPDX-License-Identifier: Apache-2.0 */
/* Which route serves a path, and what a path's {id} may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "api/server_private.h"
#include "base/array.h"

static const struct api_route routes[] = {
    {"GET", "/v1/tasks", NULL},
    {"GET", "/v1/tasks/{id}", NULL},
    {"POST", "/v1/tasks/{id}/cancel", NULL},
    {"POST", "/v1/tasks", NULL},
    {"GET", "/v1/gpus/{name}/series", NULL},
    {NULL, NULL, NULL},
};

static uint64_t id;
static char name[ROUTE_NAME_SIZE];
static int status;

static const struct api_route *find(const char *method, const char *path)
{
    id = 99;
    return route_find(routes, method, path, &id, name, &status);
}

static void method_and_path_choose(void **state)
{
    assert_ptr_equal(find("GET", "/v1/tasks"), &routes[0]);
    assert_int_equal(id, 0);
    assert_ptr_equal(find("POST", "/v1/tasks"), &routes[3]);
    assert_ptr_equal(find("GET", "/v1/tasks/17"), &routes[1]);
    assert_int_equal(id, 17);
    assert_ptr_equal(find("POST", "/v1/tasks/9223372036854775807/cancel"), &routes[2]);
    assert_true(id == INT64_MAX);
}

static void a_name_is_any_text(void **state)
{
    char path[ROUTE_NAME_SIZE + 40];
    assert_ptr_equal(find("GET", "/v1/gpus/GPU-1f:3/series"), &routes[4]);
    assert_string_equal(name, "GPU-1f:3");
    assert_ptr_equal(find("GET", "/v1/tasks"), &routes[0]);
    assert_string_equal(name, "");
    assert_null(find("GET", "/v1/gpus//series"));
    assert_null(find("GET", "/v1/gpus/0/1/series"));
    snprintf(path, sizeof path, "/v1/gpus/%0*d/series", ROUTE_NAME_SIZE, 1);
    assert_null(find("GET", path));
    snprintf(path, sizeof path, "/v1/gpus/%0*d/series", ROUTE_NAME_SIZE - 1, 1);
    assert_ptr_equal(find("GET", path), &routes[4]);
}

static void another_method_is_405(void **state)
{
    assert_null(find("DELETE", "/v1/tasks/17"));
    assert_int_equal(status, 405);
    assert_null(find("GET", "/v1/tasks/17/cancel"));
    assert_int_equal(status, 405);
}

static void other_paths_are_404(void **state)
{
    static const char *const paths[] = {"", "/", "/v1", "/v1/task", "/v1/tasks/", "/v1/tasksx",
        "/v1/tasks/0", "/v1/tasks/-1", "/v1/tasks/x", "/v1/tasks/1x", "/v1/tasks/1/",
        "/v1/tasks/{id}", "/v1/tasks/9223372036854775808", "/v1/tasks/99999999999999999999",
        "/v1/tasks/1/cancel/2"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        assert_null(find("GET", paths[i]));
        assert_int_equal(status, 404);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(method_and_path_choose),
        cmocka_unit_test(a_name_is_any_text),
        cmocka_unit_test(another_method_is_405),
        cmocka_unit_test(other_paths_are_404),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
