/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of DCGM's C interface that colloc-dcgm uses: layouts, version words and numbers, as in
 * dcgm_structs.h, dcgm_agent.h and dcgm_fields.h of DCGM. Compared with these headers of 3.1.8,
 * 3.3.9, 4.0.0, 4.4.2 and 4.6.0: all of this is the same in each.
 */
#ifndef COLLOC_GPU_DCGM_ABI_H
#define COLLOC_GPU_DCGM_ABI_H

#include <stdint.h>

typedef uintptr_t dcgm_abi_handle; /* of a connection, a group of entities, a group of fields */

enum { DCGM_ABI_OK = 0 }; /* of each function; negative numbers are errors */

enum dcgm_abi_kind { DCGM_ABI_GPU = 1, DCGM_ABI_GPU_INSTANCE = 4 };

enum {
    DCGM_ABI_MODE_AUTO = 1,   /* an embedded engine updates watched fields by itself */
    DCGM_ABI_GROUP_EMPTY = 1, /* a new group without entities */
    DCGM_ABI_FLAG_LIVE = 1,   /* from the driver, not the last watched value */
    DCGM_ABI_FIELD_UUID = 54,
    DCGM_ABI_GPUS_MAX = 32,
    DCGM_ABI_GROUP_MAX = 64,       /* entities in a group; 1024 from DCGM 4 on */
    DCGM_ABI_PLACES_MAX = 32 * 14, /* instances and compute instances */
    DCGM_ABI_MODULES_MAX = 10,     /* that an embedded engine is asked not to load */
    DCGM_ABI_TYPE_DOUBLE = 'd',    /* of a value */
    DCGM_ABI_TYPE_INTEGER = 'i',   /* of a value */
    DCGM_ABI_TYPE_TEXT = 's',      /* of a value */
};

/* From these on, a value means "not known" for one of several reasons. */
#define DCGM_ABI_BLANK_DOUBLE  140737488355328.0
#define DCGM_ABI_BLANK_INTEGER INT64_C(0x7ffffffffffffff0)

/* The first word of a structure: its size and its version. */
#define DCGM_ABI_VERSION(type, version) (unsigned)(sizeof(type) | (version) << 24U)

struct dcgm_abi_connect {
    unsigned version;
    unsigned persists; /* watches outlive the connection */
    unsigned timeout_ms;
    unsigned is_unix_socket; /* the address is the path of a socket */
};
#define DCGM_ABI_CONNECT_VERSION DCGM_ABI_VERSION(struct dcgm_abi_connect, 2U)

struct dcgm_abi_embedded {
    unsigned version;
    int mode;
    dcgm_abi_handle handle; /* the answer */
    const char *log_file;   /* NULL: none */
    int severity;
    unsigned denied_count;
    unsigned denied[DCGM_ABI_MODULES_MAX];
};
#define DCGM_ABI_EMBEDDED_VERSION DCGM_ABI_VERSION(struct dcgm_abi_embedded, 1U)

struct dcgm_abi_entity {
    int kind;
    unsigned number;
};

/* Where an instance or a compute instance is; numbers are NVML's, and -1 where there is none. */
struct dcgm_abi_place {
    struct dcgm_abi_entity entity, parent;
    char card_uuid[128];
    unsigned card, gpu_instance, compute_instance;
    unsigned profile, slices;
};

struct dcgm_abi_hierarchy {
    unsigned version;
    unsigned count;
    struct dcgm_abi_place place[DCGM_ABI_PLACES_MAX];
};
#define DCGM_ABI_HIERARCHY_VERSION DCGM_ABI_VERSION(struct dcgm_abi_hierarchy, 2U)

struct dcgm_abi_value {
    unsigned version;
    struct dcgm_abi_entity entity;
    unsigned short field, type;
    int status; /* DCGM_ABI_OK, or why there is no value */
    unsigned unused;
    int64_t at_us; /* since 1970 */
    union {
        int64_t integer;
        double number;
        char text[256];
        char bytes[4096];
    } value;
};

_Static_assert(sizeof(struct dcgm_abi_connect) == 16, "as in DCGM");
_Static_assert(sizeof(struct dcgm_abi_embedded) == 72, "as in DCGM");
_Static_assert(sizeof(struct dcgm_abi_place) == 164, "as in DCGM");
_Static_assert(sizeof(struct dcgm_abi_hierarchy) == 73480, "as in DCGM");
_Static_assert(sizeof(struct dcgm_abi_value) == 4128, "as in DCGM");

#endif
