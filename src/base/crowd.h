/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the network that most connections come from. It loses a connection when there are too many,
 * so that a flood pushes out its own. */
#ifndef COLLOC_BASE_CROWD_H
#define COLLOC_BASE_CROWD_H

#include <stdint.h>

/*
 * Finds the network that occurs most often; of several such, the first.
 *
 * networks: `n` of them (tcp_address_network)
 * ret_most: how often it occurs; 0 when `n` is 0
 *
 * Returns the network.
 */
uint64_t crowd_find(const uint64_t *networks, int n, int *ret_most);

#endif
