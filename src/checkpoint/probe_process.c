/* SPDX-License-Identifier: Apache-2.0 */
/* The probe: one context on the first GPU, one MiB with a pattern in it. */
#include "checkpoint/probe_process.h"

#include <stdio.h>
#include <string.h>

#include "checkpoint/cuda_driver.h"

enum { PROBE_BYTES = 1 << 20 }; /* chosen: enough to see whether memory is restored unchanged */

static unsigned char pattern[PROBE_BYTES], seen[PROBE_BYTES];

static void print_line(const char *format, const char *text)
{
    printf(format, text);
    fflush(stdout);
}

static int take_memory(const struct cuda_driver *driver, uint64_t *ret_at)
{
    cuda_context context;
    for (size_t i = 0; i < PROBE_BYTES; i++)
        pattern[i] = (unsigned char)(i * 31 + (i >> 8));
    int r = driver->context_retain(&context, 0);
    if (r == 0)
        r = driver->context_set(context);
    if (r == 0)
        r = driver->memory_alloc(ret_at, PROBE_BYTES);
    return r == 0 ? driver->copy_to_gpu(*ret_at, pattern, PROBE_BYTES) : r;
}

static bool is_same(const struct cuda_driver *driver, uint64_t at)
{
    memset(seen, 0, sizeof seen);
    return driver->copy_to_host(seen, at, PROBE_BYTES) == 0 &&
           memcmp(seen, pattern, PROBE_BYTES) == 0;
}

int probe_process_run(void)
{
    struct cuda_driver driver;
    struct fault fault = {0};
    char line[64];
    uint64_t at;
    if (cuda_driver_open(&driver, &fault) < 0) {
        print_line("error %s\n", fault.text);
        return 1;
    }
    int r = take_memory(&driver, &at);
    if (r != 0) {
        print_line("error %s\n", cuda_driver_error(&driver, r, line, sizeof line));
        return 1;
    }
    print_line("%s\n", "ready");
    while (fgets(line, sizeof line, stdin))
        print_line("%s\n", is_same(&driver, at) ? "same" : "differs");
    return 0;
}
