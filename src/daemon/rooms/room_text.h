/* SPDX-License-Identifier: Apache-2.0 */
/* What users read about the rooms of a task. */
#ifndef COLLOC_DAEMON_ROOMS_ROOM_TEXT_H
#define COLLOC_DAEMON_ROOMS_ROOM_TEXT_H

#include "daemon/rooms/room_pool.h"

/* Writes how much is made and used, and whether that is all. Returns `text`. */
const char *room_text_write(const struct room_of_task *rooms, char *text, size_t size);

#endif
