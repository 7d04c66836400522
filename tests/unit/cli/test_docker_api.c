/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in the form of dockerd 20.10 (API 1.41), shortened. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "cli/docker_api.h"

#define HEAD                                                                                       \
    "HTTP/1.0 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n"                   \
    "Server: Docker/20.10.24+dfsg1 (linux)\r\n\r\n"

static void test_an_image(void **state)
{
    static const char answer[] = HEAD
        "{\"Id\":\"4f2c1ab83c1d\",\"State\":{\"Status\":\"running\",\"Pid\":47},"
        "\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/usr\",\"Destination\":\"/usr\"},"
        "{\"Type\":\"bind\",\"Source\":\"/home/no-such-user/a\",\"Destination\":\"/a\"}],"
        "\"Config\":{\"User\":\"\",\"Image\":\"lab/train:1\\u001b[31m\"}}\n";
    struct docker_container container;
    (void)state;
    assert_int_equal(docker_answer_parse(span_of(answer), &container), 0);
    assert_string_equal(container.image, "lab/train:1?[31m");
    assert_string_equal(container.user, "");
}

/* The labels that docker-compose 1.29 and `docker compose` 2.x set, shortened. */
static void test_compose(void **state)
{
    static const char answer[] = HEAD
        "{\"Mounts\":[],\"Config\":{\"Image\":\"lab/train:1\",\"Labels\":{"
        "\"com.docker.compose.config-hash\":\"b6\",\"com.docker.compose.project\":\"sweep\","
        "\"com.docker.compose.project.working_dir\":\"/home/no-such-user/sweep\","
        "\"com.docker.compose.service\":\"train\"}}}";
    static const char wrong[] = HEAD
        "{\"Config\":{\"Labels\":{\"com.docker.compose.project\":3,"
        "\"com.docker.compose.project.working_dir\":[\"/home/root\"]}}}";
    struct docker_container container;
    (void)state;
    assert_int_equal(docker_answer_parse(span_of(answer), &container), 0);
    assert_string_equal(container.project, "sweep");
    assert_string_equal(container.user, "");
    assert_int_equal(docker_answer_parse(span_of(wrong), &container), 0);
    assert_string_equal(container.project, "");
}

static void test_other_answers(void **state)
{
    static const struct {
        const char *text;
        int r;
    } rows[] = {{"HTTP/1.0 404 Not Found\r\n\r\n{\"message\":\"No such container: x\"}", -ENOENT},
        {"HTTP/1.0 500 Internal Server Error\r\n\r\n{}", -EBADMSG}, {HEAD, -EBADMSG},
        {HEAD "[]", -EBADMSG}, {HEAD "{", -EBADMSG}, {"", -EBADMSG}, {"HTTP/1.0 200", -EBADMSG},
        {"\r\n\r\n{}", -EBADMSG}, {HEAD "{\"Config\":3,\"Mounts\":[1,{\"Source\":2}]}", 0}};
    struct docker_container container;
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(docker_answer_parse(span_of(rows[i].text), &container), rows[i].r);
    assert_string_equal(container.image, "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_image),
        cmocka_unit_test(test_compose),
        cmocka_unit_test(test_other_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
