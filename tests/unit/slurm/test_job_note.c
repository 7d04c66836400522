/* SPDX-License-Identifier: Apache-2.0 */
/* The note in admin_comment: written and read, edited by hand, and any other text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slurm/job_note.h"

static void is_read_as_it_was_written(void **state)
{
    char text[256];
    struct job_note read;
    const struct job_note note = {.want = 2,
        .attempt = 3,
        .restart = 1,
        .ooms = 1,
        .state = NOTE_PINNED,
        .nodes = span_of("gpu-node-7,gpu-node-9"),
        .gpus = 0x9,
        .shards = 80,
        .smact_percent = 35,
        .is_bound = true};
    job_note_format(&note, text, sizeof text);
    assert_string_equal(text, "colloc want=2 attempt=3 restart=1 ooms=1 state=pinned "
                              "node=gpu-node-7,gpu-node-9 gpus=0,3 shards=80 smact=35 bound=1");
    assert_true(job_note_parse(text, &read));
    assert_int_equal(read.want, 2);
    assert_int_equal(read.attempt, 3);
    assert_int_equal(read.restart, 1);
    assert_int_equal(read.ooms, 1);
    assert_int_equal(read.state, NOTE_PINNED);
    assert_true(span_is(read.nodes, "gpu-node-7,gpu-node-9"));
    assert_true(read.gpus == 0x9);
    assert_int_equal(read.shards, 80);
    assert_int_equal(read.smact_percent, 35);
    assert_true(read.is_bound);
}

static void may_say_only_how_many_gpus(void **state)
{
    struct job_note note;
    assert_true(job_note_parse("colloc want=4", &note));
    assert_int_equal(note.want, 4);
    assert_int_equal(note.state, NOTE_WAITING);
    assert_true(job_note_parse("  colloc want=4 later=7 ", &note));
    assert_int_equal(note.want, 4);
    assert_true(job_note_parse("colloc total=6", &note));
    assert_int_equal(note.total, 6);
    assert_int_equal(note.want, 0);
    assert_true(job_note_parse("colloc want=100", &note)); /* more than any node has */
    assert_int_equal(note.want, 100);
}

static void refuses_what_cannot_be_right(void **state)
{
    static const char *const texts[] = {NULL, "", "account 12", "collocation", "colloc want=-1",
        "colloc want=2147483648", "colloc state=running", "colloc state=pinned",
        "colloc state=pinned node=n1", "colloc state=pinned node=n1 gpus=64",
        "colloc state=pinned node=n1 gpus=1;2", "colloc restart=4294967295", "colloc ooms=x",
        "colloc attempt=99999999999", "colloc smact=101", "colloc bound=2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct job_note note = {.want = 1};
        assert_false(job_note_parse(texts[i], &note));
        assert_int_equal(note.want, 0);
        assert_int_equal(note.smact_percent, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_read_as_it_was_written),
        cmocka_unit_test(may_say_only_how_many_gpus),
        cmocka_unit_test(refuses_what_cannot_be_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
