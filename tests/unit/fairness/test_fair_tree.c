/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fairness/fair_tree.h"

enum { N = 4 };

struct given {
    int project, shares;
    double usage;
};

static struct share_table table;
static struct fair_member members[N];

static int reset(void **state)
{
    share_table_init(&table);
    table.n_projects = 3;
    table.projects[1] = (struct share_project){.name = "vision", .shares = 3};
    table.projects[2] = (struct share_project){.name = "speech", .shares = 1};
    return 0;
}

/* Project, shares and usage of each member, and the ranks that must follow. */
static void check(const struct given *given, const int *ranks, int n)
{
    struct fair_member *order[N];
    for (int i = 0; i < n; i++) {
        members[i] = (struct fair_member){
            .project = given[i].project, .shares = given[i].shares, .usage = given[i].usage};
        order[i] = &members[i];
    }
    fair_tree_rank(order, n, &table);
    for (int i = 0; i < n; i++)
        assert_int_equal(members[i].rank, ranks[i]);
    for (int i = 1; i < n; i++)
        assert_true(order[i - 1]->rank <= order[i]->rank);
}

static void the_least_usage_comes_first(void **state)
{
    const struct given given[] = {{0, 1, 30}, {0, 1, 10}, {0, 1, 20}};
    check(given, (int[]){3, 1, 2}, 3);
}

static void shares_divide_usage(void **state)
{
    const struct given given[] = {{0, 4, 30}, {0, 1, 10}};
    check(given, (int[]){1, 2}, 2);
}

static void equal_levels_have_equal_ranks(void **state)
{
    const struct given given[] = {{0, 1, 0}, {0, 2, 0}, {0, 1, 5}};
    check(given, (int[]){1, 1, 3}, 3);
}

/* The example of fair_tree.c: all of the project that has used less of its share come first. */
static void projects_come_before_users(void **state)
{
    const struct given given[] = {{1, 1, 50}, {1, 1, 10}, {2, 1, 40}, {2, 1, 0}};
    check(given, (int[]){2, 1, 4, 3}, 4);
}

static void projects_of_one_level_are_merged(void **state)
{
    const struct given given[] = {{1, 1, 20}, {1, 1, 40}, {2, 1, 5}, {2, 1, 15}};
    check(given, (int[]){3, 4, 1, 2}, 4);
}

static void an_empty_list_is_ranked(void **state)
{
    check(NULL, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_least_usage_comes_first, reset),
        cmocka_unit_test_setup(shares_divide_usage, reset),
        cmocka_unit_test_setup(equal_levels_have_equal_ranks, reset),
        cmocka_unit_test_setup(projects_come_before_users, reset),
        cmocka_unit_test_setup(projects_of_one_level_are_merged, reset),
        cmocka_unit_test_setup(an_empty_list_is_ranked, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
