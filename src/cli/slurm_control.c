/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts call scontrol for two things: the name of the first node, for a rendezvous, and to be run
 * again before their time limit ends them.
 *
 *     scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1
 *     trap 'scontrol requeue $SLURM_JOB_ID' USR1
 */
#include "cli/slurm_control.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/command.h"
#include "cli/print.h"
#include "slurmconf/host_list.h"

static const struct {
    const char *word, *command;
} controls[] = {
    {"requeue", "requeue"},
    {"hold", "hold"},
    {"uhold", "hold"},
    {"release", "release"},
    {"suspend", "suspend"},
    {"resume", "resume"},
    {"ping", "info"},
};

const char *slurm_control_command(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(controls); i++)
        if (strcmp(word, controls[i].word) == 0)
            return controls[i].command;
    return NULL;
}

static int print_host(void *context, const char *name)
{
    puts(name);
    return 0;
}

int slurm_control_print_hosts(const char *list)
{
    const char *text = list ? list : getenv("SLURM_JOB_NODELIST");
    if (!text || !*text)
        return EXIT_OK;
    if (!host_list_is_valid(span_of(text))) {
        print_error(
            "%.80s: not a list of at most %d nodes such as n[01-03],m", text, HOST_NAMES_MAX);
        return EXIT_USAGE;
    }
    return host_list_for_each(span_of(text), print_host, NULL);
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
