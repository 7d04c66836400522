/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools read tasks in Slurm's forms, and count on each letter of them:
 *
 *     squeue -h -o '%i %T %B'                12 RUNNING gpu-server
 *     sacct -P -n --format=JobID,State       12|COMPLETED
 *     scontrol show job 12                   JobId=12 JobName=net ...
 *
 * A row of the table is a field: its letter and header in squeue, its name and width in sacct, and
 * how it is written of a TASK object (docs/protocol.md). What has no meaning here (licences,
 * sockets) is what Slurm 22.05 prints of a job without it; tests/unit/cli/test_slurm_names.py has
 * its lines.
 */
#include "cli/slurm_fields.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/task_view.h"

enum { FIELD_WIDTH_MAX = 10000, DAY_S = 86400, HOUR_S = 3600 };

/* ---- states ---- */

static const struct {
    const char *name, *letters;
} states[] = {
    {"PENDING", "PD"},
    {"RUNNING", "R"},
    {"SUSPENDED", "S"},
    {"COMPLETING", "CG"},
    {"COMPLETED", "CD"},
    {"FAILED", "F"},
    {"CANCELLED", "CA"},
    {"TIMEOUT", "TO"},
    {"OUT_OF_MEMORY", "OOM"},
    /* states that no task has */
    {"BOOT_FAIL", "BF"},
    {"CONFIGURING", "CF"},
    {"DEADLINE", "DL"},
    {"NODE_FAIL", "NF"},
    {"PREEMPTED", "PR"},
    {"REQUEUED", "RQ"},
    {"RESIZING", "RS"},
    {"REVOKED", "RV"},
    {"SPECIAL_EXIT", "SE"},
    {"STOPPED", "ST"},
};

const char *slurm_state_long(const json_t *task)
{
    const char *state = member_text(task, "state", "");
    if (strcmp(state, "STOPPED") == 0) /* Slurm's STOPPED is a job that SIGSTOP has halted */
        return "CANCELLED";
    return strcmp(state, "PAUSED") == 0 ? "SUSPENDED" : state;
}

const char *slurm_state_short(const json_t *task)
{
    const char *name = slurm_state_long(task);
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (strcmp(states[i].name, name) == 0)
            return states[i].letters;
    return name;
}

const char *slurm_state_parse(const char *text, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        const char *const names[] = {states[i].name, states[i].letters};
        for (size_t k = 0; k < ARRAY_SIZE(names); k++)
            if (strlen(names[k]) == size && strncasecmp(names[k], text, size) == 0)
                return states[i].name;
    }
    return strncasecmp(text, "CANCELED", 8) == 0 && size == 8 ? "CANCELLED" : NULL;
}

/* ---- values ---- */

static bool has_started(const json_t *task)
{
    return strcmp(slurm_state_long(task), "PENDING") != 0 &&
           json_is_number(json_object_get(task, "started_at"));
}

static const char *host_name(void)
{
    static char name[HOST_NAME_MAX + 1]; /* of this process's machine: it does not change */
    if (!*name && gethostname(name, sizeof name - 1) != 0)
        return "localhost";
    return name;
}

/* As squeue prints it: "0:07", "1:30:00", "2-00:00:00". */
static void write_short_time(double seconds, FILE *out)
{
    long long s = (long long)seconds;
    if (s >= DAY_S)
        fprintf(out, "%lld-%02lld:%02lld:%02lld", s / DAY_S, s % DAY_S / HOUR_S, s % HOUR_S / 60,
            s % 60);
    else if (s >= HOUR_S)
        fprintf(out, "%lld:%02lld:%02lld", s / HOUR_S, s % HOUR_S / 60, s % 60);
    else
        fprintf(out, "%lld:%02lld", s / 60, s % 60);
}

/* As sacct and scontrol print it: "00:00:07", "2-00:00:00". */
static void write_long_time(double seconds, FILE *out)
{
    long long s = (long long)seconds;
    if (s >= DAY_S)
        fprintf(out, "%lld-", s / DAY_S);
    fprintf(out, "%02lld:%02lld:%02lld", s % DAY_S / HOUR_S, s % HOUR_S / 60, s % 60);
}

