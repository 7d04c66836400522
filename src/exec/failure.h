/* SPDX-License-Identifier: Apache-2.0 */
/* How an attempt ended: a class, with the log line that proves it. */
#ifndef COLLOC_EXEC_FAILURE_H
#define COLLOC_EXEC_FAILURE_H

#include "base/failure_class.h"

/* Bytes with the NUL. Chosen: four lines of a terminal; the longest name, "tensorflow". */
enum { EVIDENCE_MAX = 320, FRAMEWORK_MAX = 16 };

struct failure {
    enum failure_class class;
    char framework[FRAMEWORK_MAX]; /* "pytorch", "tensorflow", "jax", "cuda" ...; "" when the log
                                      does not show it */
    char evidence[EVIDENCE_MAX];   /* one line of valid UTF-8 without control characters; "" when
                                      there is none */
};

#endif
