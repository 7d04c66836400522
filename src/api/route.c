/* SPDX-License-Identifier: Apache-2.0 */
/* Routing: the first route whose pattern matches the path and whose method is the request's. */
#include <string.h>

#include "api/server_private.h"

/* Parses the {id} at the start of the path: "12", or "12_7", whose name is "7". Returns its length;
 * 0: there is none. */
static size_t match_id(const char *path, uint64_t *ret_id, char ret_name[ROUTE_NAME_SIZE])
{
    char digits[20] = "";
    size_t n = strspn(path, "0123456789");
    int64_t id;
    if (n >= sizeof digits)
        return 0;
    memcpy(digits, path, n);
    if (parse_int64(digits, 1, INT64_MAX, &id) < 0)
        return 0;
    *ret_id = (uint64_t)id;
    size_t more = path[n] == '_' ? strspn(path + n + 1, "0123456789") : 0;
    if (more == 0 || more >= ROUTE_NAME_SIZE)
        return n;
    memcpy(ret_name, path + n + 1, more);
    ret_name[more] = '\0';
    return n + 1 + more;
}

static size_t match_name(const char *path, char ret_name[ROUTE_NAME_SIZE])
{
    size_t n = strcspn(path, "/");
    if (n >= ROUTE_NAME_SIZE)
        return 0;
    memcpy(ret_name, path, n);
    ret_name[n] = '\0';
    return n;
}

/* Does the path match the pattern? */
static bool path_matches(
    const char *pattern, const char *path, uint64_t *ret_id, char ret_name[ROUTE_NAME_SIZE])
{
    *ret_id = 0;
    *ret_name = '\0';
    while (*pattern && *path) {
        bool is_id = strncmp(pattern, "{id}", 4) == 0, is_name = strncmp(pattern, "{name}", 6) == 0;
        if (is_id || is_name) {
            size_t n = is_id ? match_id(path, ret_id, ret_name) : match_name(path, ret_name);
            if (n == 0)
                return false;
            pattern += is_id ? 4 : 6;
            path += n;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && !*path;
}

const struct api_route *route_find(const struct api_route *routes, const char *method,
    const char *path, uint64_t *ret_id, char ret_name[ROUTE_NAME_SIZE], int *ret_status)
{
    *ret_status = 404;
    for (const struct api_route *route = routes; route->method; route++) {
        if (!path_matches(route->path, path, ret_id, ret_name))
            continue;
        if (strcmp(route->method, method) == 0)
            return route;
        *ret_status = 405;
    }
    return NULL;
}
