/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks on a GPU that begins to fail are moved away, as far as others have room and NVIDIA's driver
 * can move them. It takes no new tasks meanwhile: its health keeps policies from it.
 */
#include "core/pass/failing_gpus.h"

#include "core/ask/copy_room.h"
#include "core/ask/giving_way.h"
#include "core/decide/give_way.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

static int leave_failing_gpu(struct core *core, const struct task *task, int64_t now_us)
{
    struct reading bytes = core_bytes_of(core, task);
    bool may_move = bytes.valid && core_may_suspend(core, task, now_us);
    int gpu = may_move ? core_find_destination(core, task, bytes.value, now_us) : -1;
    if (gpu < 0)
        return 0;
    return core_move_task(core, task, &gpu, bytes, YIELD_GPU_FAILING, 0, now_us);
}

int core_empty_failing_gpus(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->view.n_gpus && core->settings.can_suspend && r == 0; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents && gpu->health == VIEW_FAULTY && r == 0; k++)
            r = leave_failing_gpu(core, core_find_task(core, gpu->residents[k].task), now_us);
    }
    return r;
}
