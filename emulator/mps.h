/* SPDX-License-Identifier: Apache-2.0 */
/* What a pretend training and the pretend MPS control daemon say to each other, over the socket
 * "control". */
#ifndef COLLOC_EMULATOR_MPS_H
#define COLLOC_EMULATOR_MPS_H

#include <stddef.h>
#include <sys/types.h>

/* $CUDA_MPS_PIPE_DIRECTORY, or where CUDA looks without it. */
const char *mps_pipe_directory(void);

/* Fills a path of the pipe directory. 0 or -ENAMETOOLONG. */
int mps_path(const char *name, char *buffer, size_t size);

/* Sockets at the pipe directory's "control". A descriptor or -errno; connecting fails when no
 * daemon is alive. */
int mps_listen(void);
int mps_connect(void);

/* Sends one command line and reads the whole answer (cut to the buffer, ended with NUL). 0 or
 * -errno. */
int mps_ask(const char *command, char *answer, size_t size);

/*
 * Registers the calling process as an MPS client, as cudaInit does. 1: it is one, of the server
 * *ret_server, with at most *ret_share of the SMs; 0: there is no MPS here, it takes turns with
 * others; -EAGAIN: the server does not accept clients now.
 */
int mps_enlist(pid_t *ret_server, double *ret_share);

/* What $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT ("0=2G,1=2G") says for the first device; 0: no limit. */
int64_t mps_memory_limit(void);

#endif