static void write_moment(const json_t *task, const char *key, const char *unknown, FILE *out)
{
    char text[32];
    const json_t *value = json_object_get(task, key);
    time_t seconds = (time_t)json_number_value(value);
    struct tm parts;
    bool is_known = json_is_number(value) && localtime_r(&seconds, &parts) &&
                    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts) > 0;
    fputs(is_known ? text : unknown, out);
}

static void write_id(const json_t *task, FILE *out)
{
    double array = member_number(task, "array_id", 0);
    if (array > 0)
        fprintf(out, "%.0f_%.0f", array, member_number(task, "array_index", 0));
    else
        fprintf(out, "%.0f", member_number(task, "id", 0));
}

static void write_raw_id(const json_t *task, FILE *out)
{
    fprintf(out, "%.0f", member_number(task, "id", 0));
}

static void write_array_id(const json_t *task, FILE *out)
{
    double array = member_number(task, "array_id", 0);
    fprintf(out, "%.0f", array > 0 ? array : member_number(task, "id", 0));
}

static void write_array_index(const json_t *task, FILE *out)
{
    if (member_number(task, "array_id", 0) > 0)
        fprintf(out, "%.0f", member_number(task, "array_index", 0));
    else
        fputs("N/A", out);
}

static void write_name(const json_t *task, FILE *out)
{
    fputs(member_text(task, "name", ""), out);
}

static void write_user(const json_t *task, FILE *out)
{
    fputs(member_text(task, "user", ""), out);
}

static void write_uid(const json_t *task, FILE *out)
{
    fprintf(out, "%.0f", member_number(task, "uid", 0));
}

static gid_t group_of(const json_t *task)
{
    const struct passwd *user = getpwuid((uid_t)member_number(task, "uid", 0));
    return user ? user->pw_gid : (gid_t)-1;
}

static void write_gid(const json_t *task, FILE *out)
{
    fprintf(out, "%u", group_of(task));
}

static void write_group(const json_t *task, FILE *out)
{
    const struct group *group = getgrgid(group_of(task));
    if (group)
        fputs(group->gr_name, out);
    else
        write_gid(task, out);
}

static void write_state(const json_t *task, FILE *out)
{
    fputs(slurm_state_long(task), out);
}

static void write_short_state(const json_t *task, FILE *out)
{
    fputs(slurm_state_short(task), out);
}

/* sacct names the user that cancelled a job: tools look for the word before the blank. */
static void write_state_of_account(const json_t *task, FILE *out)
{
    const char *by = member_text(task, "cancelled_by", NULL);
    const struct passwd *user = by ? getpwnam(by) : NULL;
    write_state(task, out);
    if (user && strcmp(slurm_state_long(task), "CANCELLED") == 0)
        fprintf(out, " by %u", user->pw_uid);
}

static double run_seconds(const json_t *task)
{
    return has_started(task) ? member_number(task, "exec_s", 0) : 0;
}

static void write_used(const json_t *task, FILE *out)
{
    write_short_time(run_seconds(task), out);
}

static void write_elapsed(const json_t *task, FILE *out)
{
    write_long_time(run_seconds(task), out);
}

static void write_elapsed_raw(const json_t *task, FILE *out)
{
    fprintf(out, "%.0f", run_seconds(task));
}

static double limit_seconds(const json_t *task)
{
    return member_number(task, "time_limit_s", 0);
}

static void write_limit(const json_t *task, FILE *out)
{
    if (limit_seconds(task) > 0)
        write_short_time(limit_seconds(task), out);
    else
        fputs("UNLIMITED", out);
}

static void write_left(const json_t *task, FILE *out)
{
    double left = limit_seconds(task) - run_seconds(task);
    if (limit_seconds(task) > 0)
        write_short_time(left > 0 ? left : 0, out);
    else
        fputs("UNLIMITED", out);
}

static void write_limit_of_account(const json_t *task, FILE *out)
{
    if (limit_seconds(task) > 0)
        write_long_time(limit_seconds(task), out);
    else
        fputs("UNLIMITED", out);
}

