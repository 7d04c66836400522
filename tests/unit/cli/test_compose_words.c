/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of docker compose 2.26, and projects as it prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "cli/compose_words.h"

enum { WORDS_MAX = 32 };

/* Splits at blanks. */
static void split(char *text, const char *ret_words[WORDS_MAX])
{
    int n = 0;
    for (char *word; n < WORDS_MAX - 1 && (word = strsep(&text, " "));)
        if (*word)
            ret_words[n++] = word;
    ret_words[n] = NULL;
}

static void check_list(struct word_list *list, const char *expected)
{
    char joined[1024] = "";
    assert_true(word_list_end(list));
    for (size_t i = 0; list->words[i]; i++) {
        size_t size = strlen(joined);
        snprintf(joined + size, sizeof joined - size, "%s%s", i ? " " : "", list->words[i]);
    }
    assert_string_equal(joined, expected);
    word_list_fini(list);
}

static void test_what_makes_containers(void **state)
{
    static const char *const makes[] = {"compose up -d", "compose -f a.yml run train",
        "--context lab compose --project-name x up", "-D compose create", "compose -fa.yml up",
        "compose --dry-run watch"};
    static const char *const others[] = {"compose", "compose ps", "compose -f up.yml logs",
        "run img compose up", "ps", "", "compose start", "compose -f up", "compose down"};
    char text[256];
    const char *words[WORDS_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(makes) + ARRAY_SIZE(others); i++) {
        bool is_one = i < ARRAY_SIZE(makes);
        snprintf(text, sizeof text, "%s", is_one ? makes[i] : others[i - ARRAY_SIZE(makes)]);
        split(text, words);
        assert_int_equal(compose_starts_project(words), is_one);
    }
}

static void test_words(void **state)
{
    static const struct {
        const char *given, *config, *replaced;
    } rows[] = {
        {"compose up -d", "compose --profile=* config --format=json",
            "compose --file=F --project-directory=/d --project-name=n up -d"},
        {"-H unix:///s compose -f a.yml -f=b.yml --file c.yml --profile x run -f train -f",
            "-H unix:///s compose -f a.yml -f=b.yml --file c.yml --profile x --profile=* config "
            "--format=json",
            "-H unix:///s compose --profile x --file=F --project-directory=/d --project-name=n run "
            "-f train -f"},
        {"compose --verbose -fa.yml -p q up",
            "compose --verbose -fa.yml -p q --profile=* config "
            "--format=json",
            "compose --verbose -p q --file=F --project-directory=/d --project-name=n up"},
    };
    char text[256];
    const char *words[WORDS_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct word_list config = {0}, replaced = {0};
        snprintf(text, sizeof text, "%s", rows[i].given);
        split(text, words);
        compose_add_config(&config, words);
        check_list(&config, rows[i].config);
        compose_add_replaced(&replaced, words, "F", "/d", "n");
        check_list(&replaced, rows[i].replaced);
    }
}

static void test_its_file_and_folder(void **state)
{
    char text[] = "--tls compose --project-directory /p -f=a.yml --file=b.yml up";
    const char *words[WORDS_MAX];
    split(text, words);
    const struct compose_call call = compose_parse(words);
    assert_int_equal(call.compose, 1);
    assert_string_equal(words[call.verb], "up");
    assert_string_equal(call.file, "a.yml");
    assert_string_equal(call.directory, "/p");
}

static json_t *join(const char *text, const char *gpus)
{
    const struct docker_task task = {"12", gpus, "colloc-a_12.1.slice"};
    json_t *project = json_loads(text, 0, NULL);
    assert_non_null(project);
    assert_true(compose_join_task(project, &task));
    return project;
}

#define WITH_GPU(members) "{\"name\":\"t\",\"services\":{\"a\":{\"image\":\"i\"," members "}}}"

