/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An emulated libdcgm.so.4, as far as colloc-dcgm needs NVIDIA's: one engine in this process, one
 * group of fields, one client. The first value of a field is there one period after its watch.
 *
 * COLLOC_EMULATOR_DCGM=CALL:FAULT makes a call fail, such as dcgmInit:hang. Faults: `refuse`
 * (returns the error of another version), `hang`, `crash`; of dcgmEntitiesGetLatestValues also
 * `blank` (values that mean "not supported"), `none` (no value yet) and `old` (no new ones).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "emulator/dcgm_fields.h"
#include "emulator/dcgm_interface.h"

enum { ENGINE = 1, FIELDS_MAX = 32 };

static struct {
    struct world *world;
    bool has_engine, has_fields;
    struct gpu_sample samples[GPUS_MAX][INSTANCES_MAX];
    bool is_watched[GPUS_MAX][INSTANCES_MAX];
    dcgmGpuGrp_t groups;
    dcgmGroupEntityPair_t group[DCGM_GROUP_MAX_ENTITIES]; /* of the last group */
    size_t group_size;
} state;

static bool has_fault(const char *call, const char *fault)
{
    const char *set = getenv("COLLOC_EMULATOR_DCGM");
    size_t size = strlen(call);
    return set && strncmp(set, call, size) == 0 && set[size] == ':' &&
           strcmp(set + size + 1, fault) == 0;
}

/* Before a call: hangs, crashes, or returns what it has to refuse with. */
static dcgmReturn_t begin_call(const char *call)
{
    while (has_fault(call, "hang"))
        pause();
    if (has_fault(call, "crash"))
        abort();
    return has_fault(call, "refuse") ? DCGM_ST_VER_MISMATCH : DCGM_ST_OK;
}

const char *errorString(dcgmReturn_t result)
{
    return result == DCGM_ST_VER_MISMATCH ? "API version mismatch" : "Emulated error";
}

dcgmReturn_t dcgmInit(void)
{
    dcgmReturn_t r = begin_call(__func__);
    const char *path = getenv("COLLOC_EMULATOR");

    if (r == DCGM_ST_OK && (!path || world_open(path, NULL, &state.world) < 0))
        return DCGM_ST_UNINITIALIZED;
    return r;
}

/* ---- the engine ---- */

static dcgmReturn_t open_engine(dcgmHandle_t *handle)
{
    state.has_engine = state.world != NULL;
    *handle = ENGINE;
    return state.world ? DCGM_ST_OK : DCGM_ST_UNINITIALIZED;
}

dcgmReturn_t dcgmConnect_v2(
    const char *address, dcgmConnectV2Params_v2 *params, dcgmHandle_t *handle)
{
    dcgmReturn_t r = begin_call(__func__);
    if (r == DCGM_ST_OK && params->version != dcgmConnectV2Params_version2)
        return DCGM_ST_VER_MISMATCH;
    return r == DCGM_ST_OK ? open_engine(handle) : r;
}

dcgmReturn_t dcgmStartEmbedded_v2(dcgmStartEmbeddedV2Params_v1 *params)
{
    dcgmReturn_t r = begin_call(__func__);
    if (r == DCGM_ST_OK && params->version != dcgmStartEmbeddedV2Params_version1)
        return DCGM_ST_VER_MISMATCH;
    return r == DCGM_ST_OK ? open_engine(&params->dcgmHandle) : r;
}

static dcgmReturn_t begin_engine_call(const char *call, dcgmHandle_t handle)
{
    dcgmReturn_t r = begin_call(call);
    return r == DCGM_ST_OK && (!state.has_engine || handle != ENGINE) ? DCGM_ST_UNINITIALIZED : r;
}

/* ---- entities ---- */

dcgmReturn_t dcgmGetAllDevices(dcgmHandle_t handle, unsigned *ids, int *count)
{
    dcgmReturn_t r = begin_engine_call(__func__, handle);
    *count = r == DCGM_ST_OK ? state.world->gpu_count : 0;
    for (int g = 0; g < *count && g < DCGM_MAX_NUM_DEVICES; g++)
        ids[g] = (unsigned)g;
    return r;
}

