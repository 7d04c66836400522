/* SPDX-License-Identifier: Apache-2.0 */
/* The data that `colloc memnet` gives to python/colloc_memnet on its standard input. */
#ifndef COLLOC_CLI_MEMNET_FEED_H
#define COLLOC_CLI_MEMNET_FEED_H

#include "base/fault.h"
#include "memnet/dataset.h"

struct memnet_feed {
    const struct dataset *dataset;
    const char *only;    /* only networks whose names contain this; NULL: all */
    bool answers;        /* what the networks answer for each row, instead of the layers */
    const char *weights; /* folder with the networks that answer; NULL: those built in */
};

/*
 * Writes a feed: JSON, a line for each network, row and answer; python/colloc_memnet/feed.py
 * describes it. A network without a file of weights is skipped with a message.
 *
 * ret_fd: at its beginning, for the caller to close
 *
 * Returns 0, or -errno with a fault: -ENOENT when no network's name contains `only`, -EINVAL for
 * weights that cannot be read.
 */
int memnet_feed_open(const struct memnet_feed *feed, struct fault *fault, int *ret_fd);

#endif
