/* SPDX-License-Identifier: Apache-2.0 */
/* DCGM: the table from any pieces; a child that dies, falls silent, is refused or is not there; and
 * colloc-dcgm, before dcgmi. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "gpu/dcgm.h"
#include "gpu/program.h"

/* ---- the table ---- */

struct rows {
    struct dcgm_row row[1024];
    size_t count;
};

static void read_rows(const char *text, size_t size, size_t most, struct rows *rows)
{
    static struct dcgm_lines lines;
    struct dcgm_table table = {0};

    lines = (struct dcgm_lines){0};
    rows->count = 0;
    for (size_t at = 0; at < size; at += most) {
        struct span piece = {text + at, size - at < most ? size - at : most}, line;
        while (dcgm_lines_next(&lines, &piece, &line))
            if (dcgm_table_take(&table, line, &rows->row[rows->count])) {
                rows->count++;
                assert_true(rows->count < 1024);
            }
    }
}

static void read_rows_of(const char *folder, const char *name, size_t most, struct rows *rows)
{
    char path[4096], *text;
    size_t size;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(file_read(path, 1 << 20, NULL, &text, &size), 0);
    read_rows(text, size, most, rows);
    free(text);
}

static void assert_near(struct reading r, double expected)
{
    assert_true(r.valid);
    assert_true(fabs(r.value - expected) < 1e-9 * (1 + fabs(expected)));
}

static void test_all_columns(void **state)
{
    static struct rows rows;

    read_rows_of(getenv("DCGMI_DATA"), "dmon.txt", 1 << 20, &rows);
    assert_int_equal(rows.count, 4);
    const struct reading *first = rows.row[0].field;
    const double expected[DCGM_FIELDS] = {0.97, 0.912, 0.634, 0.281, 0.118, 0.402, 0, 0.203, 0.051,
        104857600, 2097152, 0, 0, 251.25, 123456.789};
    for (int i = 0; i < DCGM_FIELDS; i++)
        assert_near(first[i], expected[i]);
    assert_int_equal(rows.row[1].entity.number, 1);
    assert_near(rows.row[2].field[DCGM_GRACT], 1); /* 1.001 is rounding */
}

static void test_not_available_is_not_idle(void **state)
{
    static struct rows rows;

    read_rows_of(getenv("DCGMI_DATA"), "dmon.txt", 1 << 20, &rows);
    assert_int_equal(rows.row[3].entity.number, 1);
    assert_false(rows.row[3].field[DCGM_SMACT].valid);
    assert_false(rows.row[3].field[DCGM_UTILISATION].valid);
    assert_near(rows.row[3].field[DCGM_POWER], 51);
}

/* Half lines, other entities and other GPUs are no rows; what DCGM prints for "unknown" is no
 * reading. */
static void test_other_order_and_torn_lines(void **state)
{
    static struct rows rows;

    read_rows_of(getenv("DCGMI_DATA"), "other_order.txt", 1 << 20, &rows);
    assert_int_equal(rows.count, 2);
    assert_int_equal(rows.row[0].entity.number, 3);
    assert_near(rows.row[0].field[DCGM_SMACT], 0.25);
    assert_near(rows.row[0].field[DCGM_UTILISATION], 0.5);
    assert_near(rows.row[0].field[DCGM_POWER], 70.5);
    assert_false(rows.row[0].field[DCGM_DRAM].valid);
    for (int i = 0; i < DCGM_FIELDS; i++)
        assert_false(rows.row[1].field[i].valid);
}

static void test_pieces_do_not_matter(void **state)
{
    static struct rows whole, pieces;

    read_rows_of(getenv("DCGMI_DATA"), "dmon.txt", 1 << 20, &whole);
    for (size_t most = 1; most < 40; most++) {
        read_rows_of(getenv("DCGMI_DATA"), "dmon.txt", most, &pieces);
        assert_int_equal(pieces.count, whole.count);
        assert_memory_equal(pieces.row, whole.row, whole.count * sizeof whole.row[0]);
    }
}

