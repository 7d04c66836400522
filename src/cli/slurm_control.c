/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts call scontrol for two things: the name of the first node, for a rendezvous, and to be run
 * again before their time limit ends them.
 *
 *     scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1
 *     trap 'scontrol requeue $SLURM_JOB_ID' USR1
 */
#include "cli/slurm_control.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/command.h"
#include "cli/print.h"

enum { HOSTS_MAX = 100000 }; /* chosen: more nodes than a cluster has */

static const struct {
    const char *first, *second; /* of scontrol; the second may be NULL */
    const char *command;
} controls[] = {
    {"requeue", NULL, "requeue"},
    {"hold", NULL, "hold"},
    {"uhold", NULL, "hold"},
    {"release", NULL, "release"},
    {"suspend", NULL, "suspend"},
    {"resume", NULL, "resume"},
    {"ping", NULL, "info"},
};

const char *slurm_control_command(const char *const *words, int *ret_used)
{
    for (size_t i = 0; i < ARRAY_SIZE(controls) && words[0]; i++) {
        const char *second = controls[i].second;
        if (strcmp(words[0], controls[i].first) != 0 ||
            (second && (!words[1] || strcmp(words[1], second) != 0)))
            continue;
        *ret_used = second ? 2 : 1;
        return controls[i].command;
    }
    return NULL;
}

/* "n", "01-03" of "n[01-03,7]x": the names of one range, with the zeros of its first number. */
static bool print_range(
    const char *before, int before_size, const char *range, int size, const char *after)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.*s", size, range);
    char *dash = strchr(digits, '-');
    if (dash)
        *dash = '\0';
    const char *last_text = dash ? dash + 1 : digits;
    bool are_digits = isdigit((unsigned char)digits[0]) && isdigit((unsigned char)last_text[0]);
    long first = strtol(digits, NULL, 10), last = strtol(last_text, NULL, 10);
    if (!are_digits || size >= (int)sizeof digits || last < first || last - first > HOSTS_MAX)
        return false;
    for (long i = first; i <= last; i++)
        printf("%.*s%0*ld%s\n", before_size, before, (int)strlen(digits), i, after);
    return true;
}

/* One name, of `size` bytes: with one pair of brackets at most. */
static bool print_name(const char *name, int size)
{
    char text[1024];
    snprintf(text, sizeof text, "%.*s", size, name);
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    if (size >= (int)sizeof text || size == 0 || (open && !close))
        return false;
    if (!open) {
        puts(text);
        return true;
    }
    *close = '\0';
    for (const char *at = open + 1; *at; at += strcspn(at, ","), at += *at == ',')
        if (!print_range(text, (int)(open - text), at, (int)strcspn(at, ","), close + 1))
            return false;
    return true;
}

int slurm_control_print_hosts(const char *list)
{
    const char *at = list ? list : getenv("SLURM_JOB_NODELIST");
    while (at && *at) {
        size_t size = 0;
        for (bool is_in = false; at[size] && (is_in || at[size] != ','); size++)
            is_in = at[size] == '[' || (is_in && at[size] != ']');
        if (!print_name(at, (int)size)) {
            print_error("%.80s: not a list of nodes such as n[01-03],m", list ? list : at);
            return EXIT_USAGE;
        }
        at += size;
        at += *at == ',';
    }
    return EXIT_OK;
}

/* Snakemake reads where the accounts are, and how long an ended job is known: here as long as the
 * event log keeps it, but at least that long. Open OnDemand reads the partition. */
bool slurm_control_print(const char *what, bool is_one_line)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    gethostname(host, sizeof host - 1);
    if (strcmp(what, "config") == 0) {
        puts("Configuration data");
        puts("AccountingStorageType   = accounting_storage/slurmdbd");
        puts("ClusterName             = colloc");
        puts("MinJobAge               = 300 sec");
        printf("SlurmctldHost[0]        = %s\n", host);
        return true;
    }
    if (strncmp(what, "part", 4) != 0 || strncmp(what, "partitions", strlen(what)) != 0)
        return false;
    const char *between = is_one_line ? " " : "\n   ";
    printf("PartitionName=colloc%sAllowGroups=ALL AllowAccounts=ALL AllowQos=ALL%s"
           "AllocNodes=ALL Default=YES QoS=N/A%sMaxNodes=1 MaxTime=UNLIMITED MinNodes=0%s"
           "Nodes=%s%sOverSubscribe=FORCE%sState=UP TotalCPUs=%ld TotalNodes=1\n%s",
        between, between, between, between, host, between, between, sysconf(_SC_NPROCESSORS_ONLN),
        is_one_line ? "" : "\n");
    return true;
}