static void write_limit_minutes(const json_t *task, FILE *out)
{
    if (limit_seconds(task) > 0)
        fprintf(out, "%.0f", limit_seconds(task) / 60);
    else
        fputs("UNLIMITED", out);
}

static void write_submit(const json_t *task, FILE *out)
{
    write_moment(task, "submitted_at", "Unknown", out);
}

static void write_start(const json_t *task, FILE *out)
{
    write_moment(has_started(task) ? task : NULL, "started_at", "N/A", out);
}

static void write_end(const json_t *task, FILE *out)
{
    write_moment(task, "ended_at", "N/A", out);
}

static void write_start_of_account(const json_t *task, FILE *out)
{
    write_moment(has_started(task) ? task : NULL, "started_at", "Unknown", out);
}

static void write_end_of_account(const json_t *task, FILE *out)
{
    write_moment(task, "ended_at", "Unknown", out);
}

static void write_nodes(const json_t *task, FILE *out)
{
    fputs(has_started(task) ? host_name() : "", out);
}

static void write_nodes_of_account(const json_t *task, FILE *out)
{
    fputs(has_started(task) ? host_name() : "None assigned", out);
}

static void write_first_node(const json_t *task, FILE *out)
{
    fputs(has_started(task) ? host_name() : "n/a", out);
}

static void write_reason(const json_t *task, FILE *out)
{
    fputs(member_text(task, "reason", "None"), out);
}

static void write_nodes_or_reason(const json_t *task, FILE *out)
{
    if (has_started(task))
        fputs(host_name(), out);
    else
        fprintf(out, "(%s)", member_text(task, "reason", "None"));
}

static void write_command(const json_t *task, FILE *out)
{
    fputs(member_text(task, "command", "(null)"), out);
}

static void write_folder(const json_t *task, FILE *out)
{
    fputs(member_text(task, "cwd", "(null)"), out);
}

static void write_gpus(const json_t *task, FILE *out)
{
    double gpus = member_number(task, "gpus_requested", 1);
    if (gpus > 0)
        fprintf(out, "gres:gpu:%.0f", gpus);
    else
        fputs("N/A", out);
}

static void write_resources(const json_t *task, FILE *out)
{
    double gpus = member_number(task, "gpus_requested", 1);
    fprintf(out, "billing=1,cpu=%.0f", member_number(task, "cpus", 1));
    if (gpus > 0)
        fprintf(out, ",gres/gpu=%.0f", gpus);
    fputs(",node=1", out);
}

static void write_cpus(const json_t *task, FILE *out)
{
    fprintf(out, "%.0f", member_number(task, "cpus", 1));
}

static void write_exit(const json_t *task, FILE *out)
{
    fprintf(
        out, "%.0f:%.0f", member_number(task, "exit_code", 0), member_number(task, "signal", 0));
}

static void write_dependency(const json_t *task, FILE *out)
{
    const json_t *list = json_object_get(task, "waits_for");
    char cell[CELL_SIZE];
    fputs(json_array_size(list) ? list_text(list, cell) : "(null)", out);
}

static void write_priority(const json_t *task, FILE *out)
{
    static const char *const names[] = {"low", "normal", "high", "urgent"};
    int i = 0;
    while (i < 3 && strcmp(names[i], member_text(task, "priority", "normal")) != 0)
        i++;
    fprintf(out, "%d", i + 1);
}

static void write_cluster(const json_t *task, FILE *out)
{
    (void)task;
    fputs("colloc", out);
}

static void write_one(const json_t *task, FILE *out)
{
    (void)task;
    fputc('1', out);
}

/* ---- the table ---- */

