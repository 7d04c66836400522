/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do the types of gres.conf name the GPUs that colloc means by them? A type iK is the GPU with the
 * device file of number K. Where a line says otherwise, jobs would be pinned to another GPU than
 * the one that was measured:
 *
 *     Name=gpu Type=i0 File=/dev/nvidia2      is GPU 2 of the node's agent
 */
#include "slurmconf/gres_check.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "slurmconf/conf_text.h"
#include "slurmconf/gres_text.h"
#include "slurmconf/host_list.h"

/* Of one line: a GPU of a type iK and one device file. */
static int check_number(const char *line, const char *node, struct fault *fault, uint64_t *numbers)
{
    struct span name, type, file, nodes;
    char text[32];
    if (!conf_find(line, "Name", &name) || !span_is(name, "gpu") ||
        !conf_find(line, "Type", &type) || !conf_find(line, "File", &file) ||
        !span_copy(type, text, sizeof text))
        return 0;
    if (node && conf_find(line, "NodeName", &nodes) && !host_list_has(nodes, node))
        return 0;
    int index = gres_type_index(text), number = gres_file_number(file);
    if (index >= 0)
        *numbers |= UINT64_C(1) << index;
    if (index < 0 || index == number || memchr(file.at, '[', file.size))
        return 0;
    return fault_set(fault, EINVAL,
        "gres.conf gives %.*s the type %s, whose number is not that of the file: run `colloc slurm "
        "setup` again, then restart slurmctld and the slurmd's",
        (int)file.size, file.at, text);
}

int gres_check_numbers(
    struct span text, const char *node, struct fault *fault, uint64_t *ret_numbers)
{
    uint64_t numbers = 0;
    CLEANUP(conf_text_fini) struct conf_text conf = {0};
    int r = conf_text_parse(text, &conf);
    for (size_t i = 0; i < conf.count && r == 0; i++)
        r = check_number(conf.lines[i].text, node, fault, &numbers);
    if (ret_numbers)
        *ret_numbers = numbers;
    return r;
}