static void add_instance(dcgmMigHierarchy_v2 *tree, struct entity entity)
{
    memset(&tree->entityList[tree->count], 0xff, sizeof(tree->entityList[0]));
    tree->entityList[tree->count].entity = (dcgmGroupEntityPair_t){
        DCGM_FE_GPU_I, (unsigned)dcgm_instance_number(entity)};
    tree->entityList[tree->count].parent = (dcgmGroupEntityPair_t){
        DCGM_FE_GPU, (unsigned)entity.gpu};
    memset(tree->entityList[tree->count].gpuUuid, 0, sizeof(tree->entityList[0].gpuUuid));
    strcpy(tree->entityList[tree->count].gpuUuid, state.world->gpus[entity.gpu].units[0].uuid);
    tree->entityList[tree->count].nvmlGpuIndex = (unsigned)entity.gpu;
    tree->entityList[tree->count].nvmlInstanceId = (unsigned)entity.instance;
    tree->count++;
}

dcgmReturn_t dcgmGetGpuInstanceHierarchy(dcgmHandle_t handle, dcgmMigHierarchy_v2 *tree)
{
    dcgmReturn_t r = begin_engine_call(__func__, handle);
    if (r != DCGM_ST_OK || tree->version != dcgmMigHierarchy_version2)
        return DCGM_ST_VER_MISMATCH;
    tree->count = 0;
    for (int g = 0; g < state.world->gpu_count; g++)
        for (int i = 1; i < INSTANCES_MAX && tree->count < DCGM_MAX_HIERARCHY_INFO; i++)
            if (dcgm_is_instance(state.world, (struct entity){g, i}))
                add_instance(tree, (struct entity){g, i});
    return r;
}

/* The reverse of dcgm_instance_number. */
static bool find_entity(unsigned group, unsigned id, struct entity *ret_entity)
{
    for (int g = 0; g < state.world->gpu_count; g++) {
        *ret_entity = (struct entity){g, 0};
        if (group == DCGM_FE_GPU && id == (unsigned)g)
            return true;
        for (int i = 1; i < INSTANCES_MAX && group == DCGM_FE_GPU_I; i++) {
            *ret_entity = (struct entity){g, i};
            if (dcgm_is_instance(state.world, *ret_entity) &&
                id == (unsigned)dcgm_instance_number(*ret_entity))
                return true;
        }
    }
    return false;
}

/* ---- groups and watches ---- */

dcgmReturn_t dcgmGroupCreate(dcgmHandle_t handle, int type, const char *name, dcgmGpuGrp_t *group)
{
    dcgmReturn_t r = begin_engine_call(__func__, handle);
    if (r == DCGM_ST_OK) {
        *group = ++state.groups;
        state.group_size = 0;
    }
    return r;
}

dcgmReturn_t dcgmGroupAddEntity(
    dcgmHandle_t handle, dcgmGpuGrp_t group, unsigned entity_group, unsigned id)
{
    struct entity entity;
    dcgmReturn_t r = begin_engine_call(__func__, handle);
    if (r != DCGM_ST_OK || group != state.groups || !find_entity(entity_group, id, &entity))
        return r == DCGM_ST_OK ? DCGM_ST_BADPARAM : r;
    if (state.group_size == DCGM_GROUP_MAX_ENTITIES)
        return DCGM_ST_MAX_LIMIT;
    state.group[state.group_size++] = (dcgmGroupEntityPair_t){entity_group, id};
    return r;
}

dcgmReturn_t dcgmFieldGroupCreate(dcgmHandle_t handle, int count, const unsigned short *fields,
    const char *name, dcgmFieldGrp_t *group)
{
    dcgmReturn_t r = begin_engine_call(__func__, handle);
    for (int i = 0; i < count && r == DCGM_ST_OK; i++)
        if (!dcgm_field_find(fields[i]))
            r = DCGM_ST_BADPARAM;
    state.has_fields = r == DCGM_ST_OK;
    *group = ENGINE;
    return r;
}

