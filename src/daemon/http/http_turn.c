/* SPDX-License-Identifier: Apache-2.0 */
/* The next turn of the server, for all that answers a request outside of its handler. */
#include "daemon/http/http_answers.h"
#include "daemon/http/http_state.h"

/* Not by a timer of 0 ms: a timer that restarts itself blocks everything else. */
void http_serve_soon(struct http *http)
{
    if (!http->is_closed)
        uv_idle_start(&http->server_soon, http->on_server_soon);
}
