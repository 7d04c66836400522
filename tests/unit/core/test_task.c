/* SPDX-License-Identifier: Apache-2.0 */
/* The life-cycle: which moves are allowed, the names of the states, the invariant. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/event.h"
#include "core/queue.h"
#include "core/task.h"

static const struct {
    enum task_state from, to;
} moves[] = {
    {TASK_HELD, TASK_QUEUED},
    {TASK_HELD, TASK_RECOVERING},
    {TASK_HELD, TASK_CANCELLED},
    {TASK_HELD, TASK_BLOCKED},
    {TASK_BLOCKED, TASK_HELD},
    {TASK_BLOCKED, TASK_QUEUED},
    {TASK_BLOCKED, TASK_RECOVERING},
    {TASK_BLOCKED, TASK_CANCELLED},
    {TASK_QUEUED, TASK_HELD},
    {TASK_QUEUED, TASK_STARTING},
    {TASK_QUEUED, TASK_CANCELLED},
    {TASK_RECOVERING, TASK_HELD},
    {TASK_RECOVERING, TASK_STARTING},
    {TASK_RECOVERING, TASK_CANCELLED},
    {TASK_STARTING, TASK_RUNNING},
    {TASK_STARTING, TASK_QUEUED},
    {TASK_STARTING, TASK_RECOVERING},
    {TASK_STARTING, TASK_EXITED},
    {TASK_RUNNING, TASK_ENDING},
    {TASK_RUNNING, TASK_QUEUED},
    {TASK_RUNNING, TASK_RECOVERING},
    {TASK_RUNNING, TASK_EXITED},
    {TASK_RUNNING, TASK_PAUSED},
    {TASK_RUNNING, TASK_SUSPENDING},
    {TASK_RUNNING, TASK_MOVING},
    {TASK_PAUSED, TASK_RUNNING},
    {TASK_PAUSED, TASK_ENDING},
    {TASK_PAUSED, TASK_EXITED},
    {TASK_SUSPENDING, TASK_SUSPENDED},
    {TASK_SUSPENDING, TASK_RUNNING},
    {TASK_SUSPENDING, TASK_EXITED},
    {TASK_SUSPENDED, TASK_RESUMING},
    {TASK_SUSPENDED, TASK_EXITED},
    {TASK_RESUMING, TASK_RUNNING},
    {TASK_RESUMING, TASK_SUSPENDED},
    {TASK_RESUMING, TASK_EXITED},
    {TASK_MOVING, TASK_RUNNING},
    {TASK_MOVING, TASK_SUSPENDED},
    {TASK_MOVING, TASK_EXITED},
    {TASK_ENDING, TASK_QUEUED},
    {TASK_ENDING, TASK_RECOVERING},
    {TASK_PAUSED, TASK_QUEUED},
    {TASK_PAUSED, TASK_RECOVERING},
    {TASK_SUSPENDING, TASK_QUEUED},
    {TASK_SUSPENDING, TASK_RECOVERING},
    {TASK_MOVING, TASK_QUEUED},
    {TASK_MOVING, TASK_RECOVERING},
    {TASK_ENDING, TASK_EXITED},
    {TASK_EXITED, TASK_BLOCKED},
    {TASK_EXITED, TASK_RECOVERING},
    {TASK_EXITED, TASK_COMPLETED},
    {TASK_EXITED, TASK_FAILED},
    {TASK_EXITED, TASK_CANCELLED},
    {TASK_EXITED, TASK_TIMEOUT},
    {TASK_EXITED, TASK_OUT_OF_MEMORY},
    {TASK_EXITED, TASK_STOPPED},
    {TASK_EXITED, TASK_QUEUED},
};

static bool is_listed(enum task_state from, enum task_state to)
{
    for (size_t i = 0; i < ARRAY_SIZE(moves); i++)
        if (moves[i].from == from && moves[i].to == to)
            return true;
    return false;
}

static void only_these_moves_are_allowed(void **state)
{
    for (enum task_state from = TASK_HELD; from < TASK_STATES; from++)
        for (enum task_state to = TASK_HELD; to < TASK_STATES; to++)
            assert_int_equal(task_may_move(from, to), is_listed(from, to));
}

static void states_have_words_that_slurm_users_know(void **state)
{
    assert_string_equal(task_state_word(TASK_HELD), "PENDING");
    assert_string_equal(task_state_word(TASK_QUEUED), "PENDING");
    assert_string_equal(task_state_word(TASK_RECOVERING), "PENDING");
    assert_string_equal(task_state_word(TASK_STARTING), "RUNNING");
    assert_string_equal(task_state_word(TASK_RUNNING), "RUNNING");
    assert_string_equal(task_state_word(TASK_ENDING), "COMPLETING");
    assert_string_equal(task_state_word(TASK_SUSPENDED), "SUSPENDED");
    assert_string_equal(task_state_word(TASK_PAUSED), "PAUSED");
    assert_string_equal(task_state_word(TASK_OUT_OF_MEMORY), "OUT_OF_MEMORY");
    assert_string_equal(task_state_name(TASK_OUT_OF_MEMORY), "out-of-memory");
}

static void holding_and_being_done_exclude_each_other(void **state)
{
    for (enum task_state s = TASK_HELD; s < TASK_STATES; s++) {
        assert_false(task_state_is_done(s) && task_state_holds_gpus(s));
        assert_int_equal(task_state_is_done(s), s >= TASK_COMPLETED);
    }
}

static void the_invariant_sees_each_mistake(void **state)
{
    struct task_queue queue = {0};
    struct task_run own = {0}, *run = &own;
    struct task task = {.run = run, .request.gpus = 1, .state = TASK_QUEUED, .queue = &queue};
    assert_true(task_is_sound(&task));
    task.n_gpus = 1;
    assert_false(task_is_sound(&task));
    task = (struct task){.run = run, .request.gpus = 1, .state = TASK_QUEUED};
    assert_false(task_is_sound(&task));
    task = (struct task){.run = run, .request.gpus = 1, .state = TASK_STARTING, .n_gpus = 1};
    assert_true(task_is_sound(&task));
    task.has_process = true;
    assert_false(task_is_sound(&task));
    task.state = TASK_RUNNING;
    assert_true(task_is_sound(&task));
    task.n_gpus = 0;
    assert_false(task_is_sound(&task));
    task = (struct task){.run = run, .request.gpus = 1, .state = TASK_COMPLETED, .queue = &queue};
    assert_false(task_is_sound(&task));
    task = (struct task){.run = run,
        .request.gpus = 1,
        .state = TASK_SUSPENDED,
        .has_process = true,
        .queue = &queue};
    assert_true(task_is_sound(&task));
    task.run->yield.by_user = true;
    assert_false(task_is_sound(&task));
    task.queue = NULL;
    assert_true(task_is_sound(&task));
    task.n_gpus = 1;
    assert_false(task_is_sound(&task));
    task = (struct task){
        .run = run, .request.gpus = 1, .state = TASK_MOVING, .has_process = true, .n_gpus = 2};
    assert_false(task_is_sound(&task));
    task = (struct task){
        .run = run, .request.gpus = 1, .state = TASK_RUNNING, .has_process = true, .n_gpus = 1};
    task.run->yield.is_frozen = true;
    assert_false(task_is_sound(&task));
    task.state = TASK_PAUSED;
    assert_true(task_is_sound(&task));
    task.run->yield.is_frozen = false;
    task = (struct task){.run = run, .state = TASK_STARTING};
    assert_true(task_is_sound(&task)); /* it needs no GPU */
    task.n_gpus = 1;
    assert_false(task_is_sound(&task));
}