static void test_services(void **state)
{
    static const char *const asking[] = {
        WITH_GPU("\"deploy\":{\"resources\":{\"reservations\":{\"devices\":[{\"capabilities\":"
                 "[\"gpu\"],\"driver\":\"nvidia\",\"count\":-1}]}}}"),
        WITH_GPU("\"gpus\":[{\"count\":-1}]"),
        WITH_GPU("\"devices\":[\"nvidia.com/gpu=all\"]"),
        WITH_GPU("\"devices\":[{\"source\":\"nvidia.com/gpu=0\"}]"),
        WITH_GPU("\"devices\":[{\"source\":\"/dev/nvidia1\"},{\"source\":\"/dev/nvidiactl\"}]"),
        WITH_GPU("\"runtime\":\"nvidia\",\"environment\":{\"NVIDIA_VISIBLE_DEVICES\":\"all\"}"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(asking); i++) {
        json_t *project = join(asking[i], "0,2");
        const char *parent, *visible, *first, *second, *label;
        assert_int_equal(
            json_unpack(project, "{s:{s:{s:s, s:{s:s}, s:{s:s}, s:{s:{s:{s:[{s:[ss]}]}}}}}}",
                "services", "a", "cgroup_parent", &parent, "labels", "colloc.task", &label,
                "environment", "NVIDIA_VISIBLE_DEVICES", &visible, "deploy", "resources",
                "reservations", "devices", "device_ids", &first, &second),
            0);
        assert_string_equal(parent, "colloc-a_12.1.slice");
        assert_string_equal(label, "12");
        assert_string_equal(visible, "0,2");
        assert_string_equal(first, "0");
        assert_string_equal(second, "2");
        json_t *service = json_object_get(json_object_get(project, "services"), "a");
        assert_null(json_object_get(service, "gpus"));
        assert_int_equal(json_array_size(json_object_get(service, "devices")), 0);
        json_decref(project);
    }
}

static void test_what_is_left_alone(void **state)
{
    json_t *project = join(
        WITH_GPU("\"restart\":\"always\",\"deploy\":{\"restart_policy\":{\"condition\":"
                 "\"any\"},\"resources\":{\"reservations\":{\"devices\":[{\"capabilities\":"
                 "[\"tpu\"],\"driver\":\"x\"}]}}},\"labels\":{\"k\":\"v\"}"),
        "1");
    json_t *service = json_object_get(json_object_get(project, "services"), "a"), *devices;
    const char *label, *visible;
    assert_null(json_object_get(service, "restart"));
    assert_null(json_object_get(json_object_get(service, "deploy"), "restart_policy"));
    assert_int_equal(json_unpack(service, "{s:{s:s}, s:{s:s}, s:{s:{s:{s:o}}}}", "labels", "k",
                         &label, "environment", "NVIDIA_VISIBLE_DEVICES", &visible, "deploy",
                         "resources", "reservations", "devices", &devices),
        0);
    assert_string_equal(visible, "1"); /* an image may say "all" */
    assert_int_equal(json_array_size(devices), 1);
    json_decref(project);
    /* A task without a GPU gives none. */
    project = join(WITH_GPU("\"gpus\":[{\"count\":-1}]"), "");
    service = json_object_get(json_object_get(project, "services"), "a");
    assert_int_equal(
        json_unpack(service, "{s:{s:s}, s:{s:{s:{s:o}}}}", "environment", "NVIDIA_VISIBLE_DEVICES",
            &label, "deploy", "resources", "reservations", "devices", &devices),
        0);
    assert_string_equal(label, "void");
    assert_int_equal(json_array_size(devices), 0);
    json_decref(project);
}

static void test_what_is_no_project(void **state)
{
    static const struct docker_task task = {"12", "0", "a.slice"};
    static const char *const texts[] = {"{}", "[]", "{\"services\":{}}", "{\"name\":\"x\"}",
        "{\"name\":\"x\",\"services\":[]}", "{\"name\":\"x\",\"services\":{\"a\":1}}"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        json_t *project = json_loads(texts[i], 0, NULL);
        assert_false(compose_join_task(project, &task));
        json_decref(project);
    }
}

static void test_of_a_dockerd_in_the_task(void **state)
{
    const struct docker_task task = {"12", "1", NULL};
    json_t *project = json_loads(
        WITH_GPU("\"cgroup_parent\":\"/x\",\"restart\":\"always\""), 0, NULL);
    const json_t *service;
    assert_true(compose_join_task(project, &task));
    service = json_object_get(json_object_get(project, "services"), "a");
    assert_null(json_object_get(service, "cgroup_parent"));
    assert_null(json_object_get(service, "restart"));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(service, "labels"), "colloc.task")),
        "12");
    json_decref(project);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_makes_containers),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_its_file_and_folder),
        cmocka_unit_test(test_services),
        cmocka_unit_test(test_what_is_left_alone),
        cmocka_unit_test(test_what_is_no_project),
        cmocka_unit_test(test_of_a_dockerd_in_the_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
