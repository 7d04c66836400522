/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock file, and what its owner signs it with.
 *
 *     1234          the process that has the log open
 *     65            the highest task number that was ever committed
 *     412           the highest event number
 *
 * The numbers reveal a log that lost its end: SQLite stops reading a write-ahead log at the
 * first damaged frame, silently, and all that was committed behind it is gone. They are written
 * after each commit and not synced: a power cut may leave them behind the log, never ahead of it.
 * A log that was moved away on purpose takes them with it (store.c empties the lock then).
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "store/store_private.h"

/* Fixed, so that a signature overwrites the one before in its place. */
#define FORM "%-10d\n%-20" PRId64 "\n%-20" PRId64 "\n"
enum { SIGNATURE_SIZE = 10 + 1 + 20 + 1 + 20 + 1 };

void signature_write(struct store *store)
{
    char text[SIGNATURE_SIZE + 1];
    int n = snprintf(text, sizeof text, FORM, (int)getpid(), store->last_task, store->last_seq);
    if (n == SIGNATURE_SIZE && pwrite(store->lock_fd, text, (size_t)n, 0) == n)
        (void)!ftruncate(store->lock_fd, n);
}

void signature_read(int fd, struct signature *ret_signature)
{
    char text[SIGNATURE_SIZE + 1] = "";
    ssize_t n = pread(fd, text, SIGNATURE_SIZE, 0);
    *ret_signature = (struct signature){0};
    if (n > 0 && sscanf(text, "%d %" SCNd64 " %" SCNd64, &ret_signature->pid, &ret_signature->task,
                     &ret_signature->seq) < 3)
        ret_signature->task = ret_signature->seq = 0;
}
