/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Xids: the numbers under which NVIDIA's driver reports GPU errors. Meanings, and what is to be
 * done, after NVIDIA's "Xid Errors" (docs.nvidia.com/deploy/xid-errors).
 */
#ifndef COLLOC_GPU_XID_H
#define COLLOC_GPU_XID_H

enum xid_blame {
    XID_OF_APPLICATION, /* what a faulty program causes: the GPU is well */
    XID_TO_WATCH,       /* worth a look; the GPU goes on */
    XID_OF_GPU,         /* the GPU is not to be used before it was reset or replaced */
};

struct xid {
    unsigned number;
    enum xid_blame blame;
    const char *words;
};

/* Numbers that are not in the table are worth a look. */
struct xid xid_find(unsigned number);

#endif
