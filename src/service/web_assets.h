/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web page, which are part of the program. */
#ifndef COLLOC_SERVICE_WEB_ASSETS_H
#define COLLOC_SERVICE_WEB_ASSETS_H

#include <stddef.h>

struct web_asset {
    const char *path; /* "/page.js" */
    const char *type; /* Content-Type */
    const char *data;
    size_t size;
};

/* Returns NULL for another path. */
const struct web_asset *web_asset_find(const char *path);

#endif
