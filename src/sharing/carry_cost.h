/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to take a process's GPU memory off its GPU with the carrier, and to bring it back:
 * for what the core decides before any copy was seen, and where the learned speed of a machine
 * begins. Measured on an H200, driver 580.159.04: 47.5 GiB in 2.0 to 2.4 s and back in 1.2 s
 * (docs/measured/carrier.md). To a neighbour GPU over NVLink, on two H200s: 0.04 s each way at
 * 6.5 GiB, 0.21 s and 0.25 s at 47 GiB.
 */
#ifndef COLLOC_SHARING_CARRY_COST_H
#define COLLOC_SHARING_CARRY_COST_H

enum {
    CARRY_OUT_MS_PER_GIB = 47,
    CARRY_BACK_MS_PER_GIB = 26,
    /* After the carrier the driver takes the context: a ResNet-50 of 6.6 GiB took 0.88 s in all. */
    CARRY_OUT_FIXED_MS = 600,
    NEAR_OUT_MS_PER_GIB = 5,
    NEAR_BACK_MS_PER_GIB = 6,
    NEAR_FIXED_MS = 100, /* until the gate is closed and no call is in flight, as of a client */
};

#endif