static const struct slurm_field {
    char letter;        /* of squeue; 0: it has none */
    const char *header; /* of squeue */
    const char *name;   /* of sacct; NULL: it has none */
    int width;          /* of sacct; negative: flush left */
    void (*write)(const json_t *task, FILE *out);
    const char *constant; /* without `write`: what Slurm prints of a job without it */
} fields[] = {
    {'a', "ACCOUNT", "Account", 10, NULL, "(null)"},
    {'A', "JOBID", "JobIDRaw", -12, write_raw_id, NULL},
    {'b', "TRES_PER_NODE", NULL, 0, write_gpus, NULL},
    {'B', "EXEC_HOST", NULL, 0, write_first_node, NULL},
    {'c', "MIN_CPUS", NULL, 0, write_one, NULL},
    {'C', "CPUS", "NCPUS", 10, write_cpus, NULL},
    {'d', "MIN_TMP_DISK", NULL, 0, NULL, "0"},
    {'D', "NODES", "NNodes", 8, write_one, NULL},
    {'e', "END_TIME", NULL, 0, write_end, NULL},
    {'E', "DEPENDENCY", NULL, 0, write_dependency, NULL},
    {'f', "FEATURES", NULL, 0, NULL, "(null)"},
    {'F', "ARRAY_JOB_ID", NULL, 0, write_array_id, NULL},
    {'g', "GROUP", "Group", 9, write_group, NULL},
    {'G', "GROUP", "GID", 6, write_gid, NULL},
    {'h', "OVER_SUBSCRIBE", NULL, 0, NULL, "OK"},
    {'H', "SOCKETS_PER_NODE", NULL, 0, NULL, "*"},
    {'i', "JOBID", "JobID", -12, write_id, NULL},
    {'I', "CORES_PER_SOCKET", NULL, 0, NULL, "*"},
    {'j', "NAME", "JobName", 10, write_name, NULL},
    {'J', "THREADS_PER_CORE", NULL, 0, NULL, "*"},
    {'k', "COMMENT", "Comment", 14, NULL, "(null)"},
    {'K', "ARRAY_TASK_ID", NULL, 0, write_array_index, NULL},
    {'l', "TIME_LIMIT", NULL, 0, write_limit, NULL},
    {'L', "TIME_LEFT", NULL, 0, write_left, NULL},
    {'m', "MIN_MEMORY", NULL, 0, NULL, "0"},
    {'M', "TIME", NULL, 0, write_used, NULL},
    {'n', "REQ_NODES", NULL, 0, NULL, ""},
    {'N', "NODELIST", NULL, 0, write_nodes, NULL},
    {'o', "COMMAND", NULL, 0, write_command, NULL},
    {'O', "CONTIGUOUS", NULL, 0, NULL, "0"},
    {'P', "PARTITION", "Partition", 10, write_cluster, NULL},
    {'q', "QOS", "QOS", 10, NULL, "(null)"},
    {'Q', "PRIORITY", "Priority", 10, write_priority, NULL},
    {'r', "REASON", "Reason", 22, write_reason, NULL},
    {'R', "NODELIST(REASON)", NULL, 0, write_nodes_or_reason, NULL},
    {'S', "START_TIME", NULL, 0, write_start, NULL},
    {'t', "ST", NULL, 0, write_short_state, NULL},
    {'T', "STATE", NULL, 0, write_state, NULL},
    {'u', "USER", "User", 9, write_user, NULL},
    {'U', "UID", "UID", 6, write_uid, NULL},
    {'v', "RESERVATION", "Reservation", 20, NULL, "(null)"},
    {'V', "SUBMIT_TIME", "Submit", 19, write_submit, NULL},
    {'w', "WCKEY", "WCKey", 10, NULL, "(null)"},
    {'W', "LICENSES", NULL, 0, NULL, "(null)"},
    {'x', "EXC_NODES", NULL, 0, NULL, ""},
    {'X', "CORE_SPEC", NULL, 0, NULL, "N/A"},
    {'y', "NICE", NULL, 0, NULL, "0"},
    {'Y', "SCHEDNODES", NULL, 0, NULL, "(null)"},
    {'z', "S:C:T", NULL, 0, NULL, "*:*:*"},
    {'Z', "WORK_DIR", "WorkDir", 20, write_folder, NULL},
    /* of sacct only */
    {0, NULL, "AllocCPUS", 10, write_cpus, NULL},
    {0, NULL, "ReqCPUS", 8, write_cpus, NULL},
    {0, NULL, "State", 10, write_state_of_account, NULL},
    {0, NULL, "ExitCode", 8, write_exit, NULL},
    {0, NULL, "DerivedExitCode", 15, NULL, "0:0"},
    {0, NULL, "Elapsed", 10, write_elapsed, NULL},
    {0, NULL, "ElapsedRaw", 10, write_elapsed_raw, NULL},
    {0, NULL, "Timelimit", 10, write_limit_of_account, NULL},
    {0, NULL, "TimelimitRaw", 12, write_limit_minutes, NULL},
    {0, NULL, "Start", 19, write_start_of_account, NULL},
    {0, NULL, "End", 19, write_end_of_account, NULL},
    {0, NULL, "Eligible", 19, write_submit, NULL},
    {0, NULL, "NodeList", 15, write_nodes_of_account, NULL},
    {0, NULL, "AllocNodes", 10, write_one, NULL},
    {0, NULL, "ReqNodes", 8, write_one, NULL},
    {0, NULL, "AllocTRES", 10, write_resources, NULL},
    {0, NULL, "ReqTRES", 10, write_resources, NULL},
    {0, NULL, "ReqMem", 10, NULL, "0"},
    {0, NULL, "MaxRSS", 10, NULL, ""},
    {0, NULL, "MaxVMSize", 10, NULL, ""},
    {0, NULL, "AveRSS", 10, NULL, ""},
    {0, NULL, "TotalCPU", 10, NULL, "00:00:00"},
    {0, NULL, "Cluster", 10, write_cluster, NULL},
};

