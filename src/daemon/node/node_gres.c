/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm pins a job to the device file that gres.conf gives the type iK, and the agent reports GPU K
 * by its device file. Where the two differ, jobs would run on another GPU than the one that was
 * measured. The controller sees types only, so the agent compares them here: it reads the
 * gres.conf that slurmd reads, in the folder of SLURM_CONF, in /etc/slurm, or where slurmd keeps
 * what slurmctld has sent it (configless).
 */
#include "daemon/node/node_gres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "slurmconf/gres_check.h"

#define GRES_CONF_MAX ((size_t)MIB) /* chosen: a line for each of 10,000 GPUs */

/* Returns 0, or -errno where there is no such file. */
static int read_gres(const char *folder, size_t folder_size, char **ret_text, size_t *ret_size)
{
    char path[4096];
    snprintf(path, sizeof path, "%.*s/gres.conf", (int)folder_size, folder);
    return file_read(path, GRES_CONF_MAX, NULL, ret_text, ret_size);
}

uint64_t node_gres_numbers(uint64_t places, uint64_t numbers)
{
    uint64_t found = 0, bit = 1;
    if (numbers == 0)
        return places;
    for (int place = 0; bit; bit <<= 1)
        if (numbers & bit && places >> place++ & 1)
            found |= bit;
    return found;
}

int node_gres_check(const char *node, struct fault *fault, uint64_t *ret_numbers)
{
    static const char *const folders[] = {"/etc/slurm", "/run/slurm/conf"};
    const char *conf = getenv("SLURM_CONF"), *slash = conf ? strrchr(conf, '/') : NULL;
    char *text = NULL;
    size_t size = 0;
    int found = slash ? read_gres(conf, (size_t)(slash - conf), &text, &size) : -1;
    for (size_t i = 0; !slash && found < 0 && i < ARRAY_SIZE(folders); i++)
        found = read_gres(folders[i], strlen(folders[i]), &text, &size);
    *ret_numbers = 0;
    int r = found == 0 ? gres_check_numbers((struct span){text, size}, node, fault, ret_numbers)
                       : 0;
    free(text);
    return r;
}
