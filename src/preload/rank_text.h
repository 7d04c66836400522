/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a rank of NCCL stands, as its page says, in one line of a log: it shows why ranks could not
 * be stopped together. Two ranks that wait for each other differ in a number:
 *
 *     41 calls of NCCL; gate open, 1 calls within; memory here; rank 0 of 2 of 7c1e: 7 collectives
 *     38 calls of NCCL; gate open, 0 calls within; memory here; rank 1 of 2 of 7c1e: 6 of 7 coll...
 *
 * Channels of messages follow: "0 to 1 of 7c1e: 12".
 */
#ifndef COLLOC_PRELOAD_RANK_TEXT_H
#define COLLOC_PRELOAD_RANK_TEXT_H

#include <stddef.h>

#include "preload/page.h"

enum { RANK_TEXT_SIZE = 640 };

/* Writes the line, cut to `size`. A page may say anything. */
void rank_text_write(const struct preload_page *page, char *text, size_t size);

#endif
