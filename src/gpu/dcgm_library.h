/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdcgm, loaded at run time. Only colloc-dcgm uses it: its calls may hang, and an embedded engine
 * starts threads and loads drivers' libraries.
 */
#ifndef COLLOC_GPU_DCGM_LIBRARY_H
#define COLLOC_GPU_DCGM_LIBRARY_H

#include "base/fault.h"
#include "gpu/dcgm_abi.h"

/* The functions by the names of DCGM's reference. They return DCGM_ABI_OK or an error. */
struct dcgm_library {
    void *library;
    const char *name; /* of the file that was loaded: "libdcgm.so.4" */

    const char *(*error_text)(int result);
    int (*init)(void);
    int (*connect)(
        const char *address, struct dcgm_abi_connect *options, dcgm_abi_handle *ret_handle);
    int (*start_embedded)(struct dcgm_abi_embedded *options);
    int (*all_devices)(dcgm_abi_handle, unsigned numbers[DCGM_ABI_GPUS_MAX], int *ret_count);
    int (*hierarchy)(dcgm_abi_handle, struct dcgm_abi_hierarchy *);
    int (*group_create)(dcgm_abi_handle, int type, const char *name, dcgm_abi_handle *ret_group);
    int (*group_add)(dcgm_abi_handle, dcgm_abi_handle group, int kind, unsigned number);
    int (*fields_create)(dcgm_abi_handle, int count, const unsigned short *fields, const char *name,
        dcgm_abi_handle *ret_fields);
    int (*watch)(dcgm_abi_handle, dcgm_abi_handle group, dcgm_abi_handle fields,
        long long period_us, double keep_s, int keep_samples);
    int (*latest)(dcgm_abi_handle, const struct dcgm_abi_entity *, unsigned entity_count,
        const unsigned short *fields, unsigned field_count, unsigned flags,
        struct dcgm_abi_value *ret_values);
};

/*
 * Loads the newest libdcgm of which colloc knows the interface. It stays loaded until the process
 * ends.
 *
 * Returns 0; -ENOENT: there is none; -ENOSYS: it lacks a function; both with a fault.
 */
int dcgm_library_load(struct dcgm_library *library, struct fault *fault);

#endif
