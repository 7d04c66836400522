/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair Tree (Slurm's priority/multifactor): the members of a project come before all members of a
 * project that has used more of its share, whatever they themselves have used. Within a project,
 * the user with the least usage for each share comes first. Slurm divides the share by the usage
 * (both as parts of their siblings' sums) and sorts from large to small; usage by shares, from
 * small to large, is the same order, and needs no care for a usage of 0.
 *
 * Example: the projects vision (3 shares) and speech (1 share) have used 60 and 40 GPU hours, so
 * their levels are 20 and 40: all of vision come first. In vision, ada has used 50 and bob 10, at
 * equal shares. The ranks: bob 1, ada 2, and then speech.
 *
 * Projects of the same level count as one: their users are ranked together, as in Slurm.
 */
#include "fairness/fair_tree.h"

#include <stdlib.h>

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

static int by_level(const void *a, const void *b)
{
    const struct fair_member *one = *(struct fair_member *const *)a;
    const struct fair_member *other = *(struct fair_member *const *)b;
    int by_project = compare_numbers(one->project_level, other->project_level);
    return by_project ? by_project : compare_numbers(one->level, other->level);
}

static void set_levels(struct fair_member **members, int n, const struct share_table *table)
{
    double used[PROJECTS_MAX] = {0};
    for (int i = 0; i < n; i++)
        used[members[i]->project] += members[i]->usage;
    for (int i = 0; i < n; i++) {
        struct fair_member *member = members[i];
        member->project_level = used[member->project] / table->projects[member->project].shares;
        member->level = member->usage / member->shares;
    }
}

void fair_tree_rank(struct fair_member **members, int n, const struct share_table *table)
{
    if (n == 0)
        return;
    set_levels(members, n, table);
    qsort(members, (size_t)n, sizeof *members, by_level);
    for (int i = 0; i < n; i++) {
        bool is_tie = i > 0 && by_level(&members[i - 1], &members[i]) == 0;
        members[i]->rank = is_tie ? members[i - 1]->rank : i + 1;
    }
}
