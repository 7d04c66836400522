/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of recorded inputs, of both forms. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "policy/policies.h"
#include "replay/input_line.h"

static int read_text(const char *text, struct input_line *line, struct fault *fault)
{
    *fault = (struct fault){""};
    return input_line_read(span_of(text), policy_find, fault, line);
}

static char *as_text(const struct input_line *line)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int r;
    if (line->kind == INPUT_LINE_BEGIN)
        r = input_line_write_begin(out, &line->settings);
    else if (line->kind == INPUT_LINE_SETTINGS)
        r = input_line_write_settings(out, &line->settings);
    else if (line->kind == INPUT_LINE_FORGET)
        r = input_line_write_forget(out, line->task);
    else
        r = input_line_write_event(out, line->kind, line->answer, &line->event, NULL);
    assert_int_equal(r, 0);
    fclose(out);
    text[size - 1] = '\0'; /* the line end */
    return text;
}

/* The line of the first form says the same as that of the second, which is written as it is. */
static void both_forms_say_the_same(void **state)
{
    static const struct {
        const char *first, *second;
    } table[] = {
        {"F 7", "{\"forget\":7}"},
        {"T 0 17", "{\"input\":\"TICK\",\"time_us\":17,\"event\":{}}"},
        {"I 2 17 3 CANCEL {}",
            "{\"input\":\"CANCEL\",\"answer\":2,\"time_us\":17,\"task\":3,\"event\":{}}"},
        {"A 17 3 END {\"state\":\"timeout\"}",
            "{\"apply\":\"END\",\"time_us\":17,\"task\":3,\"event\":{\"state\":\"timeout\"}}"},
        {"D 17 3 PLACE {\"gpus\":[1],\"whole\":false,\"sharing\":\"mps\"}",
            "{\"decision\":\"PLACE\",\"time_us\":17,\"task\":3,"
            "\"event\":{\"gpus\":[1],\"whole\":false,\"sharing\":\"mps\"}}"},
        {"S 0 17 0 1 - - - -",
            "{\"input\":\"SAMPLE\",\"time_us\":17,\"event\":{\"gpu\":0,\"lost\":true}}"},
        {"S 1 17 2 2 19140706304 - 0.73999999999999999 0 4:5 6:-",
            "{\"input\":\"SAMPLE\",\"answer\":1,\"time_us\":17,\"event\":{\"gpu\":2,"
            "\"faulty\":true,\"mem_used_bytes\":19140706304,\"utilisation\":0.73999999999999999,"
            "\"external_processes\":0,\"tasks\":[{\"task\":4,\"mem_used_bytes\":5},{\"task\":6}]}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const char *texts[] = {table[i].first, table[i].second};
        for (int form = 0; form < 2; form++) {
            struct input_line line;
            struct fault fault;
            if (read_text(texts[form], &line, &fault) < 0)
                fail_msg("%s: %s", texts[form], fault.text);
            char *text = as_text(&line);
            assert_string_equal(text, table[i].second);
            free(text);
            input_line_release(&line);
        }
    }
}

/* As before there were orders and charges: by age, and none. */
static void old_settings_mean_what_they_meant(void **state)
{
    struct input_line line;
    struct fault fault;
    assert_int_equal(read_text("{\"settings\":{\"policy\":\"magm\"}}", &line, &fault), 0);
    assert_int_equal(line.settings.order, ORDER_FIFO);
    assert_int_equal(line.settings.usage_half_life_us, 0);
    assert_null(line.settings.shares);
    input_line_release(&line);
}

static void settings_are_read_back(void **state)
{
    static const struct share_table shares = {.n_projects = 2,
        .projects = {{.name = "default", .shares = 1}, {.name = "vision", .shares = 3}},
        .n_users = 2,
        .users = {{.uid = 1000, .project = 1, .shares = 2}, {.uid = 4000000000u, .shares = 5}}};
    struct core_settings settings = core_settings_default();
    settings.policy = &policy_magm;
    settings.conditions.smact_max = 0.1 + 0.2;
    settings.window_us = 123456789;
    settings.order = ORDER_FIFO;
    settings.usage_half_life_us = 987654321;
    settings.usage_window_us = 604800000000;
    settings.shares = &shares;
    for (int begins = 0; begins < 2; begins++) {
        struct input_line line = {
            .kind = begins ? INPUT_LINE_BEGIN : INPUT_LINE_SETTINGS, .settings = settings};
        struct fault fault;
        char *text = as_text(&line);
        assert_int_equal(input_line_is_begin(span_of(text)), begins);
        assert_int_equal(read_text(text, &line, &fault), 0);
        assert_int_equal(line.kind, begins ? INPUT_LINE_BEGIN : INPUT_LINE_SETTINGS);
        assert_true(line.settings.conditions.smact_max == 0.1 + 0.2);
        assert_int_equal(line.settings.window_us, 123456789);
        assert_ptr_equal(line.settings.policy, &policy_magm);
        assert_int_equal(line.settings.order, ORDER_FIFO);
        assert_int_equal(line.settings.usage_half_life_us, 987654321);
        assert_int_equal(line.settings.usage_window_us, 604800000000);
        assert_non_null(line.settings.shares);
        assert_true(share_table_equal(line.settings.shares, &shares));
        input_line_release(&line);
        free(text);
    }
}

static void what_is_wrong_is_refused_in_words(void **state)
{
    static const struct {
        const char *text, *words;
    } table[] = {
        {"", "no line of recorded inputs"},
        {"garbage", "no line of recorded inputs"},
        {"{}", "no line of recorded inputs"},
        {"{\"input\":\"SAMP", "no JSON"},
        {"{\"input\":\"NOTHING\",\"time_us\":1,\"event\":{}}", "'NOTHING' is no event"},
        {"{\"input\":7,\"time_us\":1,\"event\":{}}", "is no event"},
        {"{\"input\":\"TICK\",\"event\":{}}", "time_us: missing"},
        {"{\"input\":\"TICK\",\"time_us\":9223372036854775807,\"event\":{}}", "time_us"},
        {"{\"input\":\"TICK\",\"time_us\":1}", "object"},
        {"{\"input\":\"TICK\",\"answer\":3,\"time_us\":1,\"event\":{}}", "answer"},
        {"{\"input\":\"CANCEL\",\"time_us\":1,\"task\":-1,\"event\":{}}", "task"},
        {"{\"input\":\"SAMPLE\",\"time_us\":1,\"event\":{\"gpu\":0,\"smact\":\"nan\"}}", "smact"},
        {"{\"forget\":\"all\"}", "forget"},
        {"{\"colloc_inputs\":3,\"settings\":{\"policy\":\"magm\"}}", "by a newer colloc"},
        {"{\"colloc_inputs\":2,\"settings\":{}}", "policy"},
        {"{\"settings\":{\"policy\":\"magm\",\"statistic\":1000}}", "statistic: out of range"},
        {"{\"settings\":{\"policy\":\"magm\",\"order\":2}}", "order: out of range"},
        {"{\"settings\":{\"policy\":\"magm\",\"shares\":{}}}", "shares: not understood"},
        {"{\"settings\":{\"policy\":\"magm\",\"shares\":{\"projects\":[[\"a\",0]]}}}", "shares"},
        {"{\"settings\":{\"policy\":\"magm\",\"shares\":{\"projects\":[[\"a\",1]],"
         "\"users\":[[7,1,1]]}}}",
            "shares"},
        {"colloc-inputs 2 {\"policy\":\"magm\"}", "no line of recorded inputs"},
        {"I 0 1 0 SAMPLE {\"gpu\":0}", "'SAMPLE' is no event"},
        {"S 0 1 0 0 nan - - -", "'nan' is no reading"},
        {"S 0 1 0 0 - - - - 7", "TASK:BYTES"},
        {"T 0 1 more", "more than a tick"},
        {"D 1", "task"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct input_line line;
        struct fault fault;
        assert_int_equal(read_text(table[i].text, &line, &fault), -EINVAL);
        if (!strstr(fault.text, table[i].words))
            fail_msg("%s: %s", table[i].text, fault.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_say_the_same),
        cmocka_unit_test(settings_are_read_back),
        cmocka_unit_test(old_settings_mean_what_they_meant),
        cmocka_unit_test(what_is_wrong_is_refused_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
