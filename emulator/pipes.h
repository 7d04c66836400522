/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics that are not in the interference model, as fractions of those that are. Assumed:
 * trainings in mixed precision, half of their SM time in tensor cores. */
#ifndef COLLOC_EMULATOR_PIPES_H
#define COLLOC_EMULATOR_PIPES_H

/* Of SMACT. */
#define PIPE_TENSOR 0.5
#define PIPE_FP32   0.2
#define PIPE_FP16   0.05

/* Of the traffic from the host to the GPU, what goes back. */
#define PCIE_TX_OF_RX 0.1

#endif
