/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Xids: the numbers by which NVIDIA's driver reports GPU errors. Meanings and remedies after
 * NVIDIA's "Xid Errors" (docs.nvidia.com/deploy/xid-errors).
 */
#ifndef COLLOC_GPU_XID_H
#define COLLOC_GPU_XID_H

enum xid_blame {
    XID_OF_APPLICATION, /* a faulty program caused it; the GPU is healthy */
    XID_TO_WATCH,       /* the GPU still works, but a person should watch it */
    XID_OF_GPU,         /* the GPU must be reset or replaced */
};

struct xid {
    unsigned number;
    enum xid_blame blame;
    const char *words;
};

/* Returns the table's entry; XID_TO_WATCH for numbers that are not in it. */
struct xid xid_find(unsigned number);

#endif
