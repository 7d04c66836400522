/* What it would do to everyone's speed if a task joined some GPUs, by the laws of sharing. */
#ifndef COLLOC_POLICY_PREDICT_H
#define COLLOC_POLICY_PREDICT_H

#include "core/policy.h"

/* Residents of a GPU that are looked at: with more there than that, nothing is known. */
enum { PREDICT_RESIDENTS_MAX = 31 };

/* Speed is of what a task does alone, 1 being not slowed down; a task of several GPUs is as fast as on its slowest. */
struct outlook {
    bool known;  /* what everyone concerned asks of a GPU is known; otherwise the rest says nothing */
    double gain; /* the newcomer's speed less what the others lose, each times its GPUs, for each GPU of the newcomer */
    double slowdown; /* of whoever is slowed down most: 2 is twice as long as alone */
};

/* So much has to be gained, in GPUs: less costs those who are there as much time as it saves who comes. */
#define PREDICT_GAIN_MIN 0.05

/* As if the query's task were on the `n` GPUs gpus[] of the view too, sharing them as it then would. */
struct outlook predict_joining(const struct placement_query *query, const struct cluster_view *view, const int *gpus,
                               int n);

/* Would that resident of the GPU be slower, wherever else it is too, if the task came there? Not known: it may be. */
bool predict_slows(const struct placement_query *query, int gpu, const struct resident *resident);

#endif
