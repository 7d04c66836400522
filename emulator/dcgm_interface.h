/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations of the part of DCGM's interface that the emulator has, by DCGM's names. They are
 * apart from those of src, so that a layout that is wrong there does not fit here.
 */
#ifndef COLLOC_EMULATOR_DCGM_INTERFACE_H
#define COLLOC_EMULATOR_DCGM_INTERFACE_H

#include <stdint.h>

typedef int dcgmReturn_t;
typedef uintptr_t dcgmHandle_t, dcgmGpuGrp_t, dcgmFieldGrp_t;

enum {
    DCGM_ST_OK = 0,
    DCGM_ST_BADPARAM = -1,
    DCGM_ST_UNINITIALIZED = -10,
    DCGM_ST_VER_MISMATCH = -12,
    DCGM_ST_NO_DATA = -14,
    DCGM_ST_NOT_WATCHED = -16,
    DCGM_ST_MAX_LIMIT = -24,
};

enum { DCGM_FE_GPU = 1, DCGM_FE_GPU_I = 4, DCGM_FE_GPU_CI = 5 };
enum { DCGM_FI_DEV_UUID = 54, DCGM_FV_FLAG_LIVE_DATA = 1 };
enum { DCGM_MAX_NUM_DEVICES = 32, DCGM_MAX_HIERARCHY_INFO = 448, DCGM_GROUP_MAX_ENTITIES = 64 };

#define DCGM_INT64_NOT_SUPPORTED 0x7ffffffffffffff2
#define DCGM_FP64_NOT_SUPPORTED  140737488355330.0

/* The first words of the structures: a version, and the size as it is in DCGM. */
enum {
    dcgmConnectV2Params_version2 = 0x2000010,
    dcgmStartEmbeddedV2Params_version1 = 0x1000048,
    dcgmMigHierarchy_version2 = 0x2011f08,
};

typedef struct {
    unsigned entityGroupId, entityId;
} dcgmGroupEntityPair_t;

typedef struct {
    unsigned version, persistAfterDisconnect, timeoutMs, addressIsUnixSocket;
} dcgmConnectV2Params_v2;

typedef struct {
    unsigned version, opMode;
    dcgmHandle_t dcgmHandle;
    const char *logFile;
    unsigned severity, denyListCount, denyList[10];
} dcgmStartEmbeddedV2Params_v1;

typedef struct {
    unsigned version, count;
    struct {
        dcgmGroupEntityPair_t entity, parent;
        char gpuUuid[128];
        unsigned nvmlGpuIndex, nvmlInstanceId, nvmlComputeInstanceId, nvmlMigProfileId,
            nvmlProfileSlices;
    } entityList[DCGM_MAX_HIERARCHY_INFO];
} dcgmMigHierarchy_v2;

typedef struct {
    unsigned version;
    unsigned entityGroupId, entityId;
    uint16_t fieldId, fieldType; /* 'd', 'i', 's' */
    int status;
    unsigned unused;
    int64_t ts;
    union {
        int64_t i64;
        double dbl;
        char str[256];
        char blob[4096];
    } value;
} dcgmFieldValue_v2;

const char *errorString(dcgmReturn_t result);
dcgmReturn_t dcgmInit(void);
dcgmReturn_t dcgmConnect_v2(
    const char *address, dcgmConnectV2Params_v2 *params, dcgmHandle_t *handle);
dcgmReturn_t dcgmStartEmbedded_v2(dcgmStartEmbeddedV2Params_v1 *params);
dcgmReturn_t dcgmGetAllDevices(dcgmHandle_t handle, unsigned *ids, int *count);
dcgmReturn_t dcgmGetGpuInstanceHierarchy(dcgmHandle_t handle, dcgmMigHierarchy_v2 *tree);
dcgmReturn_t dcgmGroupCreate(dcgmHandle_t handle, int type, const char *name, dcgmGpuGrp_t *group);
dcgmReturn_t dcgmGroupAddEntity(
    dcgmHandle_t handle, dcgmGpuGrp_t group, unsigned entity_group, unsigned id);
dcgmReturn_t dcgmFieldGroupCreate(dcgmHandle_t handle, int count, const unsigned short *fields,
    const char *name, dcgmFieldGrp_t *group);
dcgmReturn_t dcgmWatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields,
    long long period_us, double keep_s, int keep_samples);
dcgmReturn_t dcgmEntitiesGetLatestValues(dcgmHandle_t handle, const dcgmGroupEntityPair_t *entities,
    unsigned entity_count, const unsigned short *fields, unsigned field_count, unsigned flags,
    dcgmFieldValue_v2 *values);

#endif
