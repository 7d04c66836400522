/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's answers in the state folder: STATE_DIR/kernels has a file for each kind of GPU, driver
 * and version of the library (kernels/kernel_file.h), so that nothing is asked twice.
 *
 * A lost or broken file costs its answers, which are asked again.
 */
#ifndef COLLOC_DAEMON_KERNELS_KERNEL_STORE_H
#define COLLOC_DAEMON_KERNELS_KERNEL_STORE_H

#include "kernels/kernel_answers.h"

struct kernel_store;

/* A table of the store: the answers, and what of them is in the file. */
struct kept_kernels;

/* Reads what is kept. Returns NULL when memory is out. */
struct kernel_store *kernel_store_open(const char *state_dir);
void kernel_store_close(struct kernel_store *store);

/*
 * Finds the answers of a kind of GPU: the table that was used last.
 *
 * driver: of this driver only; NULL: of any
 *
 * Returns NULL if there is none. Borrowed.
 */
const struct kernel_answers *kernel_store_find(
    const struct kernel_store *store, const char *gpu, const char *driver);

/* Returns the table of these answers, which becomes the one that was used last. An empty one is
 * made where there is none; NULL when memory is out. */
struct kept_kernels *kernel_store_use(
    struct kernel_store *store, const struct kernel_origin *origin);

const struct kernel_answers *kept_kernels_answers(const struct kept_kernels *kept);

/* Adds an answer. It is in the file after kept_kernels_save. Returns 0 or -ENOMEM. */
int kept_kernels_put(
    struct kept_kernels *kept, const struct conv_question *question, int64_t bytes);

/* Writes the answers that are not in the file yet. What cannot be written is logged. */
void kept_kernels_save(struct kernel_store *store, struct kept_kernels *kept);

#endif