static void test_no_row_before_a_header_or_of_too_long_lines(void **state)
{
    static struct rows rows;
    static char text[3 * DCGM_LINE_MAX];
    static const char head[] = "GPU 0 1 2\n#Entity SMACT GPUTL\nGPU 0 ";
    static const char tail[] = " 50\nGPU 1 0.5 50\n";

    memset(text, '1', sizeof text);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + sizeof text - (sizeof tail - 1), tail, sizeof tail - 1);
    read_rows(text, sizeof text, 100, &rows);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.row[0].entity.number, 1);
}

/* Real output, if there is a dcgmi: every line is a row, GPU 0 is the one that works. */
static void test_real_output(void **state)
{
    static struct rows rows;
    const char *data = getenv("COLLOC_EVAL_DATA");
    char folder[2048];
    size_t files = 0;

    if (!data)
        skip();
    snprintf(folder, sizeof folder, "%s/pmdlt", data);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *end = strstr(entry->d_name, ".dcgmi.txt");
        if (!end)
            continue;
        read_rows_of(folder, entry->d_name, 777, &rows);
        assert_true(rows.count >= 10 && rows.count % 5 == 0);
        for (size_t i = 0; i < rows.count; i++) {
            assert_int_equal(rows.row[i].entity.number, i % 5);
            for (int field = DCGM_GRACT; field <= DCGM_DRAM; field++)
                assert_true(rows.row[i].field[field].valid);
            assert_false(rows.row[i].field[DCGM_POWER].valid);
        }
        files++;
    }
    closedir(dir);
    assert_true(files > 0);
}

static void test_an_energy_of_0_is_not_known(void **state)
{
    static struct rows rows;
    static const char text[] = "#Entity TOTEC SMACT\nGPU 0 0 0.000\nGPU 0 1000 0.000\n";

    read_rows(text, sizeof text - 1, 100, &rows);
    assert_int_equal(rows.count, 2);
    assert_false(rows.row[0].field[DCGM_ENERGY].valid);
    assert_near(rows.row[0].field[DCGM_SMACT], 0);
    assert_near(rows.row[1].field[DCGM_ENERGY], 1);
}

static void test_list(void **state)
{
    char path[4096], *text;
    size_t size;
    struct dcgm_list list = {0};
    struct span rest, line, uuid;
    unsigned gpus[2];
    size_t count = 0;

    snprintf(path, sizeof path, "%s/discovery.txt", getenv("DCGMI_DATA"));
    assert_int_equal(file_read(path, 1 << 20, NULL, &text, &size), 0);
    rest = (struct span){text, size};
    while (span_next_line(&rest, &line))
        if (dcgm_list_take(&list, line, &uuid)) {
            assert_true(count < 2 && span_is(uuid, count ? "GPU-0" : "GPU-1"));
            gpus[count++] = list.gpu;
        }
    free(text);
    assert_int_equal(count, 2);
    assert_int_equal(gpus[0], 0);
    assert_int_equal(gpus[1], 5);
}

/* Compute instances, and rows that are not whole, are left out. */
static void test_tree(void **state)
{
    static const struct {
        const char *card;
        struct dcgm_instance instance;
    } expected[] = {{"GPU-1", {0, 1, 3}}, {"GPU-1", {0, 2, 11}}, {"GPU-0", {1, 2, 111}}};
    char path[4096], *text;
    size_t size, count = 0;
    struct dcgm_tree tree = {0};
    struct dcgm_instance instance;
    struct span line;

    snprintf(path, sizeof path, "%s/instances.txt", getenv("DCGMI_DATA"));
    assert_int_equal(file_read(path, 1 << 20, NULL, &text, &size), 0);
    struct span rest = {text, size};
    while (span_next_line(&rest, &line))
        if (dcgm_tree_take(&tree, line, &instance)) {
            assert_true(count < 3);
            assert_string_equal(tree.card, expected[count].card);
            assert_memory_equal(&instance, &expected[count].instance, sizeof instance);
            count++;
        }
    free(text);
    assert_int_equal(count, 3);
}

/* ---- the program ---- */

#define PERIOD_US (100 * MS_US)

#define FIELD_IDS "203,1001,1002,1003,1004,1005,1006,1007,1008,1009,1010,1011,1012,155,156"

/* A dcgmi that is a shell script, and maybe a colloc-dcgm. */
struct house {
    char folder[64], program[128], helper[128];
    struct dcgm *dcgm;
    int64_t now_us;
};

