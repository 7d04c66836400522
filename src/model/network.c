/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file that describes a network. A file that begins as JSON is an export, any other a
 * summary. */
#include "model/network.h"

#include "model/input_shape.h"

bool network_detect(const char *text, size_t size)
{
    return export_detect(text, size) || model_detect(text, size);
}

int network_parse(const char *text, size_t size, struct fault *fault, struct network *ret_network)
{
    *ret_network = (struct network){0};
    if (!export_detect(text, size))
        return model_parse(text, size, fault, &ret_network->model);
    int r = export_parse(text, size, fault, &ret_network->export);
    if (r == 0)
        ret_network->model = ret_network->export->model;
    return r;
}

int network_set_input(struct network *network, const char *text, struct fault *fault)
{
    struct input_shape shape;
    if (!text || !network->model || network->export)
        return 0;
    int r = input_shape_parse(text, fault, &shape);
    return r < 0 ? r : model_set_input(network->model, &shape, fault);
}

void network_fini(struct network *network)
{
    if (network->export)
        export_destroy(network->export);
    else
        model_destroy(network->model);
    *network = (struct network){0};
}
