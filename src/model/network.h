/* SPDX-License-Identifier: Apache-2.0 */
/* A user's description of a network in either form: a summary, or the exporter's file. The content
 * says which it is. */
#ifndef COLLOC_MODEL_NETWORK_H
#define COLLOC_MODEL_NETWORK_H

#include "model/export.h"
#include "model/model.h"

struct network {
    struct model *model;   /* its layers, in both forms */
    struct export *export; /* NULL for a summary; else it owns the model */
};

/* Whether the text is a summary or an export, be it a broken one. */
bool network_detect(const char *text, size_t size);

/* As model_parse or export_parse. After a fault *ret_network is empty. */
int network_parse(const char *text, size_t size, struct fault *fault, struct network *ret_network);
void network_fini(struct network *network);

#endif
