/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of events over pretend streams: who may come, and what is left when some go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "service/event_readers.h"

struct api_request {
    uid_t uid;
    int status;
    bool is_refused; /* no stream can be made of it */
};

static struct {
    void (*on_closed)(void *context);
    int n_left;
} seen;

struct api_peer api_request_peer(const struct api_request *request)
{
    return (struct api_peer){.uid = request->uid};
}

void api_reply(struct api_request *request, int status, json_t *body)
{
    request->status = status;
}

struct api_stream *api_reply_stream(
    struct api_request *request, const char *type, void (*on_closed)(void *context), void *context)
{
    assert_string_equal(type, "text/event-stream");
    seen.on_closed = on_closed;
    request->status = request->is_refused ? 409 : 200;
    return request->is_refused ? NULL : context;
}

static void on_left(void *context)
{
    seen.n_left++;
}

static struct event_readers make_readers(void)
{
    seen.n_left = 0;
    return (struct event_readers){.max = 3, .per_user_max = 2, .on_left = on_left};
}

static struct event_reader *come(struct event_readers *readers, uid_t uid)
{
    struct api_request request = {.uid = uid};
    struct event_reader *reader = event_readers_add(readers, &request, 7);
    assert_non_null(reader);
    assert_int_equal(reader->place, 7);
    assert_int_equal(reader->uid, uid);
    return reader;
}

static void a_user_leaves_places_to_others(void **state)
{
    struct event_readers readers = make_readers();
    struct event_reader *ada[] = {come(&readers, 1), come(&readers, 1)};
    assert_true(event_readers_are_full(&readers, 1));
    assert_false(event_readers_are_full(&readers, 2));
    struct event_reader *bob = come(&readers, 2);
    assert_true(event_readers_are_full(&readers, 2));
    seen.on_closed(ada[0]);
    assert_false(event_readers_are_full(&readers, 1));
    seen.on_closed(bob);
    seen.on_closed(ada[1]);
    assert_null(readers.first);
    assert_int_equal(seen.n_left, 3);
}

/* The first, the last and one between them. */
static void whoever_leaves_the_others_stay(void **state)
{
    for (int gone = 0; gone < 3; gone++) {
        struct event_readers readers = make_readers();
        struct event_reader *all[3];
        for (int i = 0; i < 3; i++)
            all[i] = come(&readers, (uid_t)i);
        seen.on_closed(all[gone]);
        for (int i = 0; i < 3; i++)
            if (i != gone)
                seen.on_closed(all[i]);
        assert_null(readers.first);
    }
}

static void a_request_that_gets_no_stream_is_no_reader(void **state)
{
    struct event_readers readers = make_readers();
    struct api_request request = {.is_refused = true};
    assert_null(event_readers_add(&readers, &request, 0));
    assert_int_equal(request.status, 409);
    assert_null(readers.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_leaves_places_to_others),
        cmocka_unit_test(whoever_leaves_the_others_stay),
        cmocka_unit_test(a_request_that_gets_no_stream_is_no_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