static void write_text(const char *path, const char *text, mode_t mode)
{
    assert_int_equal(file_write_atomic(path, text, strlen(text), mode), 0);
}

static void write_helper(struct house *h, const char *script)
{
    char text[4096];

    snprintf(h->helper, sizeof h->helper, "%s/colloc-dcgm", h->folder);
    snprintf(text, sizeof text, "#!/bin/sh\ncd %s\necho helper \"$@\" >> arguments\n%s\n",
        h->folder, script);
    write_text(h->helper, text, 0700);
}

static struct house house_with_helper(const char *helper, const char *dmon)
{
    struct house h = {.folder = "/tmp/colloc-dcgm-XXXXXX", .now_us = 1000 * SECOND_US};
    char script[4096];

    assert_non_null(mkdtemp(h.folder));
    if (helper)
        write_helper(&h, helper);
    snprintf(h.program, sizeof h.program, "%s/dcgmi", h.folder);
    snprintf(script, sizeof script,
        "#!/bin/sh\ncd %s\ncase $1$2 in discovery-l) exec cat %s/discovery.txt;;\n"
        "discovery-c) test -e no-instances || exec cat %s/instances.txt; exit 1;; esac\n"
        "echo \"$@\" >> arguments\n%s\n",
        h.folder, getenv("DCGMI_DATA"), getenv("DCGMI_DATA"), dmon);
    write_text(h.program, script, 0700);
    h.dcgm = dcgm_create(h.helper, h.program, PERIOD_US);
    assert_non_null(h.dcgm);
    dcgm_add_gpu(h.dcgm, 0, "GPU-0");
    dcgm_add_gpu(h.dcgm, 1, "GPU-1");
    return h;
}

static struct house house_of(const char *dmon)
{
    return house_with_helper(NULL, dmon);
}

static void house_end(struct house *h)
{
    char command[128];

    dcgm_destroy(h->dcgm);
    snprintf(command, sizeof command, "rm -r %s", h->folder);
    assert_int_equal(system(command), 0);
}

/* Real time passes until the program has done its part; the clock that dcgm sees does so only
 * between tests' steps. */
static bool turn_until(struct house *h, bool (*holds)(struct house *h))
{
    int64_t end_us = clock_monotonic_us() + 20 * SECOND_US;

    do {
        dcgm_poll(h->dcgm, h->now_us);
        if (holds(h))
            return true;
        usleep(1000);
    } while (clock_monotonic_us() < end_us);
    return false;
}

static const struct dcgm_row *latest(struct house *h, size_t gpu)
{
    int64_t at_us;
    return dcgm_latest(h->dcgm, gpu, h->now_us, &at_us);
}

static bool both_are_told(struct house *h)
{
    return latest(h, 0) && latest(h, 1);
}

static bool is_told_anew(struct house *h)
{
    int64_t at_us = 0;
    return dcgm_latest(h->dcgm, 0, h->now_us, &at_us) && at_us == h->now_us;
}

static bool has_ended(struct house *h)
{
    return strstr(dcgm_missing_reason(h->dcgm, 0), "has ended") != NULL;
}

static size_t starts(struct house *h)
{
    char path[160], *text;
    size_t size, lines = 0;

    snprintf(path, sizeof path, "%s/arguments", h->folder);
    if (file_read(path, 1 << 16, NULL, &text, &size) < 0)
        return 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    free(text);
    return lines;
}

static void assert_arguments(const struct house *h, const char *expected)
{
    char path[160], *text;
    size_t size;

    snprintf(path, sizeof path, "%s/arguments", h->folder);
    assert_int_equal(file_read(path, 1 << 16, NULL, &text, &size), 0);
    assert_string_equal(text, expected);
    free(text);
}

#define HEADER   "#Entity SMACT GPUTL\\nID\\n"
#define TWO_ROWS HEADER "GPU 5 0.0 0\\nGPU 0 0.0 0\\nGPU 5 0.500 50\\nGPU 0 0.100 10\\n"

