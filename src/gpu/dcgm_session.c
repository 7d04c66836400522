/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libdcgm, in the order that DCGM demands: init, connect (or start an engine), groups of
 * entities and of fields, watch, values. The watches of a connection end with it.
 */
#include "gpu/dcgm_session.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Where nv-hostengine listens by default, and with its option -d. */
#define ENGINE_ADDRESS "127.0.0.1"
#define ENGINE_PORT    5555
#define ENGINE_SOCKET  "/tmp/nv-hostengine"

/* Chosen: an engine of this machine answers within milliseconds, or is overloaded. */
enum { CONNECT_MAX_MS = 3000 };

/* How long the engine keeps values: only the last one is read. Chosen. */
#define KEEP_S 30.0

static int explain_failure(
    const struct dcgm_session *session, int result, const char *call, struct fault *fault)
{
    const char *text = session->library.error_text(result);
    return fault_set(
        fault, EIO, "%s: %s: %s", session->library.name, call, text ? text : "unknown error");
}

/* ---- the engine ---- */

/* libdcgm itself retries for seconds where no engine listens. Returns the socket, or -1. */
static int try_connect(const struct sockaddr *address, socklen_t size)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, address, size) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool listens_on_port(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(ENGINE_PORT),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = try_connect((const struct sockaddr *)&address, sizeof address);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Anybody can make a file in /tmp: an engine of another user is not trusted. */
static bool listens_on_socket(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = ENGINE_SOCKET};
    struct ucred peer;
    socklen_t size = sizeof peer;
    int fd = try_connect((const struct sockaddr *)&address, sizeof address);
    if (fd < 0)
        return false;
    bool is_trusted = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                      (peer.uid == 0 || peer.uid == geteuid());
    close(fd);
    return is_trusted;
}

static int connect_to(
    struct dcgm_session *session, const char *address, bool is_unix_socket, struct fault *fault)
{
    struct dcgm_abi_connect options = {
        .version = DCGM_ABI_CONNECT_VERSION,
        .timeout_ms = CONNECT_MAX_MS,
        .is_unix_socket = is_unix_socket,
    };
    session->engine = "nv-hostengine";
    int result = session->library.connect(address, &options, &session->handle);
    return result == DCGM_ABI_OK ? 0 : explain_failure(session, result, "dcgmConnect_v2", fault);
}

static int start_embedded(struct dcgm_session *session, struct fault *fault)
{
    struct dcgm_abi_embedded options = {
        .version = DCGM_ABI_EMBEDDED_VERSION,
        .mode = DCGM_ABI_MODE_AUTO,
    };
    session->engine = "its embedded engine";
    int result = session->library.start_embedded(&options);
    session->handle = options.handle;
    return result == DCGM_ABI_OK ? 0
                                 : explain_failure(session, result, "dcgmStartEmbedded_v2", fault);
}

/* An engine that runs and refuses has another version, or is in trouble: a second one beside it
 * does not help, since it would want the same counters. */
static int find_engine(struct dcgm_session *session, struct fault *fault)
{
    if (listens_on_port())
        return connect_to(session, ENGINE_ADDRESS, false, fault);
    if (listens_on_socket())
        return connect_to(session, ENGINE_SOCKET, true, fault);
    return start_embedded(session, fault);
}

int dcgm_session_open(struct dcgm_session *session, struct fault *fault)
{
    *session = (struct dcgm_session){0};
    int r = dcgm_library_load(&session->library, fault);
    if (r < 0)
        return r;
    int result = session->library.init();
    if (result != DCGM_ABI_OK)
        return explain_failure(session, result, "dcgmInit", fault);
    return find_engine(session, fault);
}

/* ---- entities ---- */

/* Returns DCGM's result; a GPU without a UUID is not the one. */
static int compare_uuid(struct dcgm_session *session, const struct dcgm_abi_entity *gpu,
    const char *uuid, bool *ret_is_equal)
{
    static struct dcgm_abi_value value;
    const unsigned short field = DCGM_ABI_FIELD_UUID;
    value = (struct dcgm_abi_value){0};
    int result = session->library.latest(
        session->handle, gpu, 1, &field, 1, DCGM_ABI_FLAG_LIVE, &value);
    *ret_is_equal = value.status == DCGM_ABI_OK && value.type == DCGM_ABI_TYPE_TEXT &&
                    strncmp(value.value.text, uuid, sizeof value.value.text) == 0;
    return result;
}

static int find_gpu(struct dcgm_session *session, const char *uuid, struct fault *fault,
    struct dcgm_abi_entity *ret_entity)
{
    unsigned numbers[DCGM_ABI_GPUS_MAX];
    int count = 0;
    int result = session->library.all_devices(session->handle, numbers, &count);
    if (result != DCGM_ABI_OK)
        return explain_failure(session, result, "dcgmGetAllDevices", fault);
    for (int i = 0; i < count && i < DCGM_ABI_GPUS_MAX; i++) {
        bool is_it;
        *ret_entity = (struct dcgm_abi_entity){DCGM_ABI_GPU, numbers[i]};
        result = compare_uuid(session, ret_entity, uuid, &is_it);
        if (result != DCGM_ABI_OK)
            return explain_failure(session, result, "dcgmEntitiesGetLatestValues", fault);
        if (is_it)
            return 0;
    }
    return DCGM_NOT_LISTED;
}

