/* SPDX-License-Identifier: Apache-2.0 */
/* An order to PyTorch's profiler becomes a file of the attempt's folder, which the task's responder
 * reads as the task's user (exec/torch_responder.c). */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"

int attempts_profile_was_asked(const struct attempts *attempts, uint64_t id)
{
    const struct task *task = core_task(attempts->parts.core, id);
    char folder[STATE_PATH_SIZE], path[STATE_PATH_SIZE + sizeof TORCH_ASKED_FILE + 1];
    struct stat status;
    if (!task || !task_state_has_attempt(task->state))
        return -ENOENT;
    attempts_folder(attempts, task, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/" TORCH_ASKED_FILE, folder);
    return lstat(path, &status) < 0 ? -errno : status.st_size > 0;
}

int attempts_order_profile(
    const struct attempts *attempts, uint64_t id, const struct torch_order *order)
{
    const struct task *task = core_task(attempts->parts.core, id);
    char folder[STATE_PATH_SIZE], path[STATE_PATH_SIZE + sizeof TORCH_ORDER_FILE + 1];
    char text[TORCH_ORDER_TEXT];
    if (!task || !task_state_has_attempt(task->state))
        return -ENOENT;
    attempts_folder(attempts, task, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/" TORCH_ORDER_FILE, folder);
    return file_write_atomic(path, text, torch_order_format(order, text), 0644);
}
