/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `squeue` and `sacct` as programs call them. The options are those that submitit, Snakemake,
 * Nextflow, batchspawner and Open OnDemand send; slurm_fields.c prints the lines.
 *
 *     squeue --noheader -o '%i %t' -t all -u ada
 *     sacct -X --parsable2 --noheader --format=JobIdRaw,State --name run --starttime 2026-11-01
 *
 * People who type `squeue --me` get the table of `colloc queue`, which says why a task waits.
 * Options that only choose among clusters, nodes and partitions have no effect: there is one
 * cluster with one node and one partition. A job that has started has the step 12.batch, its
 * script, and 12.0, 12.1, ..., what `srun` has run in it (step_report.h).
 */
#include "cli/slurm_list.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/moment.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/session_once.h"
#include "cli/slurm_fields.h"
#include "cli/slurm_getopt.h"
#include "cli/slurm_states.h"
#include "cli/task_forms.h"

#define QUEUE_FORMAT   "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define ACCOUNT_FORMAT "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
#define BATCH_STEP     "batch"
#define WANTED_STEP    "wanted_step" /* of a TASK object: only this step is wanted */
#define IDS_MOST       10000         /* chosen: of a command line */

struct list_options {
    const char *format, *jobs, *names, *states, *user, *since, *until;
    const char *long_format, *sort; /* of squeue: -O and -S */
    const char *delimiter;
    bool is_of_slurm; /* an option asks for Slurm's form */
    char *all_jobs;   /* of sacct; or NULL */
    int n_unknown;    /* of the jobs: ids that no task has */
    bool no_header, ends_so, is_parsable, is_of_all, names_cluster, prints_names;
    bool has_no_steps; /* of sacct: -X */
    const char *(*state_of)(const json_t *task);
};

#define FLAG(name, letter, member) SLURM_FLAG(name, letter, struct list_options, member)
#define TEXT(name, letter, argument, member)                                                       \
    SLURM_TEXT(name, letter, argument, struct list_options, member)

static const struct slurm_row queue_rows[] = {
    SLURM_OTHER("all", 'a', no_argument),
    SLURM_OTHER("array", 'r', no_argument),
    SLURM_OTHER("clusters", 'M', required_argument),
    TEXT("Format", 'O', required_argument, long_format),
    TEXT("format", 'o', required_argument, format),
    TEXT("jobs", 'j', optional_argument, jobs),
    SLURM_OTHER("local", 0, no_argument),
    TEXT("me", 0, no_argument, user),
    TEXT("name", 'n', required_argument, names),
    SLURM_OTHER("noconvert", 0, no_argument),
    FLAG("noheader", 'h', no_header),
    SLURM_OTHER("partition", 'p', required_argument),
    TEXT("sort", 'S', required_argument, sort),
    TEXT("states", 't', required_argument, states),
    TEXT("user", 'u', required_argument, user),
};

static const struct slurm_row account_rows[] = {
    FLAG("allocations", 'X', has_no_steps),
    FLAG("allusers", 'a', is_of_all),
    SLURM_OTHER("clusters", 'M', required_argument),
    TEXT("delimiter", 0, required_argument, delimiter),
    SLURM_OTHER("duplicates", 'D', no_argument),
    TEXT("endtime", 'E', required_argument, until),
    TEXT("format", 'o', required_argument, format),
    FLAG("helpformat", 'e', prints_names),
    SLURM_OTHER("jobs", 'j', required_argument),
    TEXT("name", 0, required_argument, names),
    SLURM_OTHER("nodelist", 'N', required_argument),
    SLURM_OTHER("noconvert", 0, no_argument),
    FLAG("noheader", 'n', no_header),
    FLAG("parsable", 'p', ends_so),
    FLAG("parsable2", 'P', is_parsable),
    TEXT("starttime", 'S', required_argument, since),
    TEXT("state", 's', required_argument, states),
    SLURM_OTHER("units", 0, required_argument),
    TEXT("user", 'u', required_argument, user),
};

static void note_queue_option(void *context, const struct slurm_row *row, const char *value)
{
    struct list_options *options = context;
    options->is_of_slurm |= row->at != offsetof(struct list_options, user);
    options->names_cluster |= row->letter == 'M';
}

