/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans gres.conf: a line for each GPU and one for its shards. Existing lines of GPUs and shards
 * are replaced; a line's device file and other facts about its devices (Cores) are kept. Where
 * gres.conf names no device file, AutoDetect finds the devices, and /dev/nvidia0 and following are
 * named. What is no whole GPU with a device file is refused: a type without files, a MIG instance,
 * and another number of files than of GPUs in slurm.conf.
 *
 * A type has the number of its device file, whatever the place of its line: a node's agent reports
 * GPUs so. Nothing else names the same GPU on all sides where a server has other GPUs, or the
 * driver numbers the files in another order. (Slurm 22.05 itself counts a job's GPUs by their place
 * among the node's: SLURM_JOB_GPUS=0 is the lowest, whatever its number.)
 *
 *     NodeName=n[0-3] Name=gpu Type=a100 File=/dev/nvidia[2-3] Cores=0-31      becomes
 *
 *     NodeName=n[0-3] Name=gpu Type=i2 File=/dev/nvidia2 Cores=0-31
 *     NodeName=n[0-3] Name=shard Type=i2 Count=80 File=/dev/nvidia2
 *     ...
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/span_parts.h"
#include "slurmconf/gres_text.h"
#include "slurmconf/host_list.h"
#include "slurmconf/setup_plan.h"

/* A device of the existing lines. */
struct device {
    char *nodes; /* as gres.conf writes them; "": all nodes */
    char *file;
    char *others; /* " Cores=0-31" */
};

struct gres_devices {
    struct device *items;
    size_t count, capacity;
    bool detects;      /* AutoDetect is on somewhere */
    bool loses_a_type; /* a GPU had a type such as a100 */
};

static void devices_fini(struct gres_devices *devices)
{
    if (!devices)
        return;
    for (size_t i = 0; i < devices->count; i++) {
        free(devices->items[i].nodes);
        free(devices->items[i].file);
        free(devices->items[i].others);
    }
    free(devices->items);
    free(devices);
}

static int add_device(struct gres_devices *devices, struct span nodes, const char *file,
    size_t size, const char *others)
{
    struct device device = {strndup(nodes.at, nodes.size), strndup(file, size), strdup(others)};
    if (device.nodes && device.file && device.others &&
        ARRAY_APPEND(devices->items, devices->count, devices->capacity, device) == 0)
        return 0;
    free(device.nodes);
    free(device.file);
    free(device.others);
    return -ENOMEM;
}

/* A device for each number of "/dev/nvidia[0-3,6]", or for the one file. */
static int add_numbers(
    struct gres_devices *devices, struct span nodes, struct span file, const char *others)
{
    const char *open = memchr(file.at, '[', file.size);
    const char *close = open ? memchr(open, ']', (size_t)(file.at + file.size - open)) : NULL;
    int r = 0;
    if (!close)
        return add_device(devices, nodes, file.at, file.size, others);
    for (const char *at = open + 1; at < close && r == 0;) {
        char *end, path[512];
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at || end > close)
            return 0; /* no list of numbers: the count of devices is then wrong */
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long k = first; k <= last && k < first + GRES_INDEX_MAX && r == 0; k++) {
            snprintf(path, sizeof path, "%.*s%lu", (int)(open - file.at), file.at, k);
            r = add_device(devices, nodes, path, strlen(path), others);
        }
        if (end < close && *end != ',')
            break;
        at = end + 1;
    }
    return r;
}

/* The devices of "/dev/nvidia0,/dev/nvidia[2-3]". Commas in brackets do not end a file. */
static int add_files(
    struct gres_devices *devices, struct span nodes, struct span files, const char *others)
{
    int r = 0;
    while (files.size > 0 && r == 0) {
        size_t size = 0;
        bool is_in_brackets = false;
        for (; size < files.size && (is_in_brackets || files.at[size] != ','); size++)
            is_in_brackets = (is_in_brackets || files.at[size] == '[') && files.at[size] != ']';
        if (size > 0)
            r = add_numbers(devices, nodes, (struct span){files.at, size}, others);
        size += size < files.size;
        files = (struct span){files.at + size, files.size - size};
    }
    return r;
}