static void write_field(const struct slurm_field *field, const json_t *task, FILE *out)
{
    if (field->write)
        field->write(task, out);
    else
        fputs(field->constant, out);
}

static char *field_text(const struct slurm_field *field, const json_t *task)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    write_field(field, task, out);
    fclose(out);
    for (char *at = text; at && *at; at++) /* a name is another user's text: one line, one field */
        if (iscntrl((unsigned char)*at))
            *at = '?';
    return text;
}

/* ---- squeue ---- */

static const struct slurm_field *find_letter(char letter)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (fields[i].letter && fields[i].letter == letter)
            return &fields[i];
    return NULL;
}

static void print_cell(const char *text, long width, bool is_right, FILE *out)
{
    if (text && width > 0)
        fprintf(out, is_right ? "%*.*s" : "%-*.*s", (int)width, (int)width, text);
    else if (text)
        fputs(text, out);
}

/* "%.18i": flush right in 18 columns; "%8u": flush left, cut; "%T": as long as it is. */
static int print_queue_field(const char **at, const json_t *task, FILE *out)
{
    bool is_right = *++*at == '.';
    *at += is_right;
    char *end;
    long width = strtol(*at, &end, 10);
    *at = end;
    const struct slurm_field *field = find_letter(**at);
    if (!field || width < 0 || width > FIELD_WIDTH_MAX)
        return -EINVAL;
    char *text = task ? field_text(field, task) : strdup(field->header);
    print_cell(text, width, is_right, out);
    free(text);
    return 0;
}

int slurm_print_queue_line(const char *format, const json_t *task, FILE *out)
{
    char *line = NULL;
    size_t size;
    FILE *text = open_memstream(&line, &size);
    int r = text ? 0 : -ENOMEM;
    for (const char *at = format; text && *at && r == 0; at++)
        if (*at == '%')
            r = print_queue_field(&at, task, text);
        else
            fputc(*at, text);
    if (text)
        fclose(text);
    if (r == 0)
        fprintf(out, "%s\n", line);
    free(line);
    return r;
}

/* ---- squeue -O and -S ---- */

/* Of squeue -O, without a letter: "tres-alloc". */
static const struct slurm_field allocated = {0, "TRES_ALLOC", NULL, 0, write_resources, NULL};

