/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sinfo -h -o '%P %t %G'` prints "colloc* mix gpu:4", and `sinfo -hO partition,gresused:8` prints
 * fields by their names: programs ask for partitions and nodes before they submit. There is one
 * partition, "colloc", with this server as its node. A node is idle without tasks on its GPUs,
 * allocated when each GPU has one, else mixed.
 */
#include "cli/slurm_partition.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/session_once.h"
#include "cli/slurm_getopt.h"
#include "cli/slurm_version.h"

#define PARTITION_FORMAT "%9P %.5a %.10l %.6D %.6t %N"
#define NODE_FORMAT      "%20N %.6D %.9P %6t"      /* -N */
#define SUMMARY_FORMAT   "%9P %.5a %.10l %.16F %N" /* -s */

enum { COLUMNS_MAX = 10000 };

/* What is printed of the node. */
struct node {
    char host[HOST_NAME_MAX + 1];
    int gpus, used_gpus;
    long cpus, memory_mib;
};

/* A node's states, as sinfo -t, sinfo -T and scontrol name them. */
static const struct node_state {
    const char *compact, *plain, *capital;
} IDLE = {"idle", "idle", "IDLE"}, MIXED = {"mix", "mixed", "MIXED"},
  ALLOCATED = {"alloc", "allocated", "ALLOCATED"};

static const struct node_state *state_of(const struct node *node)
{
    if (node->used_gpus == 0)
        return &IDLE;
    return node->used_gpus < node->gpus ? &MIXED : &ALLOCATED;
}

static void write_state(const struct node *node, FILE *out)
{
    fputs(state_of(node)->plain, out);
}

static void write_compact_state(const struct node *node, FILE *out)
{
    fputs(state_of(node)->compact, out);
}

static void write_host(const struct node *node, FILE *out)
{
    fputs(node->host, out);
}

static void write_gpus(const struct node *node, FILE *out)
{
    fprintf(out, "gpu:%d", node->gpus);
}

static void write_cpus(const struct node *node, FILE *out)
{
    fprintf(out, "%ld", node->cpus);
}

static void write_memory(const struct node *node, FILE *out)
{
    fprintf(out, "%ld", node->memory_mib);
}

static void write_used_gpus(const struct node *node, FILE *out)
{
    fprintf(out, "gpu:%d", node->used_gpus);
}

/* Tasks hold GPUs; CPUs are allocated to none. */
static void write_cpu_counts(const struct node *node, FILE *out)
{
    fprintf(out, "0/%ld/0/%ld", node->cpus, node->cpus);
}

static void write_counts(const struct node *node, FILE *out)
{
    fputs(node->used_gpus ? "1/0/0/1" : "0/1/0/1", out);
}

/* The headers, and what has no meaning here, are those of sinfo 22.05. */
static const struct field {
    char letter;      /* of -o; 0: it has none */
    const char *name; /* of -O */
    const char *header, *constant;
    void (*write)(const struct node *node, FILE *out);
} fields[] = {
    {'a', "available", "AVAIL", "up", NULL},
    {'c', "cpus", "CPUS", NULL, write_cpus},
    {'C', "cpusstate", "CPUS(A/I/O/T)", NULL, write_cpu_counts},
    {'D', "nodes", "NODES", "1", NULL},
    {'e', "freemem", "FREE_MEM", "N/A", NULL},
    {'E', "reason", "REASON", "none", NULL},
    {'f', "features", "AVAIL_FEATURES", "(null)", NULL},
    {'F', "nodeaiot", "NODES(A/I/O/T)", NULL, write_counts},
    {'G', "gres", "GRES", NULL, write_gpus},
    {0, "gresused", "GRES_USED", NULL, write_used_gpus},
    {'h', "oversubscribe", "OVERSUBSCRIBE", "FORCE", NULL},
    {'l', "time", "TIMELIMIT", "infinite", NULL},
    {'m', "memory", "MEMORY", NULL, write_memory},
    {'n', "nodehost", "HOSTNAMES", NULL, write_host},
    {'N', "nodelist", "NODELIST", NULL, write_host},
    {'P', "partition", "PARTITION", "colloc*", NULL},
    {'R', "partitionname", "PARTITION", "colloc", NULL},
    {'t', "statecompact", "STATE", NULL, write_compact_state},
    {'T', "statelong", "STATE", NULL, write_state},
};

enum { NAMED_WIDTH = 20 }; /* of a field without one: sinfo(1) */

/* `width` 0: as long as it is. Returns 0 or -ENOMEM. */
static int print_cell(
    const struct field *field, const struct node *node, long width, bool is_right, FILE *out)
{
    char *text = NULL;
    size_t size;
    FILE *cell = open_memstream(&text, &size);
    if (!cell)
        return -ENOMEM;
    if (node && field->write)
        field->write(node, cell);
    else
        fputs(node ? field->constant : field->header, cell);
    fclose(cell);
    int columns = width ? (int)width : (int)strlen(text);
    fprintf(out, is_right ? "%*.*s" : "%-*.*s", columns, columns, text);
    free(text);
    return 0;
}

/* Prints one field, at "%.5a" or "%9P" or "%t". Returns 0 or -EINVAL. */
static int print_field(const char **at, const struct node *node, FILE *out)
{
    bool is_right = *++*at == '.';
    *at += is_right;
    char *end;
    long width = strtol(*at, &end, 10);
    *at = end;
    for (size_t i = 0; i < ARRAY_SIZE(fields) && **at; i++)
        if (fields[i].letter == **at && width >= 0 && width <= COLUMNS_MAX)
            return print_cell(&fields[i], node, width, is_right, out);
    return -EINVAL;
}

/* "nodehost:100,gres:.20,statelong" */
static int print_named_line(const char *list, const struct node *node, FILE *out)
{
    int r = 0;
    for (const char *at = list; *at && r == 0; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",:"), i = 0;
        bool has_width = at[size] == ':', is_right = has_width && at[size + 1] == '.';
        long width = has_width ? strtol(at + size + 1 + is_right, NULL, 10) : NAMED_WIDTH;
        while (i < ARRAY_SIZE(fields) &&
               (strlen(fields[i].name) != size || strncasecmp(fields[i].name, at, size) != 0))
            i++;
        bool is_known = i < ARRAY_SIZE(fields) && width >= 0 && width <= COLUMNS_MAX;
        r = is_known ? print_cell(&fields[i], node, width, is_right, out) : -EINVAL;
    }
    fputc('\n', out);
    return r;
}

static int print_lettered_line(const char *format, const struct node *node, FILE *out)
{
    int r = 0;
    for (const char *at = format; *at && r == 0; at++)
        if (*at == '%')
            r = print_field(&at, node, out);
        else
            fputc(*at, out);
    fputc('\n', out);
    return r;
}

/* What -o or -O wants, and of which nodes. */
struct form {
    const char *text, *plain;   /* plain: where there is neither */
    bool has_names;             /* of -O */
    const char *nodes, *states; /* comma-separated; NULL: all */
    bool no_header, names_cluster;
};

static int print_line(const struct form *form, const struct node *node, FILE *out)
{
    return form->has_names ? print_named_line(form->text, node, out)
                           : print_lettered_line(form->text, node, out);
}

static int read_node(struct node *ret_node)
{
    const struct invocation invocation = {0};
    json_t *reply, *gpu;
    size_t i;
    int code = session_get(&invocation, "/v1/gpus", &reply);
    if (code != EXIT_OK)
        return code;
    *ret_node = (struct node){.cpus = sysconf(_SC_NPROCESSORS_ONLN),
        .memory_mib = sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024)};
    gethostname(ret_node->host, sizeof ret_node->host - 1);
    json_array_foreach(json_object_get(reply, "gpus"), i, gpu) {
        ret_node->gpus++;
        ret_node->used_gpus += json_array_size(json_object_get(gpu, "tasks")) > 0;
    }
    json_decref(reply);
    return EXIT_OK;
}

static int print_header(const void *form, FILE *out)
{
    return print_line(form, NULL, out);
}

/* Is the text one of the list, in any case? */
static bool is_listed(const char *list, const char *text)
{
    size_t size;
    for (const char *at = list; *at; at += size, at += *at == ',') {
        size = strcspn(at, ",");
        if (strlen(text) == size && strncasecmp(at, text, size) == 0)
            return true;
    }
    return false;
}

static bool is_wanted(const struct form *form, const struct node *node)
{
    const struct node_state *state = state_of(node);
    bool has_state = !form->states || is_listed(form->states, "all") ||
                     is_listed(form->states, state->compact) ||
                     is_listed(form->states, state->plain);
    return has_state && (!form->nodes || is_listed(form->nodes, node->host));
}

static int print_partition(const struct form *form)
{
    struct node node;
    if (!print_is_format_valid(print_header, form)) {
        fprintf(stderr, "sinfo: error: Invalid node format specification: %.80s\n", form->text);
        return EXIT_REFUSED;
    }
    int code = read_node(&node);
    if (code != EXIT_OK)
        return code;
    if (form->names_cluster && !form->no_header)
        puts("CLUSTER: colloc");
    if (!form->no_header)
        print_header(form, stdout);
    if (is_wanted(form, &node))
        print_line(form, &node, stdout);
    return EXIT_OK;
}

#define TEXT(name, letter, member) SLURM_TEXT(name, letter, required_argument, struct form, member)

static const struct slurm_row rows[] = {
    SLURM_OTHER("all", 'a', no_argument),
    SLURM_OTHER("clusters", 'M', required_argument),
    SLURM_OTHER("exact", 'e', no_argument),
    TEXT("format", 'o', text),
    TEXT("Format", 'O', text),
    SLURM_OTHER("Node", 'N', no_argument),
    TEXT("nodes", 'n', nodes),
    SLURM_FLAG("noheader", 'h', struct form, no_header),
    SLURM_OTHER("partition", 'p', required_argument),
    SLURM_OTHER("sort", 'S', required_argument),
    TEXT("states", 't', states),
    SLURM_OTHER("summarize", 's', no_argument),
};

static void note_option(void *context, const struct slurm_row *row, const char *value)
{
    struct form *form = context;
    if (row->letter == 'o' || row->letter == 'O')
        form->has_names = row->letter == 'O';
    if (row->letter == 'N' || row->letter == 's')
        form->plain = row->letter == 'N' ? NODE_FORMAT : SUMMARY_FORMAT;
    form->names_cluster |= row->letter == 'M';
}

bool slurm_partition_run(const char *const *words, int count, int *ret_exit_code)
{
    struct form form = {.plain = PARTITION_FORMAT};
    const char **rest;
    bool is_run = slurm_getopt(words, count, rows, ARRAY_SIZE(rows), &form, note_option, &rest) ==
                      0 &&
                  count > 0;
    free(rest);
    if (is_run && !form.text)
        form.text = form.plain;
    if (is_run)
        *ret_exit_code = print_partition(&form);
    return is_run;
}

/* The form of scontrol 22.05; programs read the state, the CPUs, the memory and the GPUs. */
static void print_node(const struct node *node, bool is_one_line)
{
    const char *between = is_one_line ? " " : "\n   ";
    struct utsname system = {0};
    uname(&system);
    long free_mib = sysconf(_SC_AVPHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024);
    printf("NodeName=%s Arch=%s CoresPerSocket=%ld%s", node->host, system.machine, node->cpus,
        between);
    printf("CPUAlloc=0 CPUEfctv=%ld CPUTot=%ld CPULoad=N/A%s", node->cpus, node->cpus, between);
    printf("AvailableFeatures=(null)%sActiveFeatures=(null)%sGres=gpu:%d%s", between, between,
        node->gpus, between);
    printf(
        "NodeAddr=%s NodeHostName=%s Version=" SLURM_VERSION "%s", node->host, node->host, between);
    printf("OS=%s %s%s", system.sysname, system.release, between);
    printf("RealMemory=%ld AllocMem=0 FreeMem=%ld Sockets=1 Boards=1%s", node->memory_mib, free_mib,
        between);
    printf("State=%s ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A%s",
        state_of(node)->capital, between);
    printf("Partitions=colloc%s", between);
    printf("CfgTRES=cpu=%ld,mem=%ldM,billing=%ld,gres/gpu=%d%s", node->cpus, node->memory_mib,
        node->cpus, node->gpus, between);
    printf("AllocTRES=gres/gpu=%d\n%s", node->used_gpus, is_one_line ? "" : "\n");
}

int slurm_node_show(const char *name, bool is_one_line)
{
    struct node node;
    int code = read_node(&node);
    if (code != EXIT_OK)
        return code;
    bool is_this = !name || strcmp(name, node.host) == 0 || strcmp(name, "localhost") == 0;
    if (is_this)
        print_node(&node, is_one_line);
    else
        printf("Node %s not found\n", name);
    return is_this ? EXIT_OK : EXIT_REFUSED;
}
