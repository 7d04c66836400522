/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's factor of delay, for plain processes and for clients of MPS each, is a median over its
 * users (sharing/delay_factor.h), of what the log has of them (state/delays.c).
 */
#include "core/state/learned_model.h"

#include <math.h>

const struct interference_constants *core_base_constants(const struct core *core)
{
    return core->settings.is_calibrated ? &core->settings.sharing_constants
                                        : &interference_measured;
}

static struct learned_delay learn_delay(const struct core *core, enum sharing sharing)
{
    struct core_users *users = core->users;
    struct learned_delay learned = {.factor = 1};
    for (int i = 0; i < users->n && core->settings.learns_delays; i++) {
        const struct user_delays *delays = &users->list[i]->delays[sharing];
        if (!delays->recorded_us)
            continue;
        users->factors[learned.n_users++] = delay_sum_factor(&delays->recorded);
        learned.predicted_s += delays->recorded.predicted_s;
    }
    learned.factor = delay_factor_of_host(users->factors, learned.n_users, users->n == 1);
    return learned;
}

void core_correct_model(struct core *core)
{
    const struct interference_constants *before = core->view.constants;
    double streams_log = core->learned.streams_delay_log, mps_log = core->learned.mps_delay_log;
    for (int i = SHARING_STREAMS; i <= SHARING_MPS; i++)
        core->learned_delays[i] = learn_delay(core, (enum sharing)i);
    core->learned = *core_base_constants(core);
    core->learned.streams_delay_log = log(core->learned_delays[SHARING_STREAMS].factor);
    core->learned.mps_delay_log = log(core->learned_delays[SHARING_MPS].factor);
    bool is_corrected = core->learned.streams_delay_log != 0 || core->learned.mps_delay_log != 0;
    core->view.constants = is_corrected                   ? &core->learned
                           : core->settings.is_calibrated ? &core->settings.sharing_constants
                                                          : NULL;
    core->pass_needed |= core->view.constants != before ||
                         core->learned.streams_delay_log != streams_log ||
                         core->learned.mps_delay_log != mps_log;
}
