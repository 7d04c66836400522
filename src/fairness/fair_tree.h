/* SPDX-License-Identifier: Apache-2.0 */
/* Orders users by shares and usage: Slurm's Fair Tree, with projects and users as levels. */
#ifndef COLLOC_FAIRNESS_FAIR_TREE_H
#define COLLOC_FAIRNESS_FAIR_TREE_H

#include "fairness/share_table.h"

/* A user in the tree. */
struct fair_member {
    int project;          /* index into the table's projects */
    int shares;           /* among the users of the project; above 0 */
    double usage;         /* in any unit, the same for all */
    double project_level; /* set by fair_tree_rank: the project's usage by its shares, */
    double level;         /* and the user's own */
    int rank;             /* set by fair_tree_rank; 1: comes first. Equal levels: equal ranks */
};

/*
 * Ranks the members.
 *
 * members: `n` of them; sorted by rising rank, and their ranks are set
 * table:   the projects
 */
void fair_tree_rank(struct fair_member **members, int n, const struct share_table *table);

#endif
