/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of collocd from a command line and from a file: spellings, order, hints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "daemon/config.h"

static struct config config;
static struct fault fault;

static char earlier_mistakes[2048];

static void note_mistake(const char *text)
{
    assert_true(strlen(earlier_mistakes) + strlen(text) + 2 < sizeof earlier_mistakes);
    strcat(strcat(earlier_mistakes, text), "\n");
}

#define READ(...) read_words((const char *[]){"collocd", __VA_ARGS__, NULL})

static int read_words(const char **words)
{
    int count = 0;
    while (words[count])
        count++;
    fault.text[0] = '\0';
    config_defaults(&config);
    earlier_mistakes[0] = '\0';
    return config_read_arguments(&config, count, (char **)words, note_mistake, &fault);
}

/* A configuration file with this text, in memory, so that a test that fails leaves none behind. The
 * path stays valid until the next call. */
static const char *write_file(const char *text)
{
    static char path[32];
    static int fd = -1;
    if (fd >= 0)
        close(fd);
    fd = memfd_create("config", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* MPS has neither suspension nor the filter. */
static void tasks_share_by_what_the_other_settings_need(void **state)
{
    (void)state;
    assert_int_equal(READ("--slots=no"), 0);
    assert_int_equal(config.sharing, SHARING_AUTO);
    assert_int_equal(READ("--slots=yes"), 0);
    assert_int_equal(config.sharing, SHARING_STREAMS);
    assert_int_equal(READ("--preempt=yes", "--policy=las"), 0);
    assert_int_equal(config.sharing, SHARING_STREAMS);
    assert_int_equal(READ("--suspend-unused-after=30m"), 0);
    assert_int_equal(config.sharing, SHARING_STREAMS);
    assert_int_equal(READ("--make-room=yes"), 0);
    assert_int_equal(config.sharing, SHARING_STREAMS);
    assert_int_equal(READ("--gpu-filter=yes", "--suspend=no"), 0);
    assert_int_equal(config.sharing, SHARING_STREAMS);
    assert_int_equal(READ("--slots=yes", "--sharing=mps"), 0);
    assert_int_equal(config.sharing, SHARING_MPS);
}

static void values_behind_equals_or_as_the_next_word(void **state)
{
    assert_int_equal(READ("--margin=1GiB", "--window", "30s", "--mps-memory-limit", "no"), 0);
    assert_true(config.core.conditions.margin_bytes == GIB);
    assert_true(config.core.window_us == 30 * SECOND_US);
    assert_false(config.core.mps_mem_limit);
    assert_int_equal(READ("--gpus=", "--dcgmi", "--odd"), 0);
    assert_string_equal(config.gpus, "");
    assert_string_equal(config.dcgmi, "--odd");
}

static void preemption_excludes_slots(void **state)
{
    assert_int_equal(READ("--preempt=yes", "--policy=magm"), 0);
    assert_true(config.core.preempt);
    assert_int_equal(READ("--preempt=yes", "--policy=las"), 0);
    assert_int_equal(READ("--preempt=yes", "--policy=las", "--slots=yes"), -EINVAL);
    assert_non_null(strstr(fault.text, "only one of the two"));
    assert_int_equal(READ("--policy=magm"), 0);
    assert_false(config.core.preempt);
}

/* The queue stops for recovering tasks, where there are some, and the queue is the only way to
 * start. */
static void stop_queue_excludes_what_contradicts_it(void **state)
{
    assert_int_equal(READ("--recovery=stop-queue", "--decision-delay=30s"), 0);
    assert_int_equal(config.core.recovery, RECOVERY_STOP_QUEUE);
    assert_int_equal(config.core.decision_delay_us, 30 * SECOND_US);
    assert_int_equal(READ("--recovery=stop-queue", "--policy=exclusive"), -EINVAL);
    assert_non_null(strstr(fault.text, "the policy exclusive shares no GPU"));
    assert_int_equal(READ("--recovery=stop-queue", "--recoveries=0"), -EINVAL);
    assert_non_null(strstr(fault.text, "with recoveries 0 no task recovers"));
    assert_int_equal(READ("--recovery=stop-queue", "--preempt=yes", "--policy=las"), -EINVAL);
    assert_non_null(strstr(fault.text, "with preempt"));
    assert_int_equal(READ("--decision-delay=30s", "--preempt=yes", "--policy=las"), -EINVAL);
    assert_non_null(strstr(fault.text, "decision-delay: with preempt"));
    assert_int_equal(READ("--recovery=stop"), -EINVAL);
    assert_non_null(strstr(fault.text, "drain or stop-queue"));
    assert_int_equal(READ("--recovery=drain", "--policy=exclusive"), 0);
    assert_int_equal(config.core.decision_delay_us, 0);
}

static void the_carrier_needs_the_library(void **state)
{
    assert_int_equal(READ("--carrier=yes"), 0);
    assert_true(config.core.carries_mps);
    const char *const without[] = {"--carrier=no", "--preload=no"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        assert_int_equal(READ(without[i]), 0);
        assert_false(config.core.carries_mps);
    }
}

/* On x86_64, where the library counts calls. */
static void the_carrier_is_on_by_default(void **state)
{
    assert_int_equal(READ("--state-dir=/tmp/state"), 0);
#if defined(__x86_64__)
    assert_true(config.carrier && config.core.carries_mps);
#else
    assert_false(config.carrier || config.core.carries_mps);
#endif
}

static void the_state_dir_is_absolute(void **state)
{
    assert_int_equal(READ("--state-dir=/tmp/state"), 0);
    assert_int_equal(READ("--state-dir=state"), -EINVAL);
    assert_string_equal(fault.text, "state-dir: 'state': give an absolute path");
}

static void a_later_option_wins(void **state)
{
    assert_int_equal(READ("--recoveries=1", "--recoveries=7"), 0);
    assert_int_equal(config.core.recoveries_max, 7);
}

static void a_file_reports_each_mistake_with_its_line(void **state)
{
    const char *path = write_file(
        "policy: best\nmargin: 3GiB\n\nmargins: 1GiB\nwindow: 0\nmin-free: -1\n");
    char place[64];
    assert_int_equal(READ("--config", path), -EINVAL);
    static const struct {
        int line;
        const char *words;
    } expected[] = {{1, "policy: invalid value 'best'"},
        {4, "margins: unknown setting: did you mean margin?"}, {5, "window: invalid value '0'"}};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        snprintf(place, sizeof place, "%s:%d: %s", path, expected[i].line, expected[i].words);
        assert_non_null(strstr(earlier_mistakes, place));
    }
    snprintf(place, sizeof place, "%s:6: min-free: invalid value '-1'", path);
    assert_non_null(strstr(fault.text, place));
}

/* A key without a setting, of whatever length, has a value as any other. */
static void a_key_that_is_no_setting_leaves_the_next_lines(void **state)
{
    static const char long_key[] =
        "x123456789x123456789x123456789x123456789x123456789x123456789x123";
    char text[256], place[128];
    assert_int_equal(strlen(long_key), 64);
    snprintf(text, sizeof text, "%s: 3GiB\n'': 1\nmargin: 4GiB\nwindow: 0\n", long_key);
    const char *path = write_file(text);
    assert_int_equal(READ("--config", path), -EINVAL);
    snprintf(place, sizeof place, "%s:1: '%.40s': unknown setting", path, long_key);
    assert_non_null(strstr(earlier_mistakes, place));
    snprintf(place, sizeof place, "%s:2: '': unknown setting", path);
    assert_non_null(strstr(earlier_mistakes, place));
    assert_null(strstr(earlier_mistakes, ":3: "));
    assert_int_equal(config.core.conditions.margin_bytes, 4 * GIB);
    snprintf(place, sizeof place, "%s:4: window: invalid value '0'", path);
    assert_non_null(strstr(fault.text, place));
    snprintf(text, sizeof text, "%s:\n  margin: 4GiB\n", long_key);
    path = write_file(text);
    assert_int_equal(READ("--config", path), -EINVAL);
    assert_non_null(strstr(fault.text, ":2: setting: expected one value on the same line"));
}

/* Instructions append a line to the file: a second time must not keep the daemon from its start. */
static void the_last_line_of_a_setting_counts(void **state)
{
    const char *path = write_file("margin: 3GiB\nrecoveries: 1\nmargin: 4GiB\n");
    assert_int_equal(READ("--config", path), 0);
    assert_int_equal(config.core.conditions.margin_bytes, 4 * GIB);
}

static void a_file_without_form_ends_at_its_mistake(void **state)
{
    const char *path = write_file("policy: best\nmargin: *other\nmargins: 1\n");
    assert_int_equal(READ("--config", path), -EINVAL);
    assert_non_null(strstr(earlier_mistakes, ":1: policy: "));
    assert_non_null(strstr(fault.text, ":2: aliases are not supported"));
}

/* The file is YAML: what other YAML files have is a value where it has a meaning. */
static void lists_and_booleans_of_yaml(void **state)
{
    const char *path = write_file(
        "operators: [ada, 'bob']\ngpus:\n  - 0\n  - GPU-1\npreempt: true\n"
        "suspend: Off\nmps-gpus: []\ndrain: [3]\n");
    assert_int_equal(READ("--config", path), 0);
    assert_string_equal(config.operators, "ada,bob");
    assert_true(config_is_operator(&config, "bob"));
    assert_string_equal(config.gpus, "0,GPU-1");
    assert_string_equal(config.drain, "3");
    assert_string_equal(config.mps_gpus, "");
    assert_true(config.core.preempt);
    assert_false(config.core.can_suspend);
    path = write_file("suspend: [yes]\nmargin: [1, 2]\noperators: [[ada]]\nwindow: 3s\n");
    assert_int_equal(READ("--config", path), -EINVAL);
    assert_non_null(
        strstr(earlier_mistakes, ":1: suspend: a list is no value of it: give yes or no"));
    assert_non_null(strstr(earlier_mistakes, ":2: margin: a list is no value of it: give a size"));
    assert_non_null(strstr(fault.text, ":3: a list is not expected here"));
    assert_int_equal(READ("--config", write_file("- margin\n")), -EINVAL);
    assert_non_null(strstr(fault.text, ":1: a list is not expected here"));
    assert_int_equal(READ("--config", write_file("placement:\n  margin: 4GiB\n")), -EINVAL);
    assert_non_null(strstr(fault.text, "the file has no sections"));
    char text[3000] = "operators: [";
    for (int i = 0; i < 200; i++)
        strcat(text, "longname-x, ");
    strcat(text, "ada]\n");
    assert_int_equal(READ("--config", write_file(text)), -EINVAL);
    assert_non_null(strstr(fault.text, "operators: the list is too long"));
}

static void the_man_page_quotes_what_has_blanks(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    config_print(out, CONFIG_AS_ROFF);
    fclose(out);
    assert_non_null(strstr(text, "\n.BR \"/var/lib/colloc\" \"; a change needs a restart).\"\n"));
    assert_non_null(strstr(text, "\n.BR \"magm\" \").\"\n"));
    free(text);
}

/* A row of core/settings.def that has a name has its line in config.c. */
static void each_setting_of_the_core_can_be_set(void **state)
{
    char *text = NULL, heading[64];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    config_print(out, CONFIG_AS_HELP);
    fclose(out);
    for (int i = 0; i < CORE_SETTINGS; i++) {
        const struct core_setting *setting = &core_setting_table[i];
        if (!setting->name)
            continue;
        snprintf(heading, sizeof heading, "  --%s=%s\n", setting->name, setting->argument);
        assert_non_null(strstr(text, heading));
    }
    free(text);
}

static void the_command_line_beats_the_file_wherever_it_is_named(void **state)
{
    const char *path = write_file("margin: 3GiB\nrequeues: 9\n");
    assert_int_equal(READ("--margin=1GiB", "--config", path), 0);
    assert_true(config.core.conditions.margin_bytes == GIB);
    assert_int_equal(config.core.requeues_max, 9);
}

static void named_answers(void **state)
{
    assert_int_equal(READ("--check"), CONFIG_CHECK);
    assert_int_equal(READ("--margin=1GiB", "--check"), CONFIG_CHECK);
    assert_int_equal(READ("--nonsense", "--help"), CONFIG_HELP);
    assert_int_equal(READ("-h"), CONFIG_HELP);
    assert_int_equal(READ("--version"), CONFIG_VERSION);
}

static void mistakes_are_refused_with_a_hint(void **state)
{
    const struct {
        const char *word, *text;
    } cases[] = {
        {"--settle-mx=3s", "--settle-mx: no such option; did you mean --settle-max?"},
        {"--polciy=lug", "--polciy: no such option; did you mean --policy?"},
        {"--confg=x", "--confg: no such option; did you mean --config?"},
        {"--xyzzy=1", "--xyzzy: no such option"},
        {"--margin", "--margin: needs a value (SIZE)"},
        {"--config", "--config: needs a value (FILE)"},
        {"--check=no", "--check: takes no value"},
        {"magm",
            "magm: unexpected argument: collocd takes only options (`collocd --help` lists them)"},
        {"--", "--: unexpected argument: collocd takes only options (`collocd --help` lists them)"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(READ(cases[i].word), -EINVAL);
        assert_string_equal(fault.text, cases[i].text);
    }
    assert_int_equal(READ("--check", "--margin=lots"), -EINVAL);
    assert_non_null(strstr(fault.text, "'lots'"));
}

static void mistakes_in_a_file_name_the_line(void **state)
{
    const char *path = write_file("margin: 3GiB\nsettle_max: 3s\n");
    char text[128];
    snprintf(
        text, sizeof text, "%s:2: settle_max: unknown setting: did you mean settle-max?", path);
    assert_int_equal(READ("--config", path), -EINVAL);
    assert_string_equal(fault.text, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_share_by_what_the_other_settings_need),
        cmocka_unit_test(values_behind_equals_or_as_the_next_word),
        cmocka_unit_test(preemption_excludes_slots),
        cmocka_unit_test(stop_queue_excludes_what_contradicts_it),
        cmocka_unit_test(the_carrier_needs_the_library),
        cmocka_unit_test(the_carrier_is_on_by_default),
        cmocka_unit_test(the_state_dir_is_absolute),
        cmocka_unit_test(a_later_option_wins),
        cmocka_unit_test(a_file_reports_each_mistake_with_its_line),
        cmocka_unit_test(a_key_that_is_no_setting_leaves_the_next_lines),
        cmocka_unit_test(the_last_line_of_a_setting_counts),
        cmocka_unit_test(a_file_without_form_ends_at_its_mistake),
        cmocka_unit_test(lists_and_booleans_of_yaml),
        cmocka_unit_test(the_man_page_quotes_what_has_blanks),
        cmocka_unit_test(each_setting_of_the_core_can_be_set),
        cmocka_unit_test(the_command_line_beats_the_file_wherever_it_is_named),
        cmocka_unit_test(named_answers),
        cmocka_unit_test(mistakes_are_refused_with_a_hint),
        cmocka_unit_test(mistakes_in_a_file_name_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
