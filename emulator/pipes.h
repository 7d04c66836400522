/* SPDX-License-Identifier: Apache-2.0 */
/* The pretend trainings are mixed-precision ones: half their SM time in tensor cores, a little in
 * the other pipes. */
#ifndef COLLOC_EMULATOR_PIPES_H
#define COLLOC_EMULATOR_PIPES_H

/* Shares of SMACT. */
#define PIPE_TENSOR 0.5
#define PIPE_FP32   0.2
#define PIPE_FP16   0.05

/* Of what comes from the host, so much goes back. */
#define PCIE_TX_OF_RX 0.1

#endif
