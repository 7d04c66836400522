/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that proves that an answer comes from the controller and belongs to this request: an
 * HMAC with a key that only the two ends have, and that no other request uses. For requests from
 * other machines, whose answers the kernel does not protect.
 */
#ifndef COLLOC_API_ANSWER_CODE_H
#define COLLOC_API_ANSWER_CODE_H

#include "base/sha256.h"

#define ANSWER_CODE_HEADER "Colloc-Answer-Code"

/*
 * Makes the code of an answer.
 *
 * key:    of the request that is answered
 * status: of HTTP
 * body:   `size` bytes
 */
void answer_code_make(const uint8_t key[static SHA256_SIZE], int status, const void *body,
    size_t size, char ret_code[static SHA256_HEX_SIZE]);

#endif
