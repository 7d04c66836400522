/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle of web/dist (docs/web.md), embedded by scripts/embed when the daemon is built. */
#include "service/web_assets.h"

#include <string.h>

#include "base/array.h"
#include "service/built_in_web_css.h"
#include "service/built_in_web_html.h"
#include "service/built_in_web_js.h"

static const struct web_asset assets[] = {
    {"/", "text/html; charset=utf-8", built_in_web_html, sizeof built_in_web_html - 1},
    {"/page.js", "text/javascript; charset=utf-8", built_in_web_js, sizeof built_in_web_js - 1},
    {"/page.css", "text/css; charset=utf-8", built_in_web_css, sizeof built_in_web_css - 1},
};

const struct web_asset *web_asset_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(assets); i++)
        if (strcmp(assets[i].path, path) == 0)
            return &assets[i];
    return NULL;
}