/* The line's words besides name, type, file and count, with a blank before each. */
static char *other_pairs(const char *line)
{
    static const char *const known[] = {
        "NodeName", "Name", "Type", "File", "Files", "Count", "AutoDetect", "MultipleFiles"};
    struct span rest = span_of(line), key, value;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    while (out && conf_next_pair(&rest, &key, &value)) {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
            is_known |= span_is_nocase(key, known[i]);
        if (!is_known)
            fprintf(out, " %.*s=%.*s", (int)key.size, key.at, (int)value.size, value.at);
    }
    if (out && fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

/* A line of GPUs without a file says what AutoDetect has to find, or counts what is no device. */
static int check_without_file(const struct setup_plan *plan, const char *line, struct span type)
{
    struct span value;
    if (conf_find(line, "MultipleFiles", &value))
        return fault_set(plan->fault, ENOTSUP,
            "gres.conf: MultipleFiles=%.*s: shards are parts of whole GPUs, not of MIG instances: "
            "leave these nodes out, or turn MIG off there",
            (int)value.size, value.at);
    if (conf_find(line, "Count", &value))
        return fault_set(plan->fault, ENOTSUP,
            "gres.conf: the GPUs of Type=%.*s have Count=%.*s and no File: colloc shares GPUs that "
            "have a device file. Give them File=, or remove this type here and in slurm.conf",
            (int)type.size, type.at, (int)value.size, value.at);
    return 0;
}

static int read_gpu_line(
    const struct setup_plan *plan, struct gres_devices *devices, const char *line)
{
    struct span nodes = {"", 0}, file, type = {"", 0};
    conf_find(line, "NodeName", &nodes);
    devices->loses_a_type |= conf_find(line, "Type", &type);
    if (!conf_find(line, "File", &file) && !conf_find(line, "Files", &file))
        return check_without_file(plan, line, type);
    char *others = other_pairs(line);
    int r = others ? add_files(devices, nodes, file, others) : -ENOMEM;
    free(others);
    return r;
}

/* Reads a line, and plans its removal where it is about GPUs or shards. A line that switches
 * AutoDetect for some nodes only goes, too: slurmd ends at two such lines that differ. */
static int take_line(const struct setup_plan *plan, struct gres_devices *devices,
    struct setup_file *file, const struct conf_line *line)
{
    struct span name, detect, nodes;
    if (conf_find(line->text, "AutoDetect", &detect) && !span_is_nocase(detect, "off"))
        devices->detects = true;
    bool has_name = conf_find(line->text, "Name", &name),
         is_gpu = has_name && span_is_nocase(name, "gpu");
    bool is_local = !has_name && conf_find(line->text, "AutoDetect", &detect) &&
                    conf_find(line->text, "NodeName", &nodes);
    if (!is_gpu && !is_local && !(has_name && span_is_nocase(name, "shard")))
        return 0;
    int r = is_gpu ? read_gpu_line(plan, devices, line->text) : 0;
    return r == 0 ? text_edits_add(&file->edits, line->bytes, strdup("")) : r;
}

/* Lines without NodeName are of all nodes. */
static bool is_of_node(const struct device *device, const char *node)
{
    return !*device->nodes || host_list_has(span_of(device->nodes), node);
}

/* The devices of a node in the order of its GPUs. One look at all devices finds them: a cluster has
 * thousands of nodes, each with its lines. */
struct node_devices {
    const struct device *list[GRES_INDEX_MAX];
    int n; /* all of its devices; the list has the first */
};

static struct node_devices find_devices(const struct gres_devices *devices, const char *node)
{
    struct node_devices found = {.n = 0};
    for (size_t i = 0; i < devices->count; i++) {
        if (!is_of_node(&devices->items[i], node))
            continue;
        if (found.n < GRES_INDEX_MAX)
            found.list[found.n] = &devices->items[i];
        found.n++;
    }
    return found;
}

static struct node_devices find_devices_of_first(
    const struct gres_devices *devices, const struct gpu_nodes *nodes, char first[static 256])
{
    *first = '\0';
    host_list_first(span_of(nodes->names), first, 256);
    return find_devices(devices, first);
}

/* The devices of the nodes of one line of slurm.conf, of which `first` is the first. */
struct line_devices {
    const struct setup_plan *plan;
    const struct gres_devices *devices;
    const struct gpu_nodes *nodes;
    char first[256];
    struct node_devices of_first;
};

/* Refuses a node that has other devices than the first of its line. */
static int check_alike(void *context, const char *node)
{
    const struct line_devices *line = context;
    if (strcmp(node, line->first) == 0)
        return 0;
    const struct node_devices theirs = find_devices(line->devices, node);
    bool is_alike = theirs.n == line->of_first.n;
    for (int k = 0; k < theirs.n && k < GRES_INDEX_MAX && is_alike; k++)
        is_alike = strcmp(theirs.list[k]->file, line->of_first.list[k]->file) == 0;
    if (is_alike)
        return 0;
    return fault_set(line->plan->fault, ENOTSUP,
        "NodeName=%s is one line of slurm.conf, and gres.conf gives %s and %s other device "
        "files: colloc writes the same for all nodes of a line. Give each its own line",
        line->nodes->names, line->first, node);
}

/* Refuses another number of device files than of GPUs. Without any file AutoDetect finds them. */
static int check_devices(struct line_devices *line)
{
    const struct gpu_nodes *nodes = line->nodes;
    int n = line->of_first.n;
    if (n == 0 || n == nodes->gpus)
        return host_list_for_each(span_of(nodes->names), check_alike, line);
    return fault_set(line->plan->fault, ENOTSUP,
        "NodeName=%s has %d GPUs in slurm.conf, and %d device file%s in gres.conf: colloc shares "
        "whole GPUs, each with its file. Make the two the same",
        nodes->names, nodes->gpus, n, n == 1 ? "" : "s");
}

/* The file of GPU `k`: without any in gres.conf, the driver's first files. */
static struct span file_of(const struct node_devices *devices, int k, char path[static 64])
{
    snprintf(path, 64, "/dev/nvidia%d", k);
    return span_of(k < devices->n && k < GRES_INDEX_MAX ? devices->list[k]->file : path);
}

int gres_setup_indices(
    const struct setup_plan *plan, const struct gpu_nodes *nodes, uint64_t *ret_indices)
{
    struct line_devices line = {.plan = plan, .devices = plan->devices, .nodes = nodes};
    char path[64];
    line.of_first = find_devices_of_first(plan->devices, nodes, line.first);
    int r = check_devices(&line);
    *ret_indices = 0;
    for (int k = 0; k < nodes->gpus && r == 0; k++) {
        struct span file = file_of(&line.of_first, k, path);
        int number = gres_file_number(file);
        if (number < 0)
            r = fault_set(plan->fault, ENOTSUP,
                "gres.conf: File=%.*s: colloc names a whole GPU by the number of its device file, "
                "from 0 to %d, and this has none",
                (int)file.size, file.at, GRES_INDEX_MAX - 1);
        else if (*ret_indices >> number & 1)
            r = fault_set(plan->fault, ENOTSUP,
                "gres.conf: two device files of NodeName=%s have the number %d: colloc names a GPU "
                "by that",
                nodes->names, number);
        else
            *ret_indices |= UINT64_C(1) << number;
    }
    return r;
}

/* The nodes of one line of slurm.conf are alike: the devices of the first are those of all. */
static void write_nodes(const struct setup_plan *plan, const struct gres_devices *devices,
    const struct gpu_nodes *nodes, FILE *out)
{
    const char *detect = devices->detects ? " AutoDetect=off" : "";
    char first[256];
    const struct node_devices own = find_devices_of_first(devices, nodes, first);
    for (int k = 0; k < nodes->gpus; k++) {
        char path[64];
        const struct device *device = k < own.n && k < GRES_INDEX_MAX ? own.list[k] : NULL;
        struct span file = file_of(&own, k, path);
        int number = gres_file_number(file);
        fprintf(out, "NodeName=%s%s Name=gpu Type=i%d File=%.*s%s\n", nodes->names, detect, number,
            (int)file.size, file.at, device ? device->others : "");
        fprintf(out, "NodeName=%s%s Name=shard Type=i%d Count=%d File=%.*s\n", nodes->names, detect,
            number, plan->options->shards, (int)file.size, file.at);
    }
}

static void write_notes(const struct setup_plan *plan, const struct gres_devices *devices)
{
    if (devices->loses_a_type)
        fprintf(plan->notes, "GPUs have the types i0, i1, ... from now on: jobs ask for gpu:N, no "
                             "longer for gpu:KIND:N; give the nodes a Feature to name the kind\n");
    for (size_t i = 0; i < plan->n_nodes; i++) {
        uint64_t indices = 0;
        gres_setup_indices(plan, &plan->nodes[i], &indices);
        if (indices & (indices + 1))
            fprintf(plan->notes,
                "NodeName=%s leaves out GPUs of lower numbers: set ConstrainDevices=yes in "
                "cgroup.conf there, since Slurm counts a job's GPUs from 0 among the node's in "
                "CUDA_VISIBLE_DEVICES\n",
                plan->nodes[i].names);
    }
    if (devices->detects)
        fprintf(plan->notes, "AutoDetect is off for the nodes with GPUs, whose types it would "
                             "refuse: add Cores= to their lines in gres.conf for CPU affinity\n");
}

static int add_lines(
    struct setup_plan *plan, struct setup_file *file, const struct gres_devices *devices)
{
    char *lines = NULL;
    size_t size;
    FILE *out = open_memstream(&lines, &size);
    if (!out)
        return -ENOMEM;
    for (size_t i = 0; i < plan->n_nodes; i++)
        write_nodes(plan, devices, &plan->nodes[i], out);
    write_notes(plan, devices);
    if (fclose(out) != 0) {
        free(lines);
        return -ENOMEM;
    }
    return text_edits_add(&file->edits, (struct span){file->text.at + file->text.size, 0}, lines);
}

int gres_setup_read(struct setup_plan *plan, struct setup_file *file)
{
    CLEANUP(conf_text_fini) struct conf_text conf = {0};
    plan->devices = calloc(1, sizeof *plan->devices);
    if (!plan->devices)
        return -ENOMEM;
    int r = conf_text_parse(file->text, &conf);
    for (size_t i = 0; i < conf.count && r == 0; i++)
        r = take_line(plan, plan->devices, file, &conf.lines[i]);
    return r;
}

int gres_setup_plan(struct setup_plan *plan, struct setup_file *file)
{
    return add_lines(plan, file, plan->devices);
}

void gres_setup_fini(struct setup_plan *plan)
{
    devices_fini(plan->devices);
    plan->devices = NULL;
}
