/* SPDX-License-Identifier: Apache-2.0 */
/* A machine whose clock is ahead: loaded before the C library, it adds the seconds of
 * COLLOC_TEST_CLOCK_AHEAD_S to the time of day, and those of COLLOC_TEST_UPTIME_AHEAD_S to the time
 * since the machine was booted. Other clocks stay. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static time_t ahead_s(const char *name)
{
    const char *text = getenv(name);
    return text ? (time_t)atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    int r = next(clock, ret);
    if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret->tv_sec += ahead_s("COLLOC_TEST_CLOCK_AHEAD_S");
    if (r == 0 && clock == CLOCK_BOOTTIME)
        ret->tv_sec += ahead_s("COLLOC_TEST_UPTIME_AHEAD_S");
    return r;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    int r = clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return r;
}

time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
