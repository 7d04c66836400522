/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and durations as people write them. Memory inside is bytes, time inside is microseconds. */
#ifndef COLLOC_BASE_UNITS_H
#define COLLOC_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

/* Whole text as a decimal integer within [min, max]. 0, -EINVAL (not a number) or -ERANGE. */
int parse_int64(const char *text, int64_t min, int64_t max, int64_t *ret_value);

/* Whole text as a finite decimal number within [min, max]. 0, -EINVAL or -ERANGE. */
int parse_double(const char *text, double min, double max, double *ret_value);

/*
 * "5GiB", "5G", "512M", "512MiB", "1.5GiB", "4096KiB", "2T", "100B": binary multiples, as
 * nvidia-smi and Slurm count. "12GB", "500MB", "2TB" and "64kB" are decimal multiples, as SI and
 * data sheets count: 12GB is 12 * 10^9 bytes, 7 % less than 12GiB. A bare number is MiB, as in
 * Slurm's --mem. Not negative. 0, -EINVAL or -ERANGE.
 */
int parse_size(const char *text, int64_t *ret_bytes);

/*
 * "90s", "20ms", "5m", "2h", "7d", "1.5s", "8h30m", "1d12h"; and Slurm's forms "MINUTES", "MM:SS", "HH:MM:SS",
 * "D-HH", "D-HH:MM", "D-HH:MM:SS". A bare number is minutes, as in Slurm's --time. Not negative. 0,
 * -EINVAL or -ERANGE.
 */
int parse_duration(const char *text, int64_t *ret_us);

/* "512.0 MiB", "12.3 GiB". Returns `buffer`. */
const char *format_size(int64_t bytes, char *buffer, size_t size);

/* "0:07", "12:34", "3:12:34", "2-03:12:34": Slurm's elapsed time. Returns `buffer`. */
const char *format_elapsed(int64_t us, char *buffer, size_t size);

#endif