static void test_numbers_are_mapped_by_uuid_and_age(void **state)
{
    struct house h = house_of("printf '" TWO_ROWS "GPU 5 0.7'; exec sleep 1000");

    assert_null(latest(&h, 0));
    assert_true(*dcgm_missing_reason(h.dcgm, 0));
    assert_true(turn_until(&h, both_are_told));
    assert_near(latest(&h, 0)->field[DCGM_SMACT], 0.5); /* the half line does not count */
    assert_near(latest(&h, 1)->field[DCGM_SMACT], 0.1);
    assert_arguments(&h, "dmon -e " FIELD_IDS " -d 100 -i 5,0\n");

    h.now_us += PERIOD_US;
    dcgm_poll(h.dcgm, h.now_us);
    assert_non_null(latest(&h, 0));
    h.now_us += PERIOD_US;
    dcgm_poll(h.dcgm, h.now_us);
    assert_null(latest(&h, 0)); /* it lives and says nothing: noticed within three periods */
    assert_non_null(strstr(dcgm_missing_reason(h.dcgm, 0), "nothing"));
    house_end(&h);
}

/* GPU 0 of the caller is DCGM's 5; 1 to 3 are instances: DCGM's 3, and twice 11. */
static void watch_instances(struct house *h)
{
    dcgm_watch_none(h->dcgm);
    dcgm_add_gpu(h->dcgm, 0, "GPU-0");
    dcgm_add_instance(h->dcgm, 1, "GPU-1", 1);
    dcgm_add_instance(h->dcgm, 2, "GPU-1", 2);
    dcgm_add_instance(h->dcgm, 3, "GPU-1", 2);
}

#define THREE_ROWS                                                                                 \
    HEADER "GPU 5 0.0 0\\nGPU-I 3 0.0 N/A\\nGPU-I 11 0.0 N/A\\n"                                   \
           "GPU 5 0.500 50\\nGPU 3 0.9 90\\nGPU-I 3 0.300 N/A\\nGPU-I 11 0.100 N/A\\n"             \
           "GPU-CI 9 0.9 N/A\\n"

static bool instances_are_told(struct house *h)
{
    return latest(h, 0) && latest(h, 1) && latest(h, 2) && latest(h, 3);
}

static void test_instances_are_mapped_by_card_and_number(void **state)
{
    struct house h = house_of("printf '" THREE_ROWS "'; exec sleep 1000");

    watch_instances(&h);
    assert_true(turn_until(&h, instances_are_told));
    assert_near(latest(&h, 0)->field[DCGM_SMACT], 0.5);
    assert_near(latest(&h, 1)->field[DCGM_SMACT], 0.3); /* not that of GPU 3 */
    assert_near(latest(&h, 2)->field[DCGM_SMACT], 0.1);
    assert_near(latest(&h, 3)->field[DCGM_SMACT], 0.1);
    assert_arguments(&h, "dmon -e " FIELD_IDS " -d 100 -i 5,0/1,0/2\n");
    house_end(&h);
}

/* The stream goes on for so long, and then a new one is started. */
static void assert_new_stream_after(struct house *h, int64_t stream_us)
{
    size_t before = starts(h);

    for (int64_t passed_us = 0; passed_us < stream_us; passed_us += 5 * SECOND_US) {
        h->now_us += 5 * SECOND_US;
        assert_true(turn_until(h, is_told_anew));
    }
    assert_int_equal(starts(h), before);
    h->now_us += 5 * SECOND_US;
    dcgm_poll(h->dcgm, h->now_us);
    h->now_us += PERIOD_US;
    assert_true(turn_until(h, is_told_anew));
    assert_int_equal(starts(h), before + 1);
}

/* DCGM may not know a new instance yet: the GPUs are watched meanwhile. */
static void test_an_instance_that_is_not_listed_is_asked_for_again(void **state)
{
    struct house h = house_of("while printf '" THREE_ROWS "'; do sleep 0.02; done");
    char path[160];

    snprintf(path, sizeof path, "%s/no-instances", h.folder);
    write_text(path, "", 0600);
    watch_instances(&h);
    assert_true(turn_until(&h, is_told_anew));
    assert_null(latest(&h, 1));
    assert_non_null(strstr(dcgm_missing_reason(h.dcgm, 1), "does not list this MIG instance"));
    assert_new_stream_after(&h, 60 * SECOND_US);
    assert_null(latest(&h, 1));
    unlink(path);
    assert_new_stream_after(&h, 120 * SECOND_US);
    assert_true(turn_until(&h, instances_are_told));
    house_end(&h);
}