/* sacct takes several lists of jobs together: submitit sends -j once for each. */
static void add_jobs(struct list_options *options, const char *value)
{
    char *all;
    if (asprintf(&all, "%s%s%s", options->all_jobs ? options->all_jobs : "",
            options->all_jobs ? "," : "", value) < 0)
        return;
    free(options->all_jobs);
    options->jobs = options->all_jobs = all;
}

static void note_account_option(void *context, const struct slurm_row *row, const char *value)
{
    struct list_options *options = context;
    options->is_of_slurm |= !row->letter || !strchr("SEuX", row->letter);
    options->is_parsable |= options->ends_so;
    if (row->letter == 'j')
        add_jobs(options, value);
}

/* Returns whether all options are known, and no word is left. */
static bool read_options(
    bool is_queue, const char *const *words, int count, struct list_options *options)
{
    const char **rest;
    int n = is_queue ? slurm_getopt(words, count, queue_rows, ARRAY_SIZE(queue_rows), options,
                           note_queue_option, &rest)
                     : slurm_getopt(words, count, account_rows, ARRAY_SIZE(account_rows), options,
                           note_account_option, &rest);
    options->state_of = is_queue ? slurm_state_long : slurm_state_account;
    if (n == 1 && is_queue && options->jobs) { /* "-j 12" */
        options->jobs = rest[0];
        n = 0;
    }
    free(rest);
    return n == 0;
}

/* ---- the tasks ---- */

/* Is the text one of the list, "a,b"? */
static bool is_listed(const char *list, const char *text)
{
    size_t size = strlen(text);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == size && strncmp(at, text, size) == 0)
            return true;
    return false;
}

static bool is_in_states(const char *list, const char *state)
{
    if (strcasecmp(list, "all") == 0)
        return true;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        const char *name = slurm_state_parse(at, strcspn(at, ","));
        if (name && strcmp(name, state) == 0)
            return true;
    }
    return false;
}

static int check_states(const char *program, const char *list)
{
    if (strcasecmp(list, "all") == 0)
        return EXIT_OK;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",");
        if (slurm_state_parse(at, size))
            continue;
        fprintf(stderr, "%s: error: Invalid job state specified: %.*s\n", program, (int)size, at);
        return EXIT_REFUSED;
    }
    return EXIT_OK;
}

static bool is_wanted(const struct list_options *options, const json_t *task)
{
    const char *user = options->user;
    return (!options->names || is_listed(options->names, member_text(task, "name", ""))) &&
           (!options->states || is_in_states(options->states, options->state_of(task))) &&
           (!user || is_listed(user, member_text(task, "user", "")));
}

/* What a command has found. */
struct found {
    json_t *tasks, *keys; /* a task, or a step of it, is there once, as with Slurm */
    json_t *all;          /* the daemon's list, where one was read for an array */
};

static struct found found_begin(void)
{
    return (struct found){.tasks = json_array(), .keys = json_object()};
}

static void found_end(struct found *found)
{
    json_decref(found->tasks);
    json_decref(found->keys);
    json_decref(found->all);
}

static void add_task(const struct list_options *options, json_t *task, struct found *found)
{
    char key[80];
    snprintf(key, sizeof key, "%.0f.%s", member_number(task, "id", 0),
        member_text(task, WANTED_STEP, ""));
    if (!is_wanted(options, task) || json_object_get(found->keys, key))
        return;
    json_object_set_new(found->keys, key, json_true());
    json_array_append(found->tasks, task);
}

static void add_wanted(
    const struct list_options *options, const json_t *reply, double array, struct found *found)
{
    json_t *task;
    size_t i;
    json_array_foreach(json_object_get(reply, "tasks"), i, task) {
        if (array == 0 || member_number(task, "array_id", 0) == array)
            add_task(options, task, found);
    }
}

static int add_array(
    struct client *client, const struct list_options *options, double array, struct found *found)
{
    int code = EXIT_OK;
    if (!found->all)
        code = session_call(client, "GET", "/v1/tasks?state=all&limit=1000000", NULL, &found->all);
    if (code == EXIT_OK)
        add_wanted(options, found->all, array, found);
    return code;
}

/* "12", "12_7", or an array: all its tasks. An id that is none adds nothing, as with Slurm.
 * `step`: of "12.batch"; NULL: the job with its steps. */
