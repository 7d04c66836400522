/* SPDX-License-Identifier: Apache-2.0 */
/* What the agents learn of a job that is about to start on their nodes, with a pretend link to
 * them, and a Slurm in memory (fake_slurm.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "fake_controller.h"
#include "nodelink/node_hub.h"
#include "slurm/slurm_agents.h"

enum { PINS_MAX = 8 };

static struct {
    char nodes[PINS_MAX][NODE_NAME_SIZE];
    struct node_pin pins[PINS_MAX];
    int n;
} seen;

int node_hub_create(
    const struct node_hub_options *options, struct fault *fault, struct node_hub **ret_hub)
{
    *ret_hub = NULL;
    return 0;
}

void node_hub_close(struct node_hub *hub)
{
}

void node_hub_destroy(struct node_hub *hub)
{
}

int node_hub_pin(struct node_hub *hub, const char *node, const struct node_pin *pin)
{
    assert_true(seen.n < PINS_MAX);
    snprintf(seen.nodes[seen.n], sizeof seen.nodes[0], "%s", node);
    seen.pins[seen.n++] = *pin;
    return 0;
}

int node_hub_order(struct node_hub *hub, const char *node, const uint32_t *jobs, size_t n)
{
    return 0;
}

static struct slurm_controller *create_controller(void)
{
    const struct core_settings settings = fake_controller_settings();
    return fake_controller_create(&settings, 80 * GIB);
}

/* One round of the controller's loop; nothing is started. */
static void update_once(struct fake_slurm *fake, struct slurm_controller *controller,
    struct slurm_agents *agents, int64_t now_us)
{
    struct slurm_change *changes;
    size_t n;
    struct slurm_snapshot snapshot = fake_slurm_list(fake);
    assert_int_equal(
        slurm_controller_update(controller, &snapshot, now_us, fake->now_s, &changes, &n), 0);
    for (size_t i = 0; i < n; i++)
        slurm_agents_announce(agents, &changes[i]);
    const struct task_request request = {.need = {NEED_DECLARED, 10 * GIB}};
    fake_controller_answer(controller, &request);
}

static void assert_announced(int i, const char *node, uint32_t job, const char *task)
{
    char text[16] = "none";
    assert_true(i < seen.n);
    if (seen.pins[i].is_of_array)
        snprintf(text, sizeof text, "%u", seen.pins[i].array_task);
    assert_string_equal(seen.nodes[i], node);
    assert_int_equal(seen.pins[i].job, job);
    assert_string_equal(text, task);
}

/* A task of an array over two nodes is announced to both, as a job over two is. */
static void jobs_over_nodes_are_announced_to_each(void **state)
{
    const struct slurm_config config = {.listen = "127.0.0.1:0"};
    struct fake_slurm fake;
    struct slurm_agents *agents;
    struct fault fault = {0};
    fake_slurm_init(&fake, 2, 2);
    struct slurm_controller *controller = create_controller();
    assert_int_equal(
        slurm_agents_create(NULL, &config, controller, NULL, NULL, NULL, &fault, &agents), 0);
    struct fake_job *array = fake_slurm_submit(&fake, 9), *job = fake_slurm_submit(&fake, 5);
    array->job.array_id = array->job.id;
    array->job.array_index = SLURM_NO_INDEX;
    array->job.array_indices = "7";
    array->job.nodes = job->job.nodes = 2;
    for (int i = 1; i <= 3; i++)
        update_once(&fake, controller, agents, i * SECOND_US);
    assert_announced(0, "n0", array->job.id, "7");
    assert_announced(1, "n1", array->job.id, "7");
    assert_true(seen.pins[0].may_share_elsewhere && seen.pins[1].may_share_elsewhere);
    assert_announced(2, "n0", job->job.id, "none");
    assert_announced(3, "n1", job->job.id, "none");
    slurm_agents_destroy(agents);
    slurm_controller_destroy(controller);
    fake_slurm_fini(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_over_nodes_are_announced_to_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