/* Before it has measured anything, it may well say 0. */
static void test_the_first_row_does_not_count(void **state)
{
    struct house h = house_of("printf '" HEADER "GPU 5 0.0 0\\nGPU 0 0.0 0\\nthe end\\n'");

    assert_true(turn_until(&h, has_ended));
    assert_null(latest(&h, 0));
    assert_null(latest(&h, 1));
    house_end(&h);
}

static void test_a_silent_one_is_started_anew(void **state)
{
    struct house h = house_of("printf '" TWO_ROWS "'; exec sleep 1000");

    assert_true(turn_until(&h, both_are_told));
    h.now_us += 11 * SECOND_US;
    dcgm_poll(h.dcgm, h.now_us);
    assert_null(latest(&h, 0));
    assert_non_null(strstr(dcgm_missing_reason(h.dcgm, 0), "silent"));
    h.now_us += PERIOD_US;
    assert_true(turn_until(&h, both_are_told));
    assert_int_equal(starts(&h), 2);
    house_end(&h);
}

static void test_another_period_starts_another_stream(void **state)
{
    struct house h = house_of("printf '" TWO_ROWS "'; exec sleep 1000");

    assert_true(turn_until(&h, both_are_told));
    dcgm_set_period(h.dcgm, PERIOD_US);
    h.now_us++;
    dcgm_poll(h.dcgm, h.now_us);
    assert_false(is_told_anew(&h));
    dcgm_set_period(h.dcgm, 3 * PERIOD_US);
    assert_true(turn_until(&h, is_told_anew));
    assert_arguments(
        &h, "dmon -e " FIELD_IDS " -d 100 -i 5,0\ndmon -e " FIELD_IDS " -d 300 -i 5,0\n");
    h.now_us += 4 * PERIOD_US;
    assert_non_null(latest(&h, 0)); /* a row lasts for one and a half of the new periods */
    h.now_us += PERIOD_US;
    assert_null(latest(&h, 0));
    house_end(&h);
}

/* A period after the first death, twice as long after the next. */
static void test_a_dead_one_is_started_later_each_time(void **state)
{
    struct house h = house_of("printf '" TWO_ROWS "Lost the host engine.\\n'");

    assert_true(turn_until(&h, has_ended));
    assert_non_null(strstr(dcgm_missing_reason(h.dcgm, 0), "Lost the host engine."));
    assert_non_null(latest(&h, 0));
    for (int64_t rest_us = PERIOD_US; rest_us < 10 * PERIOD_US; rest_us *= 2) {
        size_t before = starts(&h);
        h.now_us += rest_us - 1;
        for (int i = 0; i < 20; i++)
            dcgm_poll(h.dcgm, h.now_us);
        assert_int_equal(starts(&h), before);
        assert_true(has_ended(&h));
        h.now_us += 1;
        assert_true(turn_until(&h, is_told_anew));
        assert_true(turn_until(&h, has_ended));
        assert_int_equal(starts(&h), before + 1);
    }
    house_end(&h);
}

static bool says_refused(struct house *h)
{
    return strstr(dcgm_missing_reason(h->dcgm, 0), "connection") != NULL;
}

static void test_its_words_when_it_cannot(void **state)
{
    struct house h = house_of("");

    write_text(
        h.program, "#!/bin/sh\necho 'Error: no connection to localhost' >&2\nexit 1\n", 0700);
    assert_true(turn_until(&h, says_refused));
    assert_null(latest(&h, 0));
    house_end(&h);
}

static void test_not_installed(void **state)
{
    struct house h = house_of("");

    unlink(h.program);
    dcgm_poll(h.dcgm, h.now_us);
    assert_non_null(strstr(dcgm_missing_reason(h.dcgm, 0), "not on PATH"));
    assert_null(latest(&h, 0));
    house_end(&h);
}

static bool has_started(struct house *h)
{
    return starts(h) == 1;
}