static void a_move_that_is_not_allowed_ends_the_program(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        struct task task = {.state = TASK_COMPLETED};
        task_move(&task, TASK_QUEUED);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void names_go_there_and_back(void **state)
{
    enum sharing sharing;
    enum event_kind kind;
    assert_int_equal(sharing_parse("mps", &sharing), 0);
    assert_int_equal(sharing, SHARING_MPS);
    assert_int_equal(sharing_parse("threads", &sharing), -EINVAL);
    for (enum event_kind k = EVENT_GPUS; k < EVENT_KINDS; k++) {
        assert_non_null(event_name(k));
        assert_int_equal(event_parse_name(event_name(k), &kind), 0);
        assert_int_equal(kind, k);
    }
    assert_int_equal(event_parse_name("place", &kind), -EINVAL);
}

static void an_estimator_gives_a_kind_of_requirement(void **state)
{
    assert_int_equal(need_kind_of_estimator("none"), NEED_UNKNOWN);
    assert_int_equal(need_kind_of_estimator("declared"), NEED_DECLARED);
    assert_int_equal(need_kind_of_estimator("horus"), NEED_ESTIMATED);
    assert_int_equal(need_kind_of_estimator(""), NEED_ESTIMATED);
}

/* 10,000 queued tasks are 3.8 MiB of a daemon's memory (docs/measured/bench.md). What only a placed
 * task has is in task_run. */
static void a_task_is_small(void **state)
{
    assert_true(sizeof(struct task) <= 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_these_moves_are_allowed),
        cmocka_unit_test(states_have_words_that_slurm_users_know),
        cmocka_unit_test(holding_and_being_done_exclude_each_other),
        cmocka_unit_test(the_invariant_sees_each_mistake),
        cmocka_unit_test(a_move_that_is_not_allowed_ends_the_program),
        cmocka_unit_test(names_go_there_and_back),
        cmocka_unit_test(an_estimator_gives_a_kind_of_requirement),
        cmocka_unit_test(a_task_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
