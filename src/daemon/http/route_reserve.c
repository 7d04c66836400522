/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations in advance (core/ask/set_aside.c): GET /v1/reservations lists them for all users;
 * POST makes one, and POST .../ID/cancel ends one, for root and operators.
 */
#include <errno.h>

#include "base/log.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"

#define SECONDS_MAX 1e10 /* since 1970; the year 2286 */

static json_t *users_json(struct http *http, const struct advance *advance)
{
    json_t *users = json_array();
    for (int i = 0; i < advance->n_users; i++)
        json_array_append_new(
            users, json_string(names_of_uid(http->parts.names, advance->users[i])->name));
    return users;
}

static json_t *advance_json(struct http *http, const struct advance *advance)
{
    struct driver *driver = http->parts.driver;
    return json_pack("{s:I, s:i, s:f, s:f, s:b, s:o}", "id", (json_int_t)advance->id, "gpus",
        advance->gpus, "from", (double)driver_wall_us(driver, advance->from_us) / 1e6, "until",
        (double)driver_wall_us(driver, advance->until_us) / 1e6, "active",
        advance->from_us <= driver_now_us(driver), "users", users_json(http, advance));
}

void route_reservations(void *context, struct api_request *request)
{
    struct http *http = context;
    json_t *list = json_array();
    int n;
    const struct advance *advances = core_advances(http->parts.core, &n);
    for (int i = 0; i < n; i++)
        if (advances[i].until_us > driver_now_us(http->parts.driver))
            json_array_append_new(list, advance_json(http, &advances[i]));
    api_reply(request, 200, json_pack("{s:o}", "reservations", list));
}

/* ---- changes ---- */

static int read_users(const json_t *body, struct advance *advance, struct fault *fault)
{
    const json_t *uids = json_object_get(body, "uids"), *uid;
    size_t i;
    if (!json_is_array(uids) || json_array_size(uids) < 1 ||
        json_array_size(uids) > ADVANCE_USERS_MAX)
        return field_wrong(fault, "uids", "a list of 1 to 32 user ids");
    json_array_foreach(uids, i, uid) {
        if (!json_is_integer(uid) || json_integer_value(uid) < 0 ||
            json_integer_value(uid) > UINT32_MAX)
            return field_wrong(fault, "uids", "a list of 1 to 32 user ids");
        advance->users[advance->n_users++] = (uint32_t)json_integer_value(uid);
    }
    return 0;
}

static int read_advance(
    struct http *http, const json_t *body, struct advance *advance, struct fault *fault)
{
    struct driver *driver = http->parts.driver;
    int64_t now_us = driver_now_us(driver), gpus = 0;
    double from_s = (double)driver_wall_us(driver, now_us) / 1e6, until_s = 0;
    bool has_gpus = false, has_until = false, has_from;
    int r = json_is_object(body) ? 0 : fault_set(fault, EINVAL, "the body has to be an object");
    if (r == 0)
        r = field_integer(body, "gpus", 1, 1024, fault, &has_gpus, &gpus);
    if (r == 0)
        r = field_number(body, "from", 0, SECONDS_MAX, fault, &has_from, &from_s);
    if (r == 0)
        r = field_number(body, "until", 0, SECONDS_MAX, fault, &has_until, &until_s);
    if (r == 0)
        r = read_users(body, advance, fault);
    if (r == 0 && (!has_gpus || !has_until))
        r = fault_set(fault, EINVAL, "gpus and until are required");
    int64_t ahead_us = driver_wall_us(driver, now_us) - now_us;
    advance->id = core_next_advance_id(http->parts.core);
    advance->gpus = (int)gpus;
    advance->from_us = (int64_t)(from_s * 1e6) - ahead_us;
    advance->until_us = (int64_t)(until_s * 1e6) - ahead_us;
    advance->from_us = advance->from_us > 0 ? advance->from_us : 0;
    return r == 0 ? core_check_advance(http->parts.core, advance, now_us, fault) : r;
}

/* Feeds the event, and replies with the present or former reservation. */
static void feed_reservation(struct http *http, struct api_request *request,
    const struct event *event, const struct advance *advance)
{
    uid_t uid = api_request_peer(request).uid;
    json_t *shown = advance_json(http, advance);
    json_t *detail = author_detail(http, uid);
    uint64_t id = advance->id;
    if (driver_log_is_broken(http->parts.driver))
        api_reply_error(request, 507, "the event log cannot be written at the moment");
    else if (driver_feed(http->parts.driver, event, detail) != 0)
        api_reply_error(request, 409, "reservation %llu: it is over", (unsigned long long)id);
    else {
        log_info("audit event=%s reservation=%llu by_uid=%u",
            event->kind == EVENT_RESERVE ? "reserve" : "unreserve", (unsigned long long)id,
            (unsigned)uid);
        api_reply(request, event->kind == EVENT_RESERVE ? 201 : 200,
            json_pack("{s:O}", "reservation", shown));
    }
    json_decref(detail);
    json_decref(shown);
}

static void make_advance(struct http *http, struct api_request *request)
{
    struct event event = {.kind = EVENT_RESERVE, .time_us = driver_now_us(http->parts.driver)};
    struct fault fault = {0};
    if (read_advance(http, api_request_body(request), &event.reserve, &fault) < 0)
        api_reply_error(request, 400, "%s", fault.text);
    else
        feed_reservation(http, request, &event, &event.reserve);
}

static void cancel_advance(struct http *http, struct api_request *request)
{
    struct event event = {.kind = EVENT_UNRESERVE,
        .time_us = driver_now_us(http->parts.driver),
        .unreserve = api_request_id(request)};
    int n;
    const struct advance *advances = core_advances(http->parts.core, &n);
    for (int i = 0; i < n; i++) {
        if (advances[i].id == event.unreserve && advances[i].until_us > event.time_us) {
            const struct advance copy = advances[i];
            feed_reservation(http, request, &event, &copy);
            return;
        }
    }
    api_reply_error(
        request, 404, "there is no reservation %llu", (unsigned long long)event.unreserve);
}

void route_reserve(void *context, struct api_request *request)
{
    struct http *http = context;
    if (!may_administrate(http, api_request_peer(request).uid))
        api_reply_error(request, 403,
            "only root and operators reserve GPUs (the setting operators names them)");
    else if (api_request_id(request))
        cancel_advance(http, request);
    else
        make_advance(http, request);
}
