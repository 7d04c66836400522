/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses Slurm's lists of generic resources, such as gres:gpu:a100:2. An item is a prefix "gres:"
 * or "gres/" that may be missing, then a name, a type and a count with colons between. The type or
 * the count may be missing: a number is the count (gpu:2), anything else the type (gpu:a100). A
 * suffix in parentheses, which may contain commas, is skipped.
 *
 * colloc types each GPU of a node by its index, so that a job can ask Slurm for a share of one
 * particular GPU. Slurm gives a shard the type of its GPU (gres_c_s.c there), so both are typed.
 */
#include "slurmconf/gres_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/span_parts.h"
#include "base/units.h"

/* The text up to the next comma outside of parentheses. */
static struct span take_entry(struct span *text)
{
    struct span entry = {text->at, 0};
    int depth = 0;
    while (entry.size < text->size) {
        char c = text->at[entry.size];
        if (c == ',' && depth == 0)
            break;
        depth += c == '(' ? 1 : c == ')' && depth > 0 ? -1 : 0;
        entry.size++;
    }
    size_t taken = entry.size + (entry.size < text->size);
    text->at += taken;
    text->size -= taken;
    return entry;
}

static struct span without_suffix(struct span entry)
{
    const char *suffix = memchr(entry.at, '(', entry.size);
    if (suffix)
        entry.size = (size_t)(suffix - entry.at);
    return span_trim(entry);
}

static bool read_count(struct span part, int64_t *ret_count)
{
    char text[24];
    size_t digits = 0;
    while (digits < part.size && isdigit((unsigned char)part.at[digits]))
        digits++;
    if (digits == 0 || digits < part.size)
        return false;
    if (!span_copy(part, text, sizeof text) || parse_int64(text, 0, INT32_MAX, ret_count) < 0)
        *ret_count = INT32_MAX;
    return true;
}

static bool read_item(struct span entry, struct gres_item *ret_item)
{
    struct span word = without_suffix(entry);
    if (span_starts(word, "gres:") || span_starts(word, "gres/")) {
        word.at += strlen("gres:");
        word.size -= strlen("gres:");
    }
    struct gres_item item = {.count = 1};
    struct span name = span_take_until(&word, ':'), type = {"", 0};
    if (name.size == 0 || !span_copy(name, item.name, sizeof item.name))
        return false;
    struct span second = span_take_until(&word, ':');
    if (second.size > 0 && !read_count(second, &item.count)) {
        type = second;
        struct span third = span_take_until(&word, ':');
        if (third.size > 0 && !read_count(third, &item.count))
            return false;
    }
    if (word.size > 0 || !span_copy(type, item.type, sizeof item.type))
        return false;
    *ret_item = item;
    return true;
}

bool gres_next(struct span *text, struct gres_item *ret_item)
{
    while (text->size > 0)
        if (read_item(take_entry(text), ret_item))
            return true;
    return false;
}

int gres_type_index(const char *type)
{
    int64_t index;
    if (type[0] != 'i' || parse_int64(type + 1, 0, GRES_INDEX_MAX - 1, &index) < 0)
        return -1;
    return (int)index;
}

/* Is it a profile [COMPUTEc.]SLICESg.MEMORYgb (NVIDIA's MIG user guide), with a suffix such as +me?
 */
static bool begins_with_profile(const char *type)
{
    char unit;
    int slices, memory, end = 0;
    const char *dot = strstr(type, "c.");
    if (dot && isdigit((unsigned char)type[0]))
        type = dot + strlen("c.");
    return sscanf(type, "%d%c.%dgb%n", &slices, &unit, &memory, &end) == 3 && end > 0 &&
           unit == 'g';
}

/* Sites put the kind before it: a100_1g.5gb, as AutoDetect=nvml itself does. */
bool gres_is_mig_type(const char *type)
{
    bool is_profile = begins_with_profile(type);
    for (const char *at = type; (at = strpbrk(at, "_-")) && !is_profile;)
        is_profile = begins_with_profile(++at);
    return is_profile;
}

int64_t gres_count(struct span text, const char *name)
{
    struct gres_item item;
    int64_t count = 0;
    while (gres_next(&text, &item))
        if (strcmp(item.name, name) == 0)
            count += item.count;
    return count;
}

int gres_counts_by_index(
    struct span text, const char *name, int64_t ret_counts[static GRES_INDEX_MAX])
{
    struct gres_item item;
    int n = 0;
    memset(ret_counts, 0, GRES_INDEX_MAX * sizeof *ret_counts);
    while (gres_next(&text, &item)) {
        int index = strcmp(item.name, name) == 0 ? gres_type_index(item.type) : -1;
        if (index >= 0)
            ret_counts[index] += item.count;
    }
    for (int i = 0; i < GRES_INDEX_MAX; i++)
        n += ret_counts[i] > 0;
    return n;
}

int gres_count_typed(struct span text)
{
    int64_t shards[GRES_INDEX_MAX];
    return gres_counts_by_index(text, "shard", shards);
}

/* "/dev/nvidia-caps/nvidia-cap21": the number is not a GPU's. */
static bool is_of_instance(struct span file)
{
    static const char name[] = "nvidia-cap";
    return memmem(file.at, file.size, name, sizeof name - 1) != NULL;
}

int gres_file_number(struct span file)
{
    char digits[16];
    int64_t number;
    size_t begin = file.size;
    if (is_of_instance(file))
        return -1;
    while (begin > 0 && isdigit((unsigned char)file.at[begin - 1]))
        begin--;
    if (!span_copy((struct span){file.at + begin, file.size - begin}, digits, sizeof digits) ||
        parse_int64(digits, 0, GRES_INDEX_MAX - 1, &number) < 0)
        return -1;
    return (int)number;
}

bool gres_format_shards(uint64_t indices, int64_t shards, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < GRES_INDEX_MAX; i++) {
        if (!(indices >> i & 1))
            continue;
        int n = snprintf(text + used, size - used, "%sgres:shard:i%d:%lld", used ? "," : "", i,
            (long long)shards);
        if (n < 0 || (size_t)n >= size - used)
            return false;
        used += (size_t)n;
    }
    return true;
}

void gres_write_typed(FILE *out, struct span list, uint64_t indices, int shards)
{
    const char *comma = "";
    while (list.size > 0) {
        struct gres_item item;
        struct span entry = take_entry(&list);
        bool is_item = read_item(entry, &item);
        bool is_typed = is_item &&
                        (strcmp(item.name, "gpu") == 0 || strcmp(item.name, "shard") == 0);
        if (entry.size == 0 || is_typed)
            continue;
        fprintf(out, "%s%.*s", comma, (int)entry.size, entry.at);
        comma = ",";
    }
    for (int k = 0; k < GRES_INDEX_MAX; k++) {
        if (!(indices >> k & 1))
            continue;
        fprintf(out, "%sgpu:i%d:1", comma, k);
        comma = ",";
    }
    for (int k = 0; k < GRES_INDEX_MAX; k++)
        if (indices >> k & 1)
            fprintf(out, ",shard:i%d:%d", k, shards);
}
