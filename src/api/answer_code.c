/* SPDX-License-Identifier: Apache-2.0 */
/* Proves to a client on another machine that an answer is the controller's. The signed text is "200
 * 9f86d081...": the status and the digest of the body. */
#include "api/answer_code.h"

#include <stdio.h>
#include <string.h>

void answer_code_make(const uint8_t key[static SHA256_SIZE], int status, const void *body,
    size_t size, char ret_code[static SHA256_HEX_SIZE])
{
    char digest[SHA256_HEX_SIZE], text[SHA256_HEX_SIZE + 16];
    uint8_t code[SHA256_SIZE];
    sha256_hex(body, size, digest);
    snprintf(text, sizeof text, "%d %s", status, digest);
    sha256_hmac(key, text, strlen(text), code);
    sha256_format(code, ret_code);
}