static int add_job(struct client *client, struct list_options *options, const char *id,
    const char *step, struct found *found)
{
    char path[160];
    struct fault fault = {0};
    int status = 0;
    json_t *reply = NULL;
    snprintf(path, sizeof path, "/v1/tasks/%s", id);
    int r = client_request(client, "GET", path, NULL, &fault, &status, &reply);
    if (r == 0 && status == 404) {
        json_decref(reply);
        options->n_unknown++;
        return EXIT_OK;
    }
    int code = session_exit_code(r, status, &fault, &reply);
    json_t *task = json_object_get(reply, "task");
    double array = member_number(json_object_get(reply, "array"), "id", 0);
    if (task && step)
        json_object_set_new(task, WANTED_STEP, json_string(step));
    if (task)
        add_task(options, task, found);
    json_decref(reply);
    return code == EXIT_OK && array != 0 ? add_array(client, options, array, found) : code;
}

static bool is_id(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    bool is_index = text[digits] == '_';
    size_t more = is_index ? strspn(text + digits + 1, "0123456789") : 0;
    return digits > 0 && digits < 20 && more < 12 && (is_index ? more > 0 : true) &&
           !text[digits + (is_index ? 1 + more : 0)];
}

static int get_jobs(const struct invocation *invocation, struct list_options *options,
    const char *program, struct found *found)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    char id[40];
    int code = session_open(invocation, &client), n = 0;
    if (code != EXIT_OK)
        return code;
    for (const char *at = options->jobs; *at && code == EXIT_OK && n < IDS_MOST; n++) {
        size_t size = strcspn(at, ",");
        size_t whole = strcspn(at, ",."); /* of a step, "12.batch": its job */
        snprintf(id, sizeof id, "%.*s", (int)(whole < size ? whole : size), at);
        char step[40] = "";
        if (whole < size)
            snprintf(step, sizeof step, "%.*s", (int)(size - whole - 1), at + whole + 1);
        if (is_id(id)) {
            code = add_job(client, options, id, *step ? step : NULL, found);
        } else {
            fprintf(stderr, "%s: error: Invalid job id: %.*s\n", program, (int)size, at);
            code = EXIT_REFUSED;
        }
        at += size;
        at += *at == ',';
    }
    return code;
}

static int add_moment(char *path, size_t size, const char *key, const char *text)
{
    char number[32];
    int64_t moment;
    if (strcmp(text, "now") == 0)
        return EXIT_OK;
    if (moment_parse(text, time(NULL), &moment) < 0) {
        fprintf(stderr, "sacct: error: Invalid time specification: %.60s\n", text);
        return EXIT_REFUSED;
    }
    snprintf(number, sizeof number, "%lld", (long long)moment);
    query_add(path, size, key, number);
    return EXIT_OK;
}

static int get_tasks(const struct invocation *invocation, const struct list_options *options,
    bool is_queue, struct found *found)
{
    char path[1024] = "/v1/tasks";
    json_t *reply;
    bool wants_ended = !is_queue || options->states;
    query_add(path, sizeof path, "state", wants_ended ? "all" : "live");
    if (options->user && !strchr(options->user, ','))
        query_add(path, sizeof path, "user", options->user);
    int code = EXIT_OK;
    if (!is_queue) {
        query_add(path, sizeof path, "limit", "1000000");
        code = add_moment(path, sizeof path, "since", options->since ? options->since : "today");
    }
    if (code == EXIT_OK && options->until)
        code = add_moment(path, sizeof path, "until", options->until);
    if (code == EXIT_OK)
        code = session_get(invocation, path, &reply);
    if (code != EXIT_OK)
        return code;
    add_wanted(options, reply, 0, found);
    json_decref(reply);
    return EXIT_OK;
}

/* ---- the lines ---- */

static int print_queue_row(const struct list_options *options, const json_t *task, FILE *out)
{
    char unknown[64];
    return options->long_format ? slurm_print_named_line(options->long_format, task, out, unknown)
                                : slurm_print_queue_line(
                                      options->format ? options->format : QUEUE_FORMAT, task, out);
}

static int print_queue_header(const void *options, FILE *out)
{
    return print_queue_row(options, NULL, out);
}

