/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of colloc-slurm: the file, then the command line, and their mistakes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "core/setting_table.h"
#include "policy/policies.h"
#include "slurm/slurm_config.h"

static struct slurm_config config;
static struct fault fault;

static int read_words(const char *one, const char *two)
{
    char first[256], second[256], name[] = "colloc-slurm";
    snprintf(first, sizeof first, "%s", one ? one : "");
    snprintf(second, sizeof second, "%s", two ? two : "");
    char *argv[] = {name, first, second, NULL};
    fault = (struct fault){0};
    return slurm_config_read(&config, one ? two ? 3 : 2 : 1, argv, &fault);
}

static void the_command_line_is_stronger_than_the_file(void **state)
{
    char path[] = "/tmp/slurm-config-XXXXXX", argument[64];
    int fd = mkstemp(path);
    static const char text[] = "# colloc\nintake-partition: a\nrun-partition: b\n"
                               "shards-per-gpu: 40\npolicy: predictive\npoll: 2s\n";
    assert_int_equal(write(fd, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(fd);
    snprintf(argument, sizeof argument, "--config=%s", path);
    assert_int_equal(read_words(argument, "--policy=magm"), 0);
    assert_string_equal(config.intake_partition, "a");
    assert_string_equal(config.run_partition, "b");
    assert_ptr_equal(config.core.policy, &policy_magm);
    assert_true(config.poll_us == 2 * SECOND_US);
    assert_true(config.gpu_memory_bytes == 40 * GIB);
    assert_int_equal(read_words(argument, "--check"), SLURM_CONFIG_CHECK);
    FILE *file = fopen(path, "a");
    fputs("polcy: magm\n", file);
    fclose(file);
    assert_int_equal(read_words(argument, NULL), -EINVAL);
    assert_non_null(strstr(fault.text, ":7: polcy: unknown setting"));
    unlink(path);
}

static void mistakes_are_named(void **state)
{
    static const char *const mistakes[][2] = {{"--policy=best", "policy"},
        {"--shards-per-gpu=0", "shards-per-gpu"}, {"--run-partition=gpu", "are both gpu"},
        {"--estimator=guess", "guess"}, {"--poll=never", "poll"}, {"now", "only options"},
        {"--intake=x", "intake"}, {"--wake-file=wake", "absolute"},
        {"--config=/nonexistent/x.yaml", "/nonexistent/x.yaml"}};
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        assert_true(read_words(mistakes[i][0], NULL) < 0);
        assert_non_null(strstr(fault.text, mistakes[i][1]));
    }
    assert_int_equal(read_words("--help", NULL), SLURM_CONFIG_HELP);
    assert_int_equal(read_words("--version", NULL), SLURM_CONFIG_VERSION);
}

static void every_setting_is_printed_with_its_default(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    slurm_config_print(out);
    fclose(out);
    assert_non_null(strstr(text, "--intake-partition=NAME"));
    assert_non_null(strstr(text, "(default: gpu-run)"));
    assert_non_null(strstr(text, "placement policy: "));
    assert_null(strstr(text, "{choices}"));
    for (int i = 0; i < CORE_SETTINGS; i++) {
        char heading[64];
        snprintf(heading, sizeof heading, "  --%s=", core_setting_table[i].name);
        if (core_setting_table[i].slurm_help)
            assert_non_null(strstr(text, heading));
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_command_line_is_stronger_than_the_file),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(every_setting_is_printed_with_its_default)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
