/* SPDX-License-Identifier: Apache-2.0 */
/* Routing: the first route whose pattern matches the path and whose method is the request's. */
#include <string.h>

#include "api/server_private.h"

/* Does the path match the pattern? {id} matches a decimal number above 0. */
static bool path_matches(const char *pattern, const char *path, uint64_t *ret_id)
{
    *ret_id = 0;
    while (*pattern && *path) {
        if (strncmp(pattern, "{id}", 4) == 0) {
            char digits[20] = "";
            size_t n = strspn(path, "0123456789");
            int64_t id;
            if (n >= sizeof digits)
                return false;
            memcpy(digits, path, n);
            if (parse_int64(digits, 1, INT64_MAX, &id) < 0)
                return false;
            *ret_id = (uint64_t)id;
            pattern += 4;
            path += n;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && !*path;
}

const struct api_route *route_find(const struct api_route *routes, const char *method,
    const char *path, uint64_t *ret_id, int *ret_status)
{
    *ret_status = 404;
    for (const struct api_route *route = routes; route->method; route++) {
        if (!path_matches(route->path, path, ret_id))
            continue;
        if (strcmp(route->method, method) == 0)
            return route;
        *ret_status = 405;
    }
    return NULL;
}
