/* SPDX-License-Identifier: Apache-2.0 */
/* A name service that does not answer: loaded before the C library, it makes questions about users
 * wait as long as the file that COLLOC_TEST_NAMES_HANG names is there. */
#include <dlfcn.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_service(void)
{
    const char *file = getenv("COLLOC_TEST_NAMES_HANG");
    while (file && access(file, F_OK) == 0)
        usleep(10000);
}

static void *real(const char *name)
{
    wait_for_service();
    return dlsym(RTLD_NEXT, name);
}

int getpwuid_r(uid_t uid, struct passwd *entry, char *space, size_t size, struct passwd **ret_found)
{
    int (*next)(uid_t, struct passwd *, char *, size_t, struct passwd **);
    *(void **)&next = real("getpwuid_r");
    return next(uid, entry, space, size, ret_found);
}

int getpwnam_r(
    const char *name, struct passwd *entry, char *space, size_t size, struct passwd **ret_found)
{
    int (*next)(const char *, struct passwd *, char *, size_t, struct passwd **);
    *(void **)&next = real("getpwnam_r");
    return next(name, entry, space, size, ret_found);
}
