/* SPDX-License-Identifier: Apache-2.0 */
/* The socket "control" between an emulated training and the emulated MPS control daemon. */
#ifndef COLLOC_EMULATOR_MPS_CHANNEL_H
#define COLLOC_EMULATOR_MPS_CHANNEL_H

#include <stddef.h>
#include <sys/types.h>

/* Returns $CUDA_MPS_PIPE_DIRECTORY, or CUDA's default. */
const char *mps_pipe_directory(void);

/* Writes the path of a file in the pipe directory. Returns 0 or -ENAMETOOLONG. */
int mps_path(const char *name, char *buffer, size_t size);

/* Listens at the socket; a file that is there is replaced. Returns a descriptor or -errno. */
int mps_listen(void);

/* Connects to the daemon. Returns a descriptor, or -errno when no daemon is alive. */
int mps_connect(void);

/*
 * Sends one command line and reads the answer.
 *
 * answer: cut at `size` - 1 bytes and ended with NUL.
 *
 * Returns 0 or -errno.
 */
int mps_request(const char *command, char *answer, size_t size);

/*
 * Registers the calling process as an MPS client, as cudaInit does.
 *
 * ret_server: the pid of its server.
 * ret_share:  the fraction of the SMs that it may use, 0 to 1.
 *
 * Returns 1: it is a client now; 0: no MPS here, the process takes turns with others; -EAGAIN: the
 * server does not accept clients now.
 */
int mps_enlist(pid_t *ret_server, double *ret_share);

/* Returns the bytes that $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT ("0=2G,1=2G") allows on the first
 * device, or 0: no limit. */
int64_t mps_memory_limit(void);

#endif