dcgmReturn_t dcgmWatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields,
    long long period_us, double keep_s, int keep_samples)
{
    dcgmReturn_t r = begin_engine_call(__func__, handle);
    if (r != DCGM_ST_OK || group != state.groups || !state.has_fields || period_us <= 0)
        return r == DCGM_ST_OK ? DCGM_ST_BADPARAM : r;
    for (size_t i = 0; i < state.group_size; i++) {
        struct entity entity;
        if (!find_entity(state.group[i].entityGroupId, state.group[i].entityId, &entity))
            return DCGM_ST_BADPARAM;
        world_enter(state.world);
        dcgm_sample_take(&state.samples[entity.gpu][entity.instance], state.world, entity);
        world_leave(state.world);
        state.is_watched[entity.gpu][entity.instance] = true;
    }
    return r;
}

/* ---- values ---- */

static void write_uuid(dcgmFieldValue_v2 *value, struct entity entity)
{
    value->fieldType = 's';
    strcpy(value->value.str, state.world->gpus[entity.gpu].units[0].uuid);
}

static void write_number(
    dcgmFieldValue_v2 *value, const struct field *field, double number, bool is_known)
{
    value->fieldType = field->digits > 0 ? 'd' : 'i';
    if (field->digits > 0)
        value->value.dbl = is_known ? number : DCGM_FP64_NOT_SUPPORTED;
    else
        value->value.i64 = is_known ? (int64_t)number : DCGM_INT64_NOT_SUPPORTED;
}

static void write_field(dcgmFieldValue_v2 *value, const struct field *field, struct entity entity)
{
    const struct gpu_sample *sample = &state.samples[entity.gpu][entity.instance];
    const char *call = "dcgmEntitiesGetLatestValues";
    bool is_known = dcgm_is_known(field, sample, entity) && !has_fault(call, "blank");

    write_number(value, field, field->value(sample), is_known);
    if (!state.is_watched[entity.gpu][entity.instance])
        value->status = DCGM_ST_NOT_WATCHED;
    if (has_fault(call, "none"))
        value->status = DCGM_ST_NO_DATA;
    if (has_fault(call, "old"))
        value->ts -= HOUR_US;
}

static dcgmReturn_t write_value(
    dcgmFieldValue_v2 *value, struct entity entity, unsigned id, unsigned flags)
{
    const struct field *field = dcgm_field_find(id);

    value->fieldId = (uint16_t)id;
    value->status = DCGM_ST_OK;
    value->ts = clock_wall_us();
    if (id == DCGM_FI_DEV_UUID && flags == DCGM_FV_FLAG_LIVE_DATA)
        write_uuid(value, entity);
    else if (field)
        write_field(value, field, entity);
    else
        return DCGM_ST_BADPARAM;
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmEntitiesGetLatestValues(dcgmHandle_t handle, const dcgmGroupEntityPair_t *entities,
    unsigned entity_count, const unsigned short *fields, unsigned field_count, unsigned flags,
    dcgmFieldValue_v2 *values)
{
    dcgmReturn_t r = begin_engine_call(__func__, handle);
    for (unsigned e = 0; e < entity_count && r == DCGM_ST_OK; e++) {
        struct entity entity;
        if (!find_entity(entities[e].entityGroupId, entities[e].entityId, &entity))
            return DCGM_ST_BADPARAM;
        world_enter(state.world);
        if (!flags)
            dcgm_sample_take(&state.samples[entity.gpu][entity.instance], state.world, entity);
        for (unsigned f = 0; f < field_count && r == DCGM_ST_OK; f++, values++) {
            values->entityGroupId = entities[e].entityGroupId;
            values->entityId = entities[e].entityId;
            r = write_value(values, entity, fields[f], flags);
        }
        world_leave(state.world);
    }
    return r;
}