/* The names of squeue 22.05's -O; "excnodes", which Open OnDemand sends, is that of later ones. */
static const struct {
    const char *name;
    char letter;
} long_names[] = {{"account", 'a'}, {"arrayjobid", 'F'}, {"arraytaskid", 'K'}, {"batchhost", 'B'},
    {"command", 'o'}, {"comment", 'k'}, {"contiguous", 'O'}, {"cores", 'I'}, {"corespec", 'X'},
    {"dependency", 'E'}, {"endtime", 'e'}, {"excnodes", 'x'}, {"feature", 'f'}, {"groupid", 'G'},
    {"groupname", 'g'}, {"jobarrayid", 'i'}, {"jobid", 'A'}, {"licenses", 'W'}, {"maxcpus", 'C'},
    {"mincpus", 'c'}, {"minmemory", 'm'}, {"mintmpdisk", 'd'}, {"name", 'j'}, {"nice", 'y'},
    {"nodelist", 'N'}, {"nodes", 'D'}, {"numcpus", 'C'}, {"numnodes", 'D'}, {"oversubscribe", 'h'},
    {"partition", 'P'}, {"prioritylong", 'Q'}, {"priority", 'Q'}, {"qos", 'q'}, {"reason", 'r'},
    {"reasonlist", 'R'}, {"reqnodes", 'n'}, {"reservation", 'v'}, {"schednodes", 'Y'}, {"sct", 'z'},
    {"sockets", 'H'}, {"starttime", 'S'}, {"state", 'T'}, {"statecompact", 't'}, {"threads", 'J'},
    {"submittime", 'V'}, {"timeleft", 'L'}, {"timelimit", 'l'}, {"timeused", 'M'},
    {"tres-per-node", 'b'}, {"userid", 'U'}, {"username", 'u'}, {"wckey", 'w'}, {"workdir", 'Z'}};

enum { NAMED_WIDTH = 20 }; /* of a field without one: squeue(1) */

static const struct slurm_field *find_long_name(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(long_names); i++)
        if (strlen(long_names[i].name) == size && strncasecmp(long_names[i].name, name, size) == 0)
            return find_letter(long_names[i].letter);
    return size == strlen("tres-alloc") && strncasecmp("tres-alloc", name, size) == 0 ? &allocated
                                                                                      : NULL;
}

/* "JobID,State:8,Name:.6|,Reason:\x1f": a width, and what is printed behind the field. */
int slurm_print_named_line(const char *list, const json_t *task, FILE *out, char ret_unknown[64])
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",:");
        const struct slurm_field *field = find_long_name(at, size);
        bool has_width = at[size] == ':', is_right = has_width && at[size + 1] == '.';
        const char *start = at + size + 1 + is_right;
        char *end = NULL;
        long width = has_width ? strtol(start, &end, 10) : NAMED_WIDTH; /* ":": as long as it is */
        const char *suffix = has_width ? end : at + size;
        if (!field || width < 0 || width > FIELD_WIDTH_MAX) {
            snprintf(ret_unknown, 64, "%.*s", (int)(size < 60 ? size : 60), at);
            return -EINVAL;
        }
        char *text = task ? field_text(field, task) : strdup(field->header);
        print_cell(text, width, is_right, out);
        fprintf(out, "%.*s", (int)strcspn(suffix, ","), suffix);
        free(text);
    }
    fputc('\n', out);
    return 0;
}

/* What is printed in a form that does not sort: durations, and ids. */
static bool find_number(char letter, const json_t *task, double *ret_number)
{
    bool is_known = true;
    switch (letter) {
    case 'M':
        *ret_number = run_seconds(task);
        break;
    case 'l':
    case 'L': /* no limit is the longest */
        *ret_number = limit_seconds(task) > 0 ? limit_seconds(task) : HUGE_VAL;
        *ret_number -= letter == 'L' && limit_seconds(task) > 0 ? run_seconds(task) : 0;
        break;
    case 'i':
    case 'A':
        *ret_number = member_number(task, "id", 0);
        break;
    default:
        is_known = false;
    }
    return is_known;
}

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_field(char letter, const json_t *a, const json_t *b)
{
    double number_a, number_b;
    const struct slurm_field *field = find_letter(letter);
    if (find_number(letter, a, &number_a) && find_number(letter, b, &number_b))
        return compare_numbers(number_a, number_b);
    char *text_a = field_text(field, a), *text_b = field_text(field, b), *end_a, *end_b;
    int order = 0;
    if (text_a && text_b) {
        number_a = strtod(text_a, &end_a);
        number_b = strtod(text_b, &end_b);
        bool are_numbers = *text_a && *text_b && !*end_a && !*end_b;
        order = are_numbers ? compare_numbers(number_a, number_b) : strcmp(text_a, text_b);
    }
    free(text_a);
    free(text_b);
    return order;
}

