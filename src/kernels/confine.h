/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the rights from this process that it does not need: it loads a large library and calls it
 * with numbers that users chose, and a fault of the library must not give a user more than that.
 * What is left: the GPU's device files, files that everybody may read, the standard streams, and
 * bounded memory and processor time.
 */
#ifndef COLLOC_KERNELS_CONFINE_H
#define COLLOC_KERNELS_CONFINE_H

#include "base/fault.h"

/* AddressSanitizer maps terabytes, and its search for leaks traces the process from another one:
 * there neither memory nor processes are limited. */
#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONFINE_IS_SANITIZED 1
#endif
#endif
#ifndef CONFINE_IS_SANITIZED
#define CONFINE_IS_SANITIZED 0
#endif

#define CONFINE_DATA_BYTES ((long long)8 << 30) /* chosen: many times what cuDNN's plans take */

enum { CONFINE_CPU_S = 120 }; /* of all threads; chosen: collocd kills it after 20 s */

/*
 * Confines this process, for good.
 *
 * user: name or number of an account other than root's, which a process of root becomes, with the
 *       account's groups; a process of others keeps its user
 *
 * Contract, once it has returned 0:
 *   1. It has no capability, and can get none (no_new_privs, no user namespace).
 *   2. It has no descriptor but 0, 1 and 2, no network, and connects to no local service.
 *   3. It starts neither a process nor a program; threads are allowed. It cannot signal, trace or
 *      limit other processes.
 *   4. Its writable private memory is limited to CONFINE_DATA_BYTES, its processor time to
 *      CONFINE_CPU_S. It ends with its parent, is the first that the kernel ends where the
 *      machine's memory is out, and leaves no core.
 *   5. Other processes of the same user cannot trace it, nor read its memory.
 *
 * Returns 0, or -errno with a fault; the process must end then.
 */
int confine_process(const char *user, struct fault *fault);

#endif
