/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of the process that call the driver past ours. */
#ifndef COLLOC_PRELOAD_LINKED_H
#define COLLOC_PRELOAD_LINKED_H

#include <stdbool.h>

/* Returns whether a loaded object is linked with a function of the driver that may use GPU memory
 * and that the library does not stand before: its calls are not seen. */
bool linked_with_driver(void);

#endif