/* Takes the next key off: its letter, and whether it is reversed. 'p' is squeue's letter of the
 * priority. Returns false at the end, or at what is no key: letter 0. */
static bool take_key(const char **keys, char *ret_letter, bool *ret_is_reversed)
{
    *ret_letter = 0;
    if (!**keys)
        return false;
    *ret_is_reversed = **keys == '-';
    *keys += **keys == '-' || **keys == '+';
    char letter = **keys == 'p' ? 'Q' : **keys;
    if (!letter || !find_letter(letter) || ((*keys)[1] && (*keys)[1] != ','))
        return false;
    *ret_letter = letter;
    *keys += 1;
    *keys += **keys == ',';
    return true;
}

bool slurm_sort_is_known(const char *keys)
{
    char letter;
    bool is_reversed;
    while (take_key(&keys, &letter, &is_reversed))
        ;
    return !*keys;
}

int slurm_compare(const char *keys, const json_t *a, const json_t *b)
{
    char letter;
    bool is_reversed;
    int order = 0;
    while (order == 0 && take_key(&keys, &letter, &is_reversed))
        order = is_reversed ? compare_field(letter, b, a) : compare_field(letter, a, b);
    return order;
}

/* ---- sacct ---- */

static const struct slurm_field *find_name(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (fields[i].name && strlen(fields[i].name) == size &&
            strncasecmp(fields[i].name, name, size) == 0)
            return &fields[i];
    return NULL;
}

/* In columns as sacct prints them: cut with a '+', a blank behind each. */
static void print_column(const char *text, int width, FILE *out)
{
    int columns = abs(width), size = (int)strlen(text);
    if (size > columns)
        fprintf(out, "%.*s+ ", columns - 1, text);
    else
        fprintf(out, width < 0 ? "%-*s " : "%*s ", columns, text);
}

static int width_of(const struct slurm_field *field, const char *given)
{
    long width = given ? strtol(given, NULL, 10) : 0;
    return width && labs(width) <= FIELD_WIDTH_MAX ? (int)width : field->width;
}

/* What sacct 22.05 leaves empty in the line of a step. */
static const char *const of_jobs_only[] = {"Group", "GID", "Partition", "Priority", "QOS", "Reason",
    "ReqTRES", "Reservation", "Timelimit", "TimelimitRaw", "UID", "User", "WCKey", "WorkDir"};

/* A step has its job's times, state and resources. NULL: as of its job. */
static char *step_text(const struct slurm_field *field, const json_t *task, const char *step)
{
    char *id = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(of_jobs_only); i++)
        if (strcmp(of_jobs_only[i], field->name) == 0)
            return strdup("");
    if (strcmp(field->name, "JobName") == 0)
        return strdup(step);
    if (field->write == write_state_of_account)
        return strdup(slurm_state_long(task));
    if (field->write != write_id && field->write != write_raw_id)
        return NULL;
    char *job = field_text(field, task);
    int n = job ? asprintf(&id, "%s.%s", job, step) : -1;
    free(job);
    return n < 0 ? NULL : id;
}

/* The unknown text of a constant is an empty one in accounting. */
static char *account_text(const struct slurm_field *field, const json_t *task, const char *step)
{
    char *of_step = task && step ? step_text(field, task, step) : NULL;
    if (of_step)
        return of_step;
    bool is_null = !field->write && strcmp(field->constant, "(null)") == 0;
    return !task ? strdup(field->name) : is_null ? strdup("") : field_text(field, task);
}

