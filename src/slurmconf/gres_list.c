/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of generic resources. colloc types each GPU of a node by its index, so that a job can ask
 * Slurm for a share of one particular GPU:
 *
 *     gpu:a100:2(S:0-1),nvme:1     becomes     nvme:1,gpu:i0:1,gpu:i1:1,shard:i0:80,shard:i1:80
 *
 * Slurm gives a shard the type of its GPU (gres_c_s.c there), so both have to be typed.
 */
#include "slurmconf/gres_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool gres_list_next(struct span *rest, struct span *ret_entry)
{
    int depth = 0;
    size_t size = 0;
    while (rest->size > 0 && *rest->at == ',')
        *rest = (struct span){rest->at + 1, rest->size - 1};
    for (; size < rest->size && (depth > 0 || rest->at[size] != ','); size++)
        depth += rest->at[size] == '(' ? 1 : rest->at[size] == ')' && depth > 0 ? -1 : 0;
    *ret_entry = (struct span){rest->at, size};
    *rest = (struct span){rest->at + size, rest->size - size};
    return size > 0;
}

bool gres_entry_is(struct span entry, const char *name)
{
    size_t size = strlen(name);
    return span_starts(entry, name) &&
           (entry.size == size || entry.at[size] == ':' || entry.at[size] == '(');
}

/* The number at the end, before "(S:0-1)". */
static int count_of_entry(struct span entry)
{
    const char *parenthesis = memchr(entry.at, '(', entry.size);
    size_t end = parenthesis ? (size_t)(parenthesis - entry.at) : entry.size, begin = end;
    char digits[16];
    while (begin > 0 && isdigit((unsigned char)entry.at[begin - 1]))
        begin--;
    if (begin == end || begin == 0 || entry.at[begin - 1] != ':')
        return 1;
    if (!span_copy((struct span){entry.at + begin, end - begin}, digits, 8))
        return 9999999;
    return atoi(digits);
}

int gres_list_count(struct span list, const char *name)
{
    int count = 0;
    struct span entry;
    while (gres_list_next(&list, &entry))
        if (gres_entry_is(entry, name) && count < 1000000)
            count += count_of_entry(entry);
    return count;
}

static bool has_shards_of(struct span list, int index)
{
    char prefix[32];
    struct span entry;
    snprintf(prefix, sizeof prefix, "shard:i%d:", index);
    while (gres_list_next(&list, &entry))
        if (span_starts(entry, prefix) && count_of_entry(entry) > 0)
            return true;
    return false;
}

int gres_list_typed_shards(struct span list)
{
    int index = 0;
    while (index < NODE_GPUS_MAX && has_shards_of(list, index))
        index++;
    return index;
}

void gres_list_write_typed(FILE *out, struct span list, int gpus, int shards)
{
    const char *comma = "";
    struct span entry;
    while (gres_list_next(&list, &entry)) {
        if (gres_entry_is(entry, "gpu") || gres_entry_is(entry, "shard"))
            continue;
        fprintf(out, "%s%.*s", comma, (int)entry.size, entry.at);
        comma = ",";
    }
    for (int k = 0; k < gpus; k++, comma = ",")
        fprintf(out, "%sgpu:i%d:1", comma, k);
    for (int k = 0; k < gpus; k++)
        fprintf(out, ",shard:i%d:%d", k, shards);
}
