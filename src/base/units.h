/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and formats numbers, sizes (in bytes) and durations (in microseconds). */
#ifndef COLLOC_BASE_UNITS_H
#define COLLOC_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

/* Parses a whole text as a decimal integer within [min, max]. Returns 0, -EINVAL (not a number) or
 * -ERANGE. */
int parse_int64(const char *text, int64_t min, int64_t max, int64_t *ret_value);

/*
 * Parses a whole text as a finite decimal number within [min, max]. Returns 0, -EINVAL or -ERANGE.
 */
int parse_double(const char *text, double min, double max, double *ret_value);

/*
 * Parses a size. "5GiB", "5G", "512M", "512MiB", "1.5GiB", "4096KiB", "2T" and "100B" are binary
 * multiples, as in nvidia-smi and Slurm. "12GB", "500MB", "2TB" and "64kB" are decimal multiples,
 * as in SI and data sheets: 12GB is 12 * 10^9 bytes, 7 % less than 12GiB. A bare number is MiB, as
 * in Slurm's --mem.
 *
 * Returns 0, -EINVAL (also when negative) or -ERANGE.
 */
int parse_size(const char *text, int64_t *ret_bytes);

/*
 * Parses a duration: "90s", "20ms", "5m", "2h", "7d", "1.5s", "8h30m", "1d12h"; and Slurm's forms
 * "MINUTES", "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS". A bare number is minutes, as in
 * Slurm's --time.
 *
 * Returns 0, -EINVAL (also when negative) or -ERANGE.
 */
int parse_duration(const char *text, int64_t *ret_us);

/* Formats a size: "512.0 MiB", "12.3 GiB". Returns `buffer`. */
const char *format_size(int64_t bytes, char *buffer, size_t size);

/* Formats a duration as Slurm's elapsed time: "0:07", "12:34", "3:12:34", "2-03:12:34". Returns
 * `buffer`. */
const char *format_elapsed(int64_t us, char *buffer, size_t size);

#endif