/* Its number is there with the end of its line. */
static bool has_child(struct house *h)
{
    char path[160], text[16] = "";

    snprintf(path, sizeof path, "%s/child", h->folder);
    FILE *file = fopen(path, "re");
    bool whole = file && fgets(text, sizeof text, file) && strchr(text, '\n');
    if (file)
        fclose(file);
    return whole;
}

/* It does not stay behind, nor does anything it started. */
static void test_destroyed_with_its_children(void **state)
{
    struct house h = house_of("sleep 1000 & echo $! > child; wait");
    char path[160], *text;
    size_t size;

    assert_true(turn_until(&h, has_started));
    snprintf(path, sizeof path, "%s/child", h.folder);
    assert_true(turn_until(&h, has_child));
    assert_int_equal(file_read(path, 64, NULL, &text, &size), 0);
    pid_t child = atoi(text);
    free(text);
    assert_int_equal(kill(child, 0), 0);
    house_end(&h);
    assert_int_equal(process_wait_gone(child, 20 * SECOND_US), 0);
}

/* ---- colloc-dcgm ---- */

#define LISTED                                                                                     \
    "source libdcgm.so.4 with nv-hostengine\\nentity GPU-1 GPU 0\\nentity GPU-0 GPU 5\\n"          \
    "entity GPU-1/2 GPU-I 11\\n"
#define HELPER_ROWS LISTED TWO_ROWS "GPU-I 11 0 N/A\\nGPU-I 11 0.300 N/A\\n"
#define STAYS       "'; exec sleep 1000"

static void test_the_library_comes_first(void **state)
{
    struct house h = house_with_helper("printf '" HELPER_ROWS STAYS, "exit 1");

    assert_string_equal(dcgm_source(h.dcgm), "");
    assert_true(turn_until(&h, both_are_told));
    assert_near(latest(&h, 0)->field[DCGM_SMACT], 0.5);
    assert_near(latest(&h, 1)->field[DCGM_SMACT], 0.1);
    assert_string_equal(dcgm_source(h.dcgm), "libdcgm.so.4 with nv-hostengine");
    assert_arguments(&h, "helper 100 GPU-0 GPU-1\n");
    house_end(&h);
}

static bool instance_is_told(struct house *h)
{
    return latest(h, 2) && latest(h, 3);
}

static void test_the_library_finds_instances(void **state)
{
    struct house h = house_with_helper("printf '" HELPER_ROWS STAYS, "exit 1");

    watch_instances(&h);
    assert_true(turn_until(&h, instance_is_told));
    assert_near(latest(&h, 2)->field[DCGM_SMACT], 0.3);
    assert_near(latest(&h, 3)->field[DCGM_SMACT], 0.3);
    assert_null(latest(&h, 1));
    assert_string_equal(dcgm_missing_reason(h.dcgm, 1), "libdcgm does not list this MIG instance");
    assert_arguments(&h, "helper 100 GPU-0 GPU-1/1 GPU-1/2\n");
    house_end(&h);
}

/* No pause is between the two, and the reason is for the log. */
static void test_dcgmi_replaces_a_library_that_fails(void **state)
{
    struct house h = house_with_helper(
        "echo 'libdcgm.so.4: dcgmInit: version mismatch' >&2; exit 1", "printf '" TWO_ROWS STAYS);

    assert_true(turn_until(&h, both_are_told));
    assert_string_equal(dcgm_source(h.dcgm), "dcgmi (libdcgm.so.4: dcgmInit: version mismatch)");
    assert_arguments(&h, "helper 100 GPU-0 GPU-1\ndmon -e " FIELD_IDS " -d 100 -i 5,0\n");
    house_end(&h);
}

static void test_dcgmi_replaces_a_library_that_crashes_after_rows(void **state)
{
    struct house h = house_with_helper(
        "printf '" HELPER_ROWS "'; kill -SEGV $$", "printf '" TWO_ROWS STAYS);

    assert_true(turn_until(&h, both_are_told));
    h.now_us += PERIOD_US; /* the library's rows are older */
    assert_true(turn_until(&h, is_told_anew));
    assert_string_equal(dcgm_source(h.dcgm), "dcgmi (colloc-dcgm has ended)");
    house_end(&h);
}

