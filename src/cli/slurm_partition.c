/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sinfo -h -o '%P %t %G'` prints "colloc* mix gpu:4": programs ask for partitions and nodes before
 * they submit. There is one partition, "colloc", with this server as its node. A node is idle
 * without tasks on its GPUs, allocated when each GPU has one, else mixed.
 */
#include "cli/slurm_partition.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/session.h"
#include "cli/task_view.h"

#define PARTITION_FORMAT "%9P %.5a %.10l %.6D %.6t %N"

enum { COLUMNS_MAX = 10000 };

/* What is printed of the node. */
struct node {
    char host[HOST_NAME_MAX + 1];
    int gpus, used_gpus;
    long cpus, memory_mib;
};

static const char *state_of(const struct node *node)
{
    return node->used_gpus == 0 ? "idle" : node->used_gpus < node->gpus ? "mixed" : "allocated";
}

static void write_state(const struct node *node, FILE *out)
{
    fputs(state_of(node), out);
}

static void write_short_state(const struct node *node, FILE *out)
{
    static const char *const names[] = {"idle", "mix", "alloc"};
    fputs(names[node->used_gpus == 0 ? 0 : node->used_gpus < node->gpus ? 1 : 2], out);
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

static void write_counts(const struct node *node, FILE *out)
{
    fputs(node->used_gpus ? "1/0/0/1" : "0/1/0/1", out);
}

/* The headers, and what has no meaning here, are those of sinfo 22.05. */
static const struct {
    char letter;
    const char *header, *constant;
    void (*write)(const struct node *node, FILE *out);
} fields[] = {
    {'a', "AVAIL", "up", NULL},
    {'c', "CPUS", NULL, write_cpus},
    {'D', "NODES", "1", NULL},
    {'e', "FREE_MEM", "N/A", NULL},
    {'E', "REASON", "none", NULL},
    {'f', "AVAIL_FEATURES", "(null)", NULL},
    {'F', "NODES(A/I/O/T)", NULL, write_counts},
    {'G', "GRES", NULL, write_gpus},
    {'h', "OVERSUBSCRIBE", "FORCE", NULL},
    {'l', "TIMELIMIT", "infinite", NULL},
    {'m', "MEMORY", NULL, write_memory},
    {'n', "HOSTNAMES", NULL, write_host},
    {'N', "NODELIST", NULL, write_host},
    {'P', "PARTITION", "colloc*", NULL},
    {'R', "PARTITION", "colloc", NULL},
    {'t', "STATE", NULL, write_short_state},
    {'T', "STATE", NULL, write_state},
};

/* Prints one field, at "%.5a" or "%9P" or "%t". Returns 0 or -EINVAL. */
static int print_field(const char **at, const struct node *node, FILE *out)
{
    bool is_right = *++*at == '.';
    *at += is_right;
    char *end, *text = NULL;
    size_t size;
    long width = strtol(*at, &end, 10);
    *at = end;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (fields[i].letter != **at || width < 0 || width > COLUMNS_MAX)
            continue;
        FILE *cell = open_memstream(&text, &size);
        if (!cell)
            return -ENOMEM;
        if (node && fields[i].write)
            fields[i].write(node, cell);
        else
            fputs(node ? fields[i].constant : fields[i].header, cell);
        fclose(cell);
        int columns = width ? (int)width : (int)strlen(text);
        fprintf(out, is_right ? "%*.*s" : "%-*.*s", columns, columns, text);
        free(text);
        return 0;
    }
    return -EINVAL;
}

static int print_line(const char *format, const struct node *node, FILE *out)
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

static int print_partition(const char *format, bool has_header, bool names_cluster)
{
    struct node node;
    FILE *nothing = fopen("/dev/null", "w");
    int r = nothing ? print_line(format, NULL, nothing) : 0;
    if (nothing)
        fclose(nothing);
    if (r < 0) {
        fprintf(stderr, "sinfo: error: Invalid node format specification: %.80s\n", format);
        return EXIT_REFUSED;
    }
    int code = read_node(&node);
    if (code != EXIT_OK)
        return code;
    if (names_cluster && has_header)
        puts("CLUSTER: colloc");
    if (has_header)
        print_line(format, NULL, stdout);
    print_line(format, &node, stdout);
    return EXIT_OK;
}

bool slurm_partition_run(const char *const *words, int count, int *ret_exit_code)
{
    static const struct option options[] = {{"all", no_argument, NULL, 'a'},
        {"clusters", required_argument, NULL, 'M'}, {"format", required_argument, NULL, 'o'},
        {"Node", no_argument, NULL, 'N'}, {"noheader", no_argument, NULL, 'h'},
        {"partition", required_argument, NULL, 'p'}, {NULL, 0, NULL, 0}};
    const char *format = NULL;
    bool has_header = true, names_cluster = false, is_known = true;
    int option;
    char **arguments = calloc((size_t)count + 2, sizeof *arguments);
    if (!arguments)
        return false;
    arguments[0] = (char *)(uintptr_t) "sinfo";
    for (int i = 0; i < count; i++)
        arguments[i + 1] = (char *)(uintptr_t)words[i];
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(count + 1, arguments, ":aM:Nho:p:", options, NULL)) != -1) {
        is_known &= option != '?' && option != ':';
        format = option == 'o' ? optarg : format;
        has_header &= option != 'h';
        names_cluster |= option == 'M';
    }
    bool is_run = is_known && optind == count + 1 && (format || !has_header);
    free(arguments);
    if (is_run)
        *ret_exit_code = print_partition(
            format ? format : PARTITION_FORMAT, has_header, names_cluster);
    return is_run;
}

/* The form of scontrol 22.05; programs read the state, the CPUs, the memory and the GPUs. */
static void print_node(const struct node *node, bool is_one_line)
{
    const char *between = is_one_line ? " " : "\n   ";
    struct utsname system = {0};
    uname(&system);
    long free_mib = sysconf(_SC_AVPHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024);
    const char *state = strcmp(state_of(node), "idle") == 0    ? "IDLE"
                        : strcmp(state_of(node), "mixed") == 0 ? "MIXED"
                                                               : "ALLOCATED";
    printf("NodeName=%s Arch=%s CoresPerSocket=%ld%s", node->host, system.machine, node->cpus,
        between);
    printf("CPUAlloc=0 CPUEfctv=%ld CPUTot=%ld CPULoad=N/A%s", node->cpus, node->cpus, between);
    printf("AvailableFeatures=(null)%sActiveFeatures=(null)%sGres=gpu:%d%s", between, between,
        node->gpus, between);
    printf("NodeAddr=%s NodeHostName=%s Version=22.05.8%s", node->host, node->host, between);
    printf("OS=%s %s%s", system.sysname, system.release, between);
    printf("RealMemory=%ld AllocMem=0 FreeMem=%ld Sockets=1 Boards=1%s", node->memory_mib, free_mib,
        between);
    printf(
        "State=%s ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A%s", state, between);
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
