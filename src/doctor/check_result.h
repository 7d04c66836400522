/* SPDX-License-Identifier: Apache-2.0 */
/* What a check of `colloc doctor` has found. */
#ifndef COLLOC_DOCTOR_CHECK_RESULT_H
#define COLLOC_DOCTOR_CHECK_RESULT_H

#include <stdbool.h>

struct doctor_check {
    const char *name;
    bool is_ok;        /* it works, or it is not needed on this machine */
    char detail[1024]; /* names files: chosen for a few long paths */
    char advice[256];  /* what to do; "": nothing */
};

/* Advice of all checks that need a GPU. */
#define DOCTOR_INSTALL_DRIVER                                                                      \
    "install the NVIDIA driver (570 or newer to suspend tasks, 580 to move them)"

/* Report the result of a check. `detail`: what was found; `advice`: what to do. */
void doctor_pass(struct doctor_check *check, const char *detail, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_fail(struct doctor_check *check, const char *advice, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

#endif
