/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the core's settings: each row is whole, and its names are no other's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "core/setting_table.h"
#include "taskfile/option.h"

static void rows_are_whole(void **state)
{
    for (int i = 0; i < CORE_SETTINGS; i++) {
        const struct core_setting *setting = &core_setting_table[i];
        assert_non_null(setting->key);
        assert_int_equal(!setting->name, !setting->argument);
        assert_int_equal(!setting->name, !setting->help);
        if (setting->slurm_help)
            assert_non_null(setting->name);
        if (setting->name)
            assert_non_null(setting->kind->expects);
    }
}

static void no_two_rows_share_a_name_or_a_member(void **state)
{
    for (int i = 0; i < CORE_SETTINGS; i++)
        for (int k = 0; k < i; k++) {
            const struct core_setting *a = &core_setting_table[i], *b = &core_setting_table[k];
            assert_string_not_equal(a->key, b->key);
            assert_true(a->offset >= b->offset + b->size || b->offset >= a->offset + a->size);
            if (a->name && b->name)
                assert_string_not_equal(a->name, b->name);
        }
}

/* A default that is printed in --help has to be one that a user can write. */
static void defaults_are_values(void **state)
{
    struct core_settings settings = core_settings_default(), read = settings;
    for (int i = 0; i < CORE_SETTINGS; i++) {
        const struct core_setting *setting = &core_setting_table[i];
        const void *at = core_setting_at(setting, &settings);
        void *read_at = core_setting_at(setting, &read);
        char text[64];
        if (!setting->name)
            continue;
        setting_format(setting->kind, at, text, sizeof text);
        memset(read_at, 0x55, setting->size);
        assert_int_equal(setting_parse(setting->kind, text, read_at, setting->size), 0);
        assert_memory_equal(at, read_at, setting->size);
    }
}

static void scenarios_find_settings_by_their_names(void **state)
{
    assert_ptr_equal(core_setting_find("margin"), &core_setting_table[CORE_SETTING_MARGIN]);
    assert_ptr_equal(
        core_setting_find("can-suspend"), &core_setting_table[CORE_SETTING_CAN_SUSPEND]);
    assert_null(core_setting_find("suspend"));
    assert_null(core_setting_find("sample_valid_us"));
    assert_null(core_setting_find(""));
}

/* The defaults that `colloc help simulate` prints are those of the core. */
static void the_simulators_defaults_are_the_cores(void **state)
{
    static const char *const orders[] = {"fair", "fifo", NULL};
    static const char *const recovery_rules[] = {"drain", "stop-queue", NULL};
    static const struct {
        enum core_setting_id id;
        struct option_spec option;
    } rows[] = {
#define SIMULATE_OPTION(id, ...) {CORE_SETTING_##id, {__VA_ARGS__}},
#include "core/settings.def"
    };
    int n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct core_setting *setting = &core_setting_table[rows[i].id];
        struct core_settings settings = core_settings_default(), set = settings;
        if (!rows[i].option.default_text)
            continue;
        core_setting_put_number(setting, strtod(rows[i].option.default_text, NULL), &set);
        assert_memory_equal(
            core_setting_at(setting, &settings), core_setting_at(setting, &set), setting->size);
        n++;
    }
    assert_true(n >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(no_two_rows_share_a_name_or_a_member),
        cmocka_unit_test(defaults_are_values),
        cmocka_unit_test(scenarios_find_settings_by_their_names),
        cmocka_unit_test(the_simulators_defaults_are_the_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