static int check_queue(const struct list_options *options)
{
    bool is_valid = print_is_format_valid(print_queue_header, options);
    if (!is_valid)
        fprintf(stderr, "squeue: error: Unrecognized option in the format: %.80s\n",
            options->long_format ? options->long_format : options->format);
    if (options->sort && !slurm_sort_is_known(options->sort)) {
        fprintf(stderr, "squeue: error: Invalid sort specification: %.80s\n", options->sort);
        is_valid = false;
    }
    return is_valid ? EXIT_OK : EXIT_REFUSED;
}

struct queued {
    json_t *task;
    size_t at; /* in the order of the queue, in which equal tasks stay */
};

static int compare_queued(const void *first, const void *second, void *keys)
{
    const struct queued *a = first, *b = second;
    int order = slurm_compare(keys, a->task, b->task);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

static void sort_tasks(json_t *tasks, const char *keys)
{
    size_t n = json_array_size(tasks);
    struct queued *list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; i < n && list; i++)
        list[i] = (struct queued){json_incref(json_array_get(tasks, i)), i};
    if (list)
        qsort_r(list, n, sizeof *list, compare_queued, (void *)(uintptr_t)keys);
    for (size_t i = 0; i < n && list; i++)
        json_array_set_new(tasks, i, list[i].task);
    free(list);
}

static int print_queue(const struct list_options *options, json_t *tasks)
{
    json_t *task;
    size_t i;
    int code = check_queue(options);
    if (code != EXIT_OK)
        return code;
    if (options->sort)
        sort_tasks(tasks, options->sort);
    if (options->names_cluster && !options->no_header)
        puts("CLUSTER: colloc");
    if (!options->no_header)
        print_queue_header(options, stdout);
    json_array_foreach(tasks, i, task) {
        print_queue_row(options, task, stdout);
    }
    return EXIT_OK;
}

/* The step as a TASK object: the job with what differs. `members`: of `srun_steps`; NULL: none. */
static json_t *make_step(const json_t *task, const char *name, const json_t *members)
{
    json_t *step = json_copy((json_t *)(uintptr_t)task);
    json_object_set_new(step, STEP_MEMBER, json_string(name));
    json_object_set_new(step, "name", json_string(name));
    json_object_set_new(step, "processes", json_integer(1));
    json_object_del(step, "cancelled_by");
    json_object_update(step, (json_t *)(uintptr_t)members);
    if (members) {
        double until = member_number(members, "ended_at", (double)time(NULL)),
               run_s = until - member_number(members, "started_at", until);
        json_object_set_new(step, "exec_s", json_real(run_s > 0 ? run_s : 0));
    }
    return step;
}

struct account_table {
    const char *format;
    struct slurm_layout layout;
    const char *only; /* the step that is wanted; NULL: all */
};

static void print_step(
    const struct account_table *table, const json_t *task, const char *name, const json_t *members)
{
    char unknown[64];
    if (table->only && strcmp(table->only, name) != 0)
        return;
    json_t *step = make_step(task, name, members);
    slurm_print_account_line(table->format, &table->layout, step, stdout, unknown);
    json_decref(step);
}

/* A job and its steps, or what -j and -X leave of them. */
static void print_job_rows(
    const struct list_options *options, struct account_table *table, const json_t *task)
{
    char unknown[64], number[16];
    json_t *step;
    size_t i;
    table->only = member_text(task, WANTED_STEP, NULL);
    if (!table->only)
        slurm_print_account_line(table->format, &table->layout, task, stdout, unknown);
    if (options->has_no_steps || !slurm_has_started(task))
        return;
    print_step(table, task, BATCH_STEP, NULL);
    json_array_foreach(json_object_get(task, "srun_steps"), i, step) {
        snprintf(number, sizeof number, "%.0f", member_number(step, "step", 0));
        print_step(table, task, number, step);
    }
}

/* The line of headers of sacct. */
struct account_header {
    const char *format;
    const struct slurm_layout *layout;
    char *unknown; /* 64 bytes: the field that is none */
};

static int print_account_header(const void *context, FILE *out)
{
    const struct account_header *header = context;
    return slurm_print_account_line(header->format, header->layout, NULL, out, header->unknown);
}

