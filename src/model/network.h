/* SPDX-License-Identifier: Apache-2.0 */
/* A user's description of a network: a summary, or the exporter's file. The content decides
 * which. */
#ifndef COLLOC_MODEL_NETWORK_H
#define COLLOC_MODEL_NETWORK_H

#include "model/export.h"
#include "model/model.h"

struct network {
    struct model *model;   /* its layers, in both forms */
    struct export *export; /* NULL for a summary; else it owns the model */
};

/* Tests whether the text is a summary or an export, even a broken one. */
bool network_detect(const char *text, size_t size);

/* Reads the text as model_parse or export_parse does, and returns the same. After a fault
 * *ret_network is empty. */
int network_parse(const char *text, size_t size, struct fault *fault, struct network *ret_network);

/*
 * Gives a printed module the shape of one sample (model/input_shape.h).
 *
 * text: as the user gave it: "3x224x224"; NULL: not given. An export does not need it.
 *
 * Returns 0, -EINVAL with a fault that names the form, or what model_set_input returns.
 */
int network_set_input(struct network *network, const char *text, struct fault *fault);
void network_fini(struct network *network);

#endif