static bool is_instance_of(
    const struct dcgm_abi_place *place, const char *card_uuid, unsigned gpu_instance)
{
    return place->entity.kind == DCGM_ABI_GPU_INSTANCE && place->gpu_instance == gpu_instance &&
           strncmp(place->card_uuid, card_uuid, sizeof place->card_uuid) == 0;
}

static int find_instance(struct dcgm_session *session, const char *card_uuid, unsigned gpu_instance,
    struct fault *fault, struct dcgm_abi_entity *ret_entity)
{
    static struct dcgm_abi_hierarchy tree;
    tree = (struct dcgm_abi_hierarchy){.version = DCGM_ABI_HIERARCHY_VERSION};
    int result = session->library.hierarchy(session->handle, &tree);
    if (result != DCGM_ABI_OK)
        return explain_failure(session, result, "dcgmGetGpuInstanceHierarchy", fault);
    for (size_t i = 0; i < tree.count && i < DCGM_ABI_PLACES_MAX; i++) {
        *ret_entity = tree.place[i].entity;
        if (is_instance_of(&tree.place[i], card_uuid, gpu_instance))
            return 0;
    }
    return DCGM_NOT_LISTED;
}

int dcgm_session_find(struct dcgm_session *session, const char *card_uuid, int gpu_instance,
    struct fault *fault, struct dcgm_abi_entity *ret_entity)
{
    if (gpu_instance < 0)
        return find_gpu(session, card_uuid, fault, ret_entity);
    return find_instance(session, card_uuid, (unsigned)gpu_instance, fault, ret_entity);
}

/* ---- values ---- */

static int watch_group(struct dcgm_session *session, const struct dcgm_abi_entity *entities,
    size_t count, dcgm_abi_handle fields, int64_t period_us, struct fault *fault)
{
    const struct dcgm_library *library = &session->library;
    dcgm_abi_handle group;
    int result = library->group_create(session->handle, DCGM_ABI_GROUP_EMPTY, "colloc", &group);
    if (result != DCGM_ABI_OK)
        return explain_failure(session, result, "dcgmGroupCreate", fault);
    for (size_t i = 0; i < count && result == DCGM_ABI_OK; i++)
        result = library->group_add(session->handle, group, entities[i].kind, entities[i].number);
    if (result != DCGM_ABI_OK)
        return explain_failure(session, result, "dcgmGroupAddEntity", fault);
    result = library->watch(session->handle, group, fields, period_us, KEEP_S, 0);
    return result == DCGM_ABI_OK ? 0 : explain_failure(session, result, "dcgmWatchFields", fault);
}

int dcgm_session_watch(struct dcgm_session *session, const struct dcgm_abi_entity *entities,
    size_t entity_count, const unsigned short *fields, size_t field_count, int64_t period_us,
    struct fault *fault)
{
    char name[32]; /* an engine has each only once */
    dcgm_abi_handle group_of_fields;
    int r = 0;
    snprintf(name, sizeof name, "colloc-%ld", (long)getpid());
    int result = session->library.fields_create(
        session->handle, (int)field_count, fields, name, &group_of_fields);
    if (result != DCGM_ABI_OK)
        return explain_failure(session, result, "dcgmFieldGroupCreate", fault);
    for (size_t i = 0; i < entity_count && r == 0; i += DCGM_ABI_GROUP_MAX) {
        size_t left = entity_count - i;
        r = watch_group(session, entities + i,
            left < DCGM_ABI_GROUP_MAX ? left : DCGM_ABI_GROUP_MAX, group_of_fields, period_us,
            fault);
    }
    return r;
}

static struct reading decode_value(const struct dcgm_abi_value *value, int64_t oldest_us)
{
    if (value->status != DCGM_ABI_OK || value->at_us < oldest_us)
        return READING_NONE;
    if (value->type == DCGM_ABI_TYPE_DOUBLE && value->value.number < DCGM_ABI_BLANK_DOUBLE)
        return reading_of(value->value.number);
    if (value->type == DCGM_ABI_TYPE_INTEGER && value->value.integer < DCGM_ABI_BLANK_INTEGER)
        return reading_of((double)value->value.integer);
    return READING_NONE;
}

int dcgm_session_read(struct dcgm_session *session, const struct dcgm_abi_entity *entity,
    const unsigned short *fields, size_t field_count, int64_t oldest_us, struct fault *fault,
    struct reading *ret_readings)
{
    struct dcgm_abi_value *values = calloc(field_count, sizeof *values);
    if (!values)
        return fault_set(fault, ENOMEM, "out of memory");
    int result = session->library.latest(
        session->handle, entity, 1, fields, (unsigned)field_count, 0, values);
    for (size_t i = 0; i < field_count; i++)
        ret_readings[i] = READING_NONE;
    for (size_t i = 0; i < field_count && result == DCGM_ABI_OK; i++)
        for (size_t k = 0; k < field_count; k++)
            if (values[i].field == fields[k])
                ret_readings[k] = decode_value(&values[i], oldest_us);
    free(values);
    return result == DCGM_ABI_OK
               ? 0
               : explain_failure(session, result, "dcgmEntitiesGetLatestValues", fault);
}
