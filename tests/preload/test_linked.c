/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is linked with the driver is found while another thread loads and unloads some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "preload/hook_table.h"
#include "preload/linked.h"

enum { ROUNDS = 3000, WATCHDOG_S = 120 };

/* No function has a hook here. */
int hook_find(const char *name)
{
    return -1;
}

static void *load_and_unload(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        void *library = dlopen("liblinked-library.so", RTLD_NOW);
        assert_non_null(library);
        dlclose(library);
    }
    return NULL;
}

static void test_it_is_found(void **state)
{
    void *library = dlopen("liblinked-library.so", RTLD_NOW);
    assert_non_null(library);
    assert_true(linked_with_driver());
    dlclose(library);
    assert_false(linked_with_driver());
}

static void *keep_asking(void *is_over)
{
    while (!atomic_load((_Atomic int *)is_over))
        linked_with_driver();
    return NULL;
}

/* The dynamic linker's two locks must not be taken in the other order: both threads would wait for
 * ever. */
static void test_beside_a_thread_in_dlopen(void **state)
{
    pthread_t loader, asker;
    _Atomic int is_over = 0;
    alarm(WATCHDOG_S);
    assert_int_equal(pthread_create(&asker, NULL, keep_asking, &is_over), 0);
    assert_int_equal(pthread_create(&loader, NULL, load_and_unload, NULL), 0);
    pthread_join(loader, NULL);
    atomic_store(&is_over, 1);
    pthread_join(asker, NULL);
    alarm(0);
}

int main(void)
{
    /* The driver stays. */
    if (!dlopen("libcuda.so.1", RTLD_NOW))
        return EXIT_FAILURE;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_found),
        cmocka_unit_test(test_beside_a_thread_in_dlopen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
