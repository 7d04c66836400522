/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that run a program under one of NVIDIA's profilers. */
#ifndef COLLOC_EXEC_PROFILER_H
#define COLLOC_EXEC_PROFILER_H

enum profiler {
    PROFILER_NONE,
    PROFILER_NSYS,        /* Nsight Systems, the whole run */
    PROFILER_NSYS_RANGES, /* only within NVTX ranges that are named "profile" */
    PROFILER_NCU,         /* Nsight Compute, the first PROFILER_LAUNCHES kernels */
    PROFILER_NCU_RANGES,  /* only within NVTX ranges that are named "profile" */
};

/* Parses "nsys" or "ncu": the whole run, the first kernels. Returns PROFILER_NONE for other texts and
 * NULL. */
enum profiler profiler_parse(const char *name);

/* Returns the name of the profiler's program, "nsys" or "ncu"; NULL for PROFILER_NONE. */
const char *profiler_program(enum profiler profiler);

/*
 * Makes the command that runs another one under a profiler.
 *
 * output: path of the profile; the profiler appends its ending (.nsys-rep, .ncu-rep) and replaces
 *         an existing file
 * argv:   the command, NULL-terminated; its words are borrowed
 *
 * Returns an argv in one piece of memory, which the caller frees; NULL without memory.
 */
char **profiler_command(enum profiler profiler, const char *output, char *const *argv);

#endif