static void test_dcgmi_replaces_a_library_that_hangs(void **state)
{
    struct house h = house_with_helper("exec sleep 1000", "printf '" TWO_ROWS STAYS);

    assert_true(turn_until(&h, has_started));
    h.now_us += 11 * SECOND_US;
    assert_true(turn_until(&h, both_are_told));
    assert_string_equal(dcgm_source(h.dcgm), "dcgmi (libdcgm was silent)");
    house_end(&h);
}

static bool has_paused(struct house *h)
{
    return strstr(dcgm_missing_reason(h->dcgm, 0), "colloc-dcgm has ended") != NULL;
}

/* What worked for more than a minute is tried again: the engine was restarted, for example. */
static void test_a_library_that_worked_is_started_again(void **state)
{
    struct house h = house_with_helper(
        "while printf '" HELPER_ROWS "'; test ! -e end; do sleep 0.02; done", "exit 1");
    char path[160];

    for (int i = 0; i < 13; i++, h.now_us += 5 * SECOND_US)
        assert_true(turn_until(&h, is_told_anew));
    snprintf(path, sizeof path, "%s/end", h.folder);
    write_text(path, "", 0600);
    assert_true(turn_until(&h, has_paused));
    unlink(path);
    h.now_us += PERIOD_US;
    assert_true(turn_until(&h, is_told_anew));
    assert_arguments(&h, "helper 100 GPU-0 GPU-1\nhelper 100 GPU-0 GPU-1\n");
    house_end(&h);
}

static void test_after_dcgmi_the_library_is_tried_again(void **state)
{
    struct house h = house_with_helper("exit 1", "printf '" TWO_ROWS "'");

    assert_true(turn_until(&h, has_ended));
    write_helper(&h, "printf '" HELPER_ROWS STAYS);
    h.now_us += PERIOD_US;
    assert_true(turn_until(&h, is_told_anew));
    assert_string_equal(dcgm_source(h.dcgm), "libdcgm.so.4 with nv-hostengine");
    house_end(&h);
}

static bool says_no_library(struct house *h)
{
    return strstr(dcgm_missing_reason(h->dcgm, 0), "no libdcgm") != NULL;
}

static void test_neither_is_there(void **state)
{
    struct house h = house_with_helper("echo 'no libdcgm' >&2; exit 1", "");

    unlink(h.program);
    assert_true(turn_until(&h, says_no_library));
    assert_non_null(strstr(dcgm_missing_reason(h.dcgm, 0), "dcgmi is not on PATH"));
    house_end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_columns),
        cmocka_unit_test(test_not_available_is_not_idle),
        cmocka_unit_test(test_other_order_and_torn_lines),
        cmocka_unit_test(test_pieces_do_not_matter),
        cmocka_unit_test(test_no_row_before_a_header_or_of_too_long_lines),
        cmocka_unit_test(test_real_output),
        cmocka_unit_test(test_an_energy_of_0_is_not_known),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_numbers_are_mapped_by_uuid_and_age),
        cmocka_unit_test(test_instances_are_mapped_by_card_and_number),
        cmocka_unit_test(test_an_instance_that_is_not_listed_is_asked_for_again),
        cmocka_unit_test(test_the_first_row_does_not_count),
        cmocka_unit_test(test_a_silent_one_is_started_anew),
        cmocka_unit_test(test_another_period_starts_another_stream),
        cmocka_unit_test(test_a_dead_one_is_started_later_each_time),
        cmocka_unit_test(test_its_words_when_it_cannot),
        cmocka_unit_test(test_not_installed),
        cmocka_unit_test(test_destroyed_with_its_children),
        cmocka_unit_test(test_the_library_comes_first),
        cmocka_unit_test(test_the_library_finds_instances),
        cmocka_unit_test(test_dcgmi_replaces_a_library_that_fails),
        cmocka_unit_test(test_dcgmi_replaces_a_library_that_crashes_after_rows),
        cmocka_unit_test(test_dcgmi_replaces_a_library_that_hangs),
        cmocka_unit_test(test_a_library_that_worked_is_started_again),
        cmocka_unit_test(test_after_dcgmi_the_library_is_tried_again),
        cmocka_unit_test(test_neither_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
