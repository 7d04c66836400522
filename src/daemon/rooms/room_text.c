/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sentence about the host memory for a task's copies, and who else shares it:
 *
 *     2.0 GiB are ready; its user has 3.0 GiB, and a share of 4.0 GiB
 *     1.0 GiB of 2.0 GiB are ready, so its copy would be memory of the task; its user has ...
 *     2.0 GiB have its copy; its user has ...
 */
#include "daemon/rooms/room_text.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

const char *room_text_write(const struct room_of_task *rooms, char *text, size_t size)
{
    char made[32], all[32], user[32], share[32];
    format_size((int64_t)rooms->bytes, made, sizeof made);
    format_size((int64_t)(rooms->bytes + rooms->missing_bytes), all, sizeof all);
    format_size((int64_t)rooms->user_bytes, user, sizeof user);
    format_size((int64_t)rooms->share_bytes, share, sizeof share);
    if (rooms->used_bytes)
        snprintf(text, size, "%s have its copy", made);
    else if (rooms->missing_bytes)
        snprintf(
            text, size, "%s of %s are ready, so its copy would be memory of the task", made, all);
    else
        snprintf(text, size, "%s are ready", made);
    size_t used = strlen(text);
    snprintf(text + used, size - used, "; its user has %s, and a share of %s", user, share);
    return text;
}