static int print_account(const struct list_options *options, const json_t *tasks)
{
    const char *format = options->format ? options->format : ACCOUNT_FORMAT;
    const char *between = !options->is_parsable ? NULL
                          : options->delimiter  ? options->delimiter
                                                : "|";
    struct account_table table = {format, {between, options->ends_so}, NULL};
    char unknown[64] = "";
    const struct account_header header = {format, &table.layout, unknown};
    json_t *task;
    size_t i;
    if (!print_is_format_valid(print_account_header, &header)) {
        fprintf(stderr, "sacct: fatal: Invalid field requested: \"%s\"\n", unknown);
        return EXIT_REFUSED;
    }
    if (!options->no_header)
        print_account_header(&header, stdout);
    json_array_foreach(tasks, i, task) {
        print_job_rows(options, &table, task);
    }
    return EXIT_OK;
}

/* The user whose tasks are meant: that of --me, and of sacct without -u, -a and -j, unless root
 * asks. */
static void choose_user(bool is_queue, struct list_options *options, char name[LOGIN_NAME_MAX])
{
    bool is_own = options->user ? !*options->user
                                : !is_queue && !options->jobs && !options->is_of_all && getuid();
    if (is_own)
        options->user = own_user_name(name, LOGIN_NAME_MAX);
}

/* batchspawner takes any other answer of squeue for the end of the job: a restart of collocd would
 * lose the notebooks (batchspawner 1.3.0, SlurmSpawner.state_unknown_re). */
#define UNREACHABLE "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"

static int run_list(bool is_queue, struct list_options *options)
{
    const struct invocation invocation = {0};
    const char *program = is_queue ? "squeue" : "sacct";
    char name[LOGIN_NAME_MAX];
    if (options->prints_names) {
        slurm_print_account_fields(stdout);
        return EXIT_OK;
    }
    int code = options->states ? check_states(program, options->states) : EXIT_OK;
    if (code != EXIT_OK)
        return code;
    choose_user(is_queue, options, name);
    session_set_unreachable_line(is_queue ? UNREACHABLE : NULL);
    struct found found = found_begin();
    bool has_jobs = options->jobs && *options->jobs;
    if (is_queue && !options->states)
        options->states = "PENDING,RUNNING,SUSPENDED,COMPLETING";
    code = has_jobs ? get_jobs(&invocation, options, program, &found)
                    : get_tasks(&invocation, options, is_queue, &found);
    if (code == EXIT_OK && is_queue && has_jobs && options->n_unknown == 1 &&
        !strchr(options->jobs, ',')) {
        fputs("slurm_load_jobs error: Invalid job id specified\n", stderr);
        code = EXIT_REFUSED;
    } else if (code == EXIT_OK)
        code = is_queue ? print_queue(options, found.tasks) : print_account(options, found.tasks);
    found_end(&found);
    return code;
}

bool slurm_list_run(const char *program, const char *const *words, int count, int *ret_exit_code)
{
    struct list_options options = {0};
    bool is_queue = strcmp(program, "squeue") == 0;
    if (!is_queue && strcmp(program, "sacct") != 0)
        return false;
    bool is_run = read_options(is_queue, words, count, &options) && options.is_of_slurm;
    if (is_run)
        *ret_exit_code = run_list(is_queue, &options);
    free(options.all_jobs);
    return is_run;
}

int slurm_list_show_jobs(const char *ids, bool is_one_line)
{
    const struct invocation invocation = {0};
    struct list_options options = {.jobs = ids};
    struct found found = found_begin();
    json_t *task;
    size_t i;
    session_set_unreachable_line(UNREACHABLE);
    int code = ids ? get_jobs(&invocation, &options, "scontrol", &found)
                   : get_tasks(&invocation, &options, true, &found);
    json_array_foreach(found.tasks, i, task) {
        slurm_print_job(task, is_one_line, stdout);
    }
    if (code == EXIT_OK && json_array_size(found.tasks) == 0 && !ids)
        puts("No jobs in the system");
    else if (code == EXIT_OK && json_array_size(found.tasks) == 0) {
        fputs("slurm_load_jobs error: Invalid job id specified\n", stderr);
        code = EXIT_REFUSED;
    }
    found_end(&found);
    return code;
}
