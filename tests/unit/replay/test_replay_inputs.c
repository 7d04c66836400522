/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole records. tests/data/inputs/restart was recorded by a daemon in the first form, and its
 * decisions are those of today. The argument is its folder.
 */
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
#include "replay/replay_inputs.h"

static const char *folder;

static char *recorded_text(void)
{
    char path[4096], *text = NULL;
    size_t size = 0, used = 0;
    snprintf(path, sizeof path, "%s/restart", folder);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    text = calloc(1, size = 1 << 16);
    used = fread(text, 1, size - 1, in);
    assert_true(used > 0 && used < size - 1);
    fclose(in);
    return text;
}

static int replay_text(const char *text, struct replay_result *result, struct fault *fault)
{
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(in);
    *fault = (struct fault){""};
    int r = replay_inputs(in, policy_find, fault, result);
    fclose(in);
    return r;
}

static void write_line(FILE *out, const struct input_line *line)
{
    if (line->kind == INPUT_LINE_BEGIN)
        input_line_write_begin(out, &line->settings);
    else if (line->kind == INPUT_LINE_SETTINGS)
        input_line_write_settings(out, &line->settings);
    else if (line->kind == INPUT_LINE_FORGET)
        input_line_write_forget(out, line->task);
    else
        input_line_write_event(out, line->kind, line->answer, &line->event, NULL);
}

/* The lines from number `from` on (0: the first) in the second form. */
static char *convert(const char *text, int from)
{
    char *converted;
    size_t size;
    FILE *out = open_memstream(&converted, &size);
    struct span rest = span_of(text), line_text;
    for (int i = 0; span_next_line(&rest, &line_text); i++) {
        struct input_line line;
        struct fault fault = {""};
        if (i < from) {
            fprintf(out, "%.*s\n", (int)line_text.size, line_text.at);
            continue;
        }
        assert_int_equal(input_line_read(line_text, policy_find, &fault, &line), 0);
        write_line(out, &line);
        input_line_release(&line);
    }
    fclose(out);
    return converted;
}

static void records_of_both_forms_give_the_same(void **state)
{
    char *recorded = recorded_text();
    const int from[] = {1000000, 0, 20}; /* all of the first form, none, a file that changes */
    for (int i = 0; i < 3; i++) {
        struct replay_result result;
        struct fault fault;
        char *text = convert(recorded, from[i]);
        assert_int_equal(replay_text(text, &result, &fault), 0);
        assert_string_equal(result.difference, "");
        assert_int_equal(result.starts, 1);
        assert_int_equal(result.inputs, 27);
        assert_int_equal(result.samples, 21);
        assert_int_equal(result.decisions, 3);
        assert_false(result.is_cut);
        free(text);
    }
    free(recorded);
}

/* The text with `old` replaced by `new`, once. */
static char *change(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    assert_non_null(at);
    size_t before = (size_t)(at - text), size = strlen(text) + strlen(new) + 1;
    char *changed = malloc(size);
    snprintf(changed, size, "%.*s%s%s", (int)before, text, new, at + strlen(old));
    return changed;
}

static void other_decisions_are_found(void **state)
{
    static const struct {
        const char *old, *new, *words;
    } table[] = {
        {"\"decision\":\"END\",\"time_us\":", "\"decision\":\"END\",\"time_us\":1", "END"},
        {"\"decision\":\"END\"", "\"decision\":\"EXPIRE\"", "EXPIRE"},
        {"\"task\":9,\"event\":{\"state\"", "\"task\":8,\"event\":{\"state\"", "\"task\":8"},
        {"\"state\":\"cancelled\"", "\"state\":\"failed\"", "decided now: {\"decision\":\"END\""},
        {"\"state\":\"cancelled\"", "\"state\":\"cancelled\",\"new\":1", "\"new\":1"},
        {"{\"decision\"", "{\"forget\":99}\n{\"decision\"", "recorded: nothing; decided now: {"},
        {"{\"forget\":9}", "{\"decision\":\"EXPIRE\",\"time_us\":1,\"event\":{}}\n{\"forget\":9}",
            "decided now: nothing"},
        {"\"input\":\"CANCEL\"", "\"input\":\"CANCEL\",\"answer\":1", "recorded: answer 1"},
    };
    char *recorded = recorded_text(), *text = convert(recorded, 0);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct replay_result result;
        struct fault fault;
        char *changed = change(text, table[i].old, table[i].new);
        assert_int_equal(replay_text(changed, &result, &fault), REPLAY_DIFFERS);
        if (!strstr(result.difference, table[i].words))
            fail_msg("%s: %s", table[i].new, result.difference);
        free(changed);
    }
    free(text);
    free(recorded);
}

static void a_cut_line_does_not_count(void **state)
{
    char *recorded = recorded_text(), *text = convert(recorded, 0), *joined;
    struct replay_result result;
    struct fault fault;
    assert_true(asprintf(&joined, "%s{\"input\":\"SAMP", text) > 0);
    assert_int_equal(replay_text(joined, &result, &fault), 0);
    assert_true(result.is_cut);
    free(joined);
    assert_true(asprintf(&joined, "%s{\"input\":\"SAMP\n%s", recorded, text) > 0);
    assert_int_equal(replay_text(joined, &result, &fault), 0);
    assert_true(result.is_cut);
    assert_int_equal(result.starts, 2);
    free(joined);
    assert_true(asprintf(&joined, "%s{\"input\":\"SAMP\n{\"forget\":1}\n", text) > 0);
    assert_int_equal(replay_text(joined, &result, &fault), -EINVAL);
    assert_non_null(strstr(fault.text, "line "));
    free(joined);
    free(text);
    free(recorded);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_both_forms_give_the_same),
        cmocka_unit_test(other_decisions_are_found),
        cmocka_unit_test(a_cut_line_does_not_count),
    };
    folder = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
