/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a table of answers: whose they are, then a line for each, to which further lines are
 * appended. Lines that are cut off or unknown are skipped: that costs an answer, which is asked
 * again.
 *
 *     colloc-kernels 1
 *     gpu NVIDIA H200
 *     driver 580.159.04
 *     cudnn 91900
 *     67239936 forward float32 nchw 1 0 64,3,224,224 64,3,7,7 64,64,112,112 2,2 3,3 1,1
 *     none weight float32 nchw 1 0 ...
 */
#ifndef COLLOC_KERNELS_KERNEL_FILE_H
#define COLLOC_KERNELS_KERNEL_FILE_H

#include <stdio.h>

#include "kernels/kernel_answers.h"

/*
 * Parses a file.
 *
 * ret_answers: empty at first; the caller clears it
 *
 * Returns 0; -EINVAL: it is no such file; or -ENOMEM.
 */
int kernel_file_parse(const char *text, size_t size, struct kernel_answers *ret_answers);

/* Writes the lines that say whose answers follow. */
void kernel_file_write_head(FILE *file, const struct kernel_origin *origin);

/* Writes the lines of the answers from number `first` on. */
void kernel_file_write(FILE *file, const struct kernel_answers *answers, size_t first);

#endif