static void print_dashes(const char *list, FILE *out)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",%");
        const struct slurm_field *field = find_name(at, size);
        int width = field ? abs(width_of(field, at[size] == '%' ? at + size + 1 : NULL)) : 0;
        for (int i = 0; i < width; i++)
            fputc('-', out);
        fputc(' ', out);
    }
    fputc('\n', out);
}

int slurm_print_account_line(const char *list, const struct slurm_layout *layout,
    const json_t *task, const char *step, FILE *out, char ret_unknown[64])
{
    bool is_first = true;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",%");
        const struct slurm_field *field = find_name(at, size);
        char *text = field ? account_text(field, task, step) : NULL;
        if (!text) {
            snprintf(ret_unknown, 64, "%.*s", (int)(size < 60 ? size : 60), at);
            return -EINVAL;
        }
        if (layout->between)
            fprintf(out, "%s%s", is_first ? "" : layout->between, text);
        else
            print_column(text, width_of(field, at[size] == '%' ? at + size + 1 : NULL), out);
        free(text);
        is_first = false;
    }
    fprintf(out, "%s\n", layout->ends_so ? layout->between : "");
    if (!task && !layout->between)
        print_dashes(list, out);
    return 0;
}

void slurm_print_account_fields(FILE *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (fields[i].name)
            fprintf(out, "%s\n", fields[i].name);
}

/* ---- scontrol show job ---- */

/* "%T": a letter of squeue; "@Elapsed;": a field of sacct. */
static void print_pattern(const char *pattern, const json_t *task, FILE *out)
{
    for (const char *at = pattern; *at; at++) {
        size_t size = *at == '@' ? strcspn(at + 1, ";") : 0;
        const struct slurm_field *field = size ? find_name(at + 1, size) : NULL;
        if (field)
            field->write(task, out);
        if (*at == '%')
            print_queue_field(&at, task, out);
        else if (!field)
            fputc(*at, out);
        at += field ? size + 1 : 0;
    }
}

void slurm_print_job(const json_t *task, bool is_one_line, FILE *out)
{
    static const char *const lines[] = {"UserId=%u(%U) GroupId=%g(%G) MCS_label=N/A",
        "Priority=%Q Nice=%y Account=%a QOS=%q", "JobState=%T Reason=%r Dependency=%E",
        "Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=@ExitCode;",
        "RunTime=@Elapsed; TimeLimit=@Timelimit; TimeMin=N/A",
        "SubmitTime=@Submit; EligibleTime=@Submit;", "StartTime=@Start; EndTime=@End; Deadline=N/A",
        "Partition=%P AllocNode:Sid=N/A:N/A", "ReqNodeList=(null) ExcNodeList=(null)",
        "NodeList=%N", "BatchHost=%B",
        "NumNodes=%D NumCPUs=%C NumTasks=1 CPUs/Task=%C ReqB:S:C:T=0:0:*:*",
        "Features=(null) DelayBoot=00:00:00",
        "OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)", "Command=%o", "WorkDir=%Z",
        "TresPerNode=%b"};
    print_pattern("JobId=%A ", task, out);
    if (member_number(task, "array_id", 0) > 0)
        print_pattern("ArrayJobId=%F ArrayTaskId=%K ", task, out);
    print_pattern("JobName=%j", task, out);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        if (strncmp(lines[i], "BatchHost", 9) == 0 && !has_started(task))
            continue;
        fputs(is_one_line ? " " : "\n   ", out);
        if (strncmp(lines[i], "Requeue", 7) != 0) {
            print_pattern(lines[i], task, out);
            continue;
        }
        double attempts = member_number(task, "attempt_count", 1);
        fprintf(out, "Requeue=%d Restarts=%.0f BatchFlag=1 Reboot=0 ",
            !json_is_false(json_object_get(task, "requeue")), attempts > 1 ? attempts - 1 : 0);
        print_pattern("ExitCode=@ExitCode;", task, out);
    }
    fputs(is_one_line ? "\n" : "\n\n", out);
}
