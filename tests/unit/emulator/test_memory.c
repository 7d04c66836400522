/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the emulated GPUs: pages from anywhere, or a line with holes. */
#include "machine.h"

#include <errno.h>

#include "base/units.h"
#include "emulator/memory.h"

static const struct seat gpu0 = {0, 0};

static struct process *join(struct world *world, struct seat seat)
{
    struct process *p = world_join(world, ROLE_TRAINING, &seat, 1);

    assert_non_null(p);
    return p;
}

static void counts_what_is_taken(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);

    world_enter(m.world);
    struct process *p = join(m.world, gpu0);
    assert_int_equal(memory_take(m.world, p, gpu0, 3 * MIB), 0);
    assert_int_equal(memory_of(p, gpu0), 4 * MIB);
    assert_int_equal(memory_used(m.world, gpu0), 4 * MIB);
    assert_int_equal(memory_free(m.world, gpu0), (40960 - 624 - 4) * MIB);
    world_part(m.world, p);
    assert_int_equal(memory_used(m.world, gpu0), 0);
    world_leave(m.world);
    machine_end(&m);
}

static void compute_instances_of_a_gpu_instance_have_one_memory(void **state)
{
    struct machine m = machine_make("A100-40GB:1c.3g.20gb+2g.10gb+2c.3g.20gb", 1);
    const struct seat one = {0, 1}, apart = {0, 2}, other = {0, 3};

    world_enter(m.world);
    struct process *p = join(m.world, one), *q = join(m.world, other);
    assert_int_equal(memory_take(m.world, p, one, 12 * GIB), 0);
    assert_int_equal(memory_used(m.world, other), 12 * GIB);
    assert_int_equal(memory_used(m.world, apart), 0);
    assert_int_equal(memory_of(q, other), 0);
    assert_int_equal(memory_free(m.world, other), 19968 * MIB - 12 * GIB);
    assert_int_equal(memory_take(m.world, q, other, 8 * GIB), -ENOMEM);
    assert_int_equal(memory_take(m.world, q, other, 7 * GIB), 0);
    assert_int_equal(memory_of(q, other), 7 * GIB);
    assert_int_equal(memory_used(m.world, gpu0), 19 * GIB);
    world_part(m.world, p);
    assert_int_equal(memory_used(m.world, one), 7 * GIB);
    world_part(m.world, q);
    world_leave(m.world);
    machine_end(&m);
}

/* The process is on an A100-40GB with two holes, of 5 and 4 GiB. */
static struct process *join_two_holes(struct world *world)
{
    int64_t capacity = (40960 - 624) * MIB;

    world->gpus[0].foreign_offset = 5 * GIB;
    world->gpus[0].foreign_bytes = capacity - 9 * GIB;
    return join(world, gpu0);
}

static void free_memory_can_be_had_wherever_it_lies(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);

    world_enter(m.world);
    struct process *p = join_two_holes(m.world);
    assert_int_equal(memory_take(m.world, p, gpu0, 8 * GIB), 0);
    assert_int_equal(memory_free(m.world, gpu0), GIB);
    assert_int_equal(memory_take(m.world, p, gpu0, GIB + 1), -ENOMEM);
    assert_int_equal(memory_take(m.world, p, gpu0, GIB), 0);
    world_part(m.world, p);
    world_leave(m.world);
    machine_end(&m);
}

static void where_memory_is_linear_free_memory_in_pieces_is_not_enough(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);

    world_enter(m.world);
    m.world->constants.linear_memory = 1;
    struct process *p = join_two_holes(m.world);
    assert_int_equal(memory_free(m.world, gpu0), 9 * GIB);
    assert_int_equal(memory_take(m.world, p, gpu0, 8 * GIB), -ENOMEM);
    assert_int_equal(memory_take(m.world, p, gpu0, 5 * GIB), 0);
    assert_int_equal(memory_take(m.world, p, gpu0, 4 * GIB), 0);
    assert_int_equal(memory_take(m.world, p, gpu0, 1), -ENOMEM);
    world_part(m.world, p);
    world_leave(m.world);
    machine_end(&m);
}

static void a_hole_is_used_again(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);

    world_enter(m.world);
    m.world->constants.linear_memory = 1;
    struct process *a = join(m.world, gpu0), *b = join(m.world, gpu0), *c = join(m.world, gpu0);
    assert_int_equal(memory_take(m.world, a, gpu0, 10 * GIB), 0);
    assert_int_equal(memory_take(m.world, b, gpu0, 20 * GIB), 0);
    world_part(m.world, a);
    assert_int_equal(memory_take(m.world, c, gpu0, 10 * GIB), 0);
    assert_int_equal(c->segments[0].offset, 0);
    world_part(m.world, b);
    world_part(m.world, c);
    world_leave(m.world);
    machine_end(&m);
}

static void instances_are_walls(void **state)
{
    struct machine m = machine_make("A100-40GB:2g.10gb+1g.5gb", 1);
    struct seat large = {0, 1}, small = {0, 2};

    world_enter(m.world);
    struct process *a = join(m.world, large), *b = join(m.world, small);
    assert_int_equal(memory_take(m.world, a, large, 9 * GIB), 0);
    assert_int_equal(memory_take(m.world, b, small, 9 * GIB), -ENOMEM);
    assert_int_equal(memory_take(m.world, b, small, 4 * GIB), 0);
    assert_int_equal(memory_used(m.world, gpu0), 13 * GIB);
    assert_int_equal(memory_used(m.world, small), 4 * GIB);
    world_part(m.world, a);
    world_part(m.world, b);
    world_leave(m.world);
    machine_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_is_taken),
        cmocka_unit_test(compute_instances_of_a_gpu_instance_have_one_memory),
        cmocka_unit_test(free_memory_can_be_had_wherever_it_lies),
        cmocka_unit_test(where_memory_is_linear_free_memory_in_pieces_is_not_enough),
        cmocka_unit_test(a_hole_is_used_again),
        cmocka_unit_test(instances_are_walls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
