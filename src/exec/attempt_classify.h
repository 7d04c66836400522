/* SPDX-License-Identifier: Apache-2.0 */
/* Why an attempt failed: from how it ended and from what it wrote. */
#ifndef COLLOC_EXEC_ATTEMPT_CLASSIFY_H
#define COLLOC_EXEC_ATTEMPT_CLASSIFY_H

#include "exec/failure_classify.h"
#include "exec/output_files.h"
#include "exec/spec.h"

/*
 * Reads the attempt's output and classifies its end (exec/failure_classify.h).
 * file: which files it wrote, as output_open found them; a file that is gone, or not regular, or
 * that cannot be read says nothing. So does a file system that does not answer within 5 s, and the
 * evidence then says so.
 */
void attempt_classify(const char *folder, const struct attempt_spec *spec,
    const struct output_file file[OUTPUT_STREAMS], const struct attempt_end *end,
    struct failure *ret_failure);

#endif
