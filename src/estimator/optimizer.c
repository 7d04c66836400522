#include "estimator/optimizer.h"

#include <stddef.h>
#include <string.h>

static const struct optimizer optimizers[] = {
    {"adam", 2, 1},
    {"adamw", 2, 1},
    {"sgd", 0, 0},
    {"momentum", 1, 0},
    {"rmsprop", 1, 1},
    {"adagrad", 1, 1},
};

const struct optimizer *optimizer_find(const char *name)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++)
        if (strcmp(optimizers[i].name, name) == 0)
            return &optimizers[i];
    return NULL;
}

const struct optimizer *optimizer_usual(void)
{
    return &optimizers[0];
}
