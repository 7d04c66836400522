/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web page's server: the public API, to look but not to change, over TCP for browsers that have
 * logged in.
 *
 * Contract:
 *   1. Without a session only the page's own files and the login are answered; with one, requests
 *      count as that user's.
 *   2. Only GET is answered, and a login's or logout's POST: a page cannot change anything in its
 *      user's name.
 *   3. A request for another host name is refused (DNS rebinding), and answers carry a policy under
 *      which the page loads nothing from elsewhere.
 *   4. The secret of a session is never in a cookie, an address or a cached answer.
 */
#ifndef COLLOC_SERVICE_WEB_SERVER_H
#define COLLOC_SERVICE_WEB_SERVER_H

#include <uv.h>

#include "api/server.h"

struct web_options {
    uv_loop_t *loop;                /* borrowed, as the others; all outlive the part */
    const char *address;            /* the setting `web`; borrowed */
    size_t bytes_max;               /* of pending answers, of all users together */
    const struct api_route *routes; /* of the Unix socket; those of GET are served */
    void *context;                  /* of the routes */
};

struct web;

/* Creates the part, which does not listen yet. `options` is copied. Returns NULL when memory is
 * out. */
struct web *web_create(const struct web_options *options);

/* Warns of a setting `web` that lets other machines read the page unencrypted. */
void web_check(const char *setting);

/* Listens if the setting `web` is an address. Returns 0 or a fault. */
int web_open(struct web *web, struct fault *fault);

/* Ends listening and answers pending requests with 503. NULL is fine. */
void web_close(struct web *web);

/* Releases the part once the loop has run after web_close. NULL is fine. */
void web_destroy(struct web *web);

/* Sends answers that were made outside of the server's own turns. NULL is fine. */
void web_run(struct web *web);

/*
 * Makes the address of a login for this user, listening first if nothing does yet.
 *
 * ret_url: for the caller to free
 *
 * Returns 0; or -EPERM (the setting is "none"), -EAGAIN (too many logins), -EADDRINUSE or another
 * -errno, with a fault.
 */
int web_make_login(
    struct web *web, const struct api_peer *peer, struct fault *fault, char **ret_url);

#endif
