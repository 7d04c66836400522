/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario always gives the same trace, and a mistake in one is reported with its line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "sim/scenario.h"

static int tell(const char *story, char **ret_trace, struct fault *fault)
{
    size_t size;
    FILE *out = open_memstream(ret_trace, &size);
    assert_non_null(out);
    int r = scenario_run(span_of(story), "story", out, fault);
    fclose(out);
    return r;
}

/* A scenario in which every kind of input happens. */
static char *busy_story(void)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "gpus 3x40GiB\nmig 2x10GiB\nset settle 3s\n");
    for (int i = 0; i < 120; i++)
        fprintf(out,
            "t=%d submit n%d takes=%dGiB smact=0.%d runs=%ds gpus=%d limit=%ds policy=%s\n",
            1 + i * 5, i, 1 + i * 7 % 30, i % 7, 20 + i % 90, 1 + (i % 9 == 0), 60 + i % 40,
            (const char *[]){"magm", "lug", "mug", "rr", "exclusive"}[i % 5]);
    fprintf(out,
        "t=100 lost gpu1\nt=200 found gpu1\nt=300 foreign gpu0 9GiB\nt=400 foreign gpu0 0GiB\n");
    fclose(out);
    return text;
}

static void the_same_story_gives_the_same_trace(void **state)
{
    char *story = busy_story(), *first, *second;
    struct fault fault = {""};
    assert_int_equal(tell(story, &first, &fault), 0);
    assert_int_equal(tell(story, &second, &fault), 0);
    assert_true(strlen(first) > 5000);
    assert_non_null(strstr(first, "recover"));
    assert_non_null(strstr(first, "TIMEOUT"));
    assert_string_equal(first, second);
    free(story);
    free(first);
    free(second);
}

static void a_mistake_is_named_with_its_line(void **state)
{
    static const struct {
        const char *story, *words;
    } table[] = {
        {"", "story: no GPUs"},
        {"gpus many\n", "story:1: 'many' is not understood"},
        {"gpus 0x40GiB\n", "story:1"},
        {"node 64x40GiB\nnode 65x40GiB\n", "story:2: '65x40GiB' is not understood"},
        {"gpus 1x40GiB\n\nt=1 submit a takes=lots\n", "story:3: 'lots' is not understood"},
        {"gpus 1x40GiB\nt=1 cancel z\n", "story:2: 'z' is not understood"},
        {"gpus 1x40GiB\nt=1 lost gpu1\n", "gpu1"},
        {"gpus 1x40GiB\nt=1 explode gpu0\n", "explode"},
        {"gpus 1x40GiB\npolicy best\n", "best"},
        {"gpus 1x40GiB\nset smact-max 2\n", "'2'"},
        {"gpus 1x40GiB\nset colour 2\n", "colour"},
        {"gpus 1x40GiB\nt=-1 submit a\n", "t=-1"},
        {"gpus 1x40GiB\nt=1 lost\n", "story:2: a time needs a verb"},
        {"gpus 1x40GiB\nt=1 foreign gpu0 lots\n", "'lots'"},
        {"gpus 1x40GiB\nt=0 submit a pending\nt=1 estimate a\n", "story:3: estimate needs"},
        {"gpus 1x40GiB\nt=0 submit a exits=256\n", "'256'"},
        {"gpus 1x40GiB\nt=0 submit a says=2\n", "'2'"},
        {"gpus 1x40GiB\nt=0 submit a policy=best\n", "'best'"},
        {"gpus 1x40GiB\nt=0 submit a loud\n", "'loud'"},
        {"gpus 1x40GiB\nset slowdown-max 0\n", "'0'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct fault fault = {""};
        char *trace;
        assert_int_equal(tell(table[i].story, &trace, &fault), -EINVAL);
        assert_non_null(strstr(fault.text, table[i].words));
        free(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_story_gives_the_same_trace),
        cmocka_unit_test(a_mistake_is_named_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
