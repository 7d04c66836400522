/* SPDX-License-Identifier: Apache-2.0 */
/* Records the software that a bench runs with, so that its results can be reproduced. */
#ifndef COLLOC_BENCH_ENVIRONMENT_RECORD_H
#define COLLOC_BENCH_ENVIRONMENT_RECORD_H

#include "base/fault.h"
#include "gpu/gpu.h"

/*
 * Writes into FOLDER/environment: pip.txt (packages of the interpreter), conda.txt (where conda
 * is), driver.txt (driver and GPUs). There is no file for a fact that cannot be determined. An
 * existing file with another text is kept; the new text goes to pip-2.txt, pip-3.txt, ...
 *
 * python: a path, or a name on PATH
 * set:    NULL: no driver
 *
 * Returns 0, or -errno with a fault: a file cannot be written.
 */
int environment_record(
    const char *folder, const char *python, const struct gpu_set *set, struct fault *fault);

#endif
