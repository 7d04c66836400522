/* SPDX-License-Identifier: Apache-2.0 */
/* Finds why an attempt failed, from its end and its output. */
#ifndef COLLOC_EXEC_ATTEMPT_CLASSIFY_H
#define COLLOC_EXEC_ATTEMPT_CLASSIFY_H

#include "exec/failure_classify.h"
#include "exec/output_files.h"
#include "exec/spec.h"

/*
 * Reads the attempt's output and classifies its end (exec/failure_classify.h).
 *
 * folder:      of the attempt.
 * file:        the files it wrote, as output_open found them. A file that is missing, not regular
 *              or not readable counts as empty; if the file system does not answer within 5 s all
 *              do, and the evidence says so.
 * end:         how the main process ended.
 * ret_failure: filled, also for an attempt that succeeded (FAILURE_NONE).
 */
void attempt_classify(const char *folder, const struct attempt_spec *spec,
    const struct output_file file[OUTPUT_STREAMS], const struct attempt_end *end,
    struct failure *ret_failure);

#endif
