#include "gpu/share.h"

#include <math.h>

bool share_weigh(struct gpu_holder *holders, size_t count)
{
    double told = 0;
    unsigned processes = 0, active = 0;
    bool is_told = true;

    for (size_t i = 0; i < count; i++) {
        const struct gpu_holder *holder = &holders[i];
        if (holder->processes == 0)
            continue;
        active++;
        processes += holder->processes;
        is_told &= holder->sm_utilisation.valid && !holder->is_mps;
        told += reading_or(holder->sm_utilisation, 0);
    }
    is_told &= told > 0;
    for (size_t i = 0; i < count; i++) {
        struct gpu_holder *holder = &holders[i];
        if (holder->processes == 0)
            holder->weight = 0;
        else if (active > 1 && is_told)
            holder->weight = holder->sm_utilisation.value / told;
        else
            holder->weight = (double)holder->processes / processes;
    }
    return active > 1 && !is_told;
}

double share_energy_j(double weight, size_t count, double drawn_j, double idle_j)
{
    double base_j = fmin(idle_j, drawn_j);
    return base_j / (double)count + weight * (drawn_j - base_j);
}
