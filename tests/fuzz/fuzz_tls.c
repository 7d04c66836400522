/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer without the key sends to either end of the link's TLS: it opens nothing. The first
 * byte is the size of the pieces in which the others come. */
#include <stdlib.h>

#include "fuzz.h"
#include "nodelink/tls_channel.h"

static const uint8_t key[SHA256_SIZE] = "of all nodes";

static void try_end(const char *node, const uint8_t *data, size_t size, size_t piece)
{
    struct tls_credentials *credentials;
    struct fault fault;
    char room[512];
    size_t n_output;
    ssize_t n = 0;
    if (tls_credentials_create(key, node, &fault, &credentials) < 0)
        abort();
    struct tls_channel *channel = tls_channel_create(credentials);
    for (size_t at = 0; channel && at < size && n == 0; at += piece) {
        tls_channel_take(channel, data + at, size - at < piece ? size - at : piece);
        n = tls_channel_read(channel, room, sizeof room, &fault);
        free(tls_channel_take_output(channel, &n_output));
    }
    if (n > 0 || (channel && tls_channel_is_open(channel)))
        abort();
    tls_channel_destroy(channel);
    tls_credentials_destroy(credentials);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    try_end(NULL, data + 1, size - 1, data[0] + 1);
    try_end("n1", data + 1, size - 1, data[0] + 1);
    return 0;
}
