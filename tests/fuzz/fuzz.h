/* SPDX-License-Identifier: Apache-2.0 */
/* What libFuzzer (or replay.c) calls with every input. A target returns 0; it reports a find by
 * dying. */
#ifndef COLLOC_TESTS_FUZZ_H
#define COLLOC_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
