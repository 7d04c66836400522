/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs have licences, in the order in which they ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slurm/licence_table.h"

static const struct slurm_licence list[] = {
    {"matlab", 3, 2}, {"ansys", 1, 1}, {"octave@server", 5, 5}};
static struct licence_table table;

static void begin_table(void)
{
    assert_int_equal(licence_table_begin(&table, list, 3), 0);
}

static void assert_answer(const char *request, enum licence_answer answer, const char *missing)
{
    struct licence_shortage shortage = {.name = {"", 0}};
    assert_int_equal(licence_table_take(&table, request, &shortage), answer);
    assert_true(span_is(shortage.name, missing));
}

static void licences_are_taken_in_order(void **state)
{
    begin_table();
    assert_answer(NULL, LICENCES_TAKEN, "");
    assert_answer("matlab:1,ansys", LICENCES_TAKEN, "");
    assert_answer("matlab:2", LICENCES_NOT_NOW, "matlab");
    assert_answer("matlab,ansys:1", LICENCES_NOT_NOW, "ansys"); /* then it takes no matlab */
    assert_answer("matlab", LICENCES_TAKEN, "");
    assert_answer("matlab", LICENCES_NOT_NOW, "matlab");
    begin_table();
    licence_table_charge(&table, "matlab:3"); /* more than is free: an administrator started it */
    assert_answer("matlab", LICENCES_NOT_NOW, "matlab");
    licence_table_fini(&table);
}

static void more_than_there_are_is_never(void **state)
{
    struct licence_shortage shortage;
    begin_table();
    assert_int_equal(licence_table_take(&table, "ansys,matlab:4", &shortage), LICENCES_NEVER);
    assert_int_equal(shortage.wanted, 4);
    assert_int_equal(shortage.total, 3);
    assert_answer("matlab:4", LICENCES_NEVER, "matlab");
    assert_answer("ansys:2,matlab:3", LICENCES_NEVER, "ansys");
    licence_table_fini(&table);
}

static void one_of_several_is_enough(void **state)
{
    begin_table();
    assert_answer("ansys|matlab:2", LICENCES_TAKEN, "");
    assert_answer("ansys|matlab:2", LICENCES_TAKEN, "");
    assert_answer("ansys:1|matlab", LICENCES_NOT_NOW, "matlab");
    assert_answer("ansys:7|matlab:9", LICENCES_NEVER, "matlab");
    assert_answer("ansys|matlab:9", LICENCES_NOT_NOW, "ansys"); /* there will never be 9 */
    licence_table_fini(&table);
}

/* Other forms, and what is none: that is Slurm's to judge. */
static void any_text_is_read(void **state)
{
    static const char *const texts[] = {"", ",", ":", "::::", "matlab:", "matlab:x", "unknown:7",
        "|", ";;", "=1", "*", "matlab:99999999999999999999"};
    begin_table();
    assert_answer("|", LICENCES_TAKEN, "");
    assert_answer("octave@server:5", LICENCES_TAKEN, "");
    assert_answer("octave@server=1", LICENCES_NOT_NOW, "octave@server");
    assert_answer("matlab*2;ansys", LICENCES_TAKEN, "");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_true(
            licence_table_take(&table, texts[i], &(struct licence_shortage){0}) <= LICENCES_NEVER);
    licence_table_fini(&table);
}

/* Those of jobs that have ended are Slurm's again. */
static void only_live_jobs_want_licences(void **state)
{
    struct slurm_job jobs[] = {{.licences = NULL}, {.licences = ""},
        {.licences = "matlab", .state = SLURM_STATE_COMPLETED}};
    assert_false(licences_are_wanted(jobs, 0));
    assert_false(licences_are_wanted(jobs, 3));
    jobs[2].state = SLURM_STATE_RUNNING;
    assert_true(licences_are_wanted(jobs, 3));
    jobs[2].state = SLURM_STATE_PENDING;
    assert_true(licences_are_wanted(jobs, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(licences_are_taken_in_order),
        cmocka_unit_test(more_than_there_are_is_never), cmocka_unit_test(one_of_several_is_enough),
        cmocka_unit_test(any_text_is_read), cmocka_unit_test(only_live_jobs_want_licences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
