/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the file of shares. A line has up to five words, the first of which names the kind of the
 * line, and the last may be a promise. A user's project must have been named before, so that a
 * misspelt one is found. */
#include "fairness/share_table.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

/* "user ada vision 3 max-slowdown=1.5"; Linux: names of 32 bytes */
enum { WORDS_MAX = 5, WORD_BYTES = 64 };

static const char promise_word[] = "max-slowdown=";

static const struct share_project default_project = {.name = "default", .shares = 1};

struct parsing {
    struct share_table *table;
    share_find_user *find_user;
    void *context;
    struct fault *fault;
};

/* The words of a line, without its comment. */
struct line {
    char words[WORDS_MAX][WORD_BYTES];
    int n;
};

void share_table_init(struct share_table *table)
{
    *table = (struct share_table){.n_projects = 1, .projects = {default_project}};
}

static int split_line(const char *text, size_t size, struct fault *fault, struct line *ret_line)
{
    size_t at = 0;
    ret_line->n = 0;
    if (memchr(text, '\0', size))
        return fault_set(fault, EINVAL, "a NUL character");
    const char *comment = memchr(text, '#', size);
    size = comment ? (size_t)(comment - text) : size;
    for (;;) {
        while (at < size && isspace((unsigned char)text[at]))
            at++;
        if (at == size)
            return 0;
        size_t begin = at;
        while (at < size && !isspace((unsigned char)text[at]))
            at++;
        struct span word = {text + begin, at - begin};
        if (ret_line->n == WORDS_MAX)
            return fault_set(fault, EINVAL, "'%.*s': more words than expected",
                (int)(word.size < 40 ? word.size : 40), word.at);
        if (!span_copy(word, ret_line->words[ret_line->n], WORD_BYTES))
            return fault_set(
                fault, EINVAL, "'%.40s...': a word has at most %d bytes", word.at, WORD_BYTES - 1);
        ret_line->n++;
    }
}

/* The word `i` of the line as shares; 1, where there is none. */
static int take_shares(const struct line *line, int i, struct fault *fault, int *ret_shares)
{
    int64_t shares = 1;
    if (line->n > i && parse_int64(line->words[i], 1, USER_SHARES_MAX, &shares) < 0)
        return fault_set(fault, EINVAL, "'%s': shares are a whole number from 1 to %d",
            line->words[i], USER_SHARES_MAX);
    *ret_shares = (int)shares;
    return 0;
}

/* Takes the promise off the end of the line. */
static int take_promise(struct line *line, struct fault *fault, struct share_promise *ret_promise)
{
    const char *last = line->words[line->n - 1], *value = last + strlen(promise_word);
    *ret_promise = (struct share_promise){.is_set = false};
    if (strncmp(last, promise_word, strlen(promise_word)) != 0)
        return 0;
    line->n--;
    ret_promise->is_set = true;
    if (strcmp(value, "none") == 0)
        return 0;
    if (parse_double(value, 1, SHARE_PROMISE_MAX, &ret_promise->slowdown_max) < 0)
        return fault_set(fault, EINVAL,
            "'%s': a promise of speed is a number from 1 to %d (times as long as alone), or none",
            last, SHARE_PROMISE_MAX);
    return 0;
}

static int find_project(const struct share_table *table, const char *name)
{
    for (int i = 0; i < table->n_projects; i++)
        if (strcmp(table->projects[i].name, name) == 0)
            return i;
    return -1;
}

static bool is_project_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.-", *c))
            return false;
    return *name && strlen(name) < PROJECT_NAME_BYTES;
}

/* The shares of "default" may be given, too, in the first line about a project or later. */
static int take_project(
    struct parsing *parsing, const struct line *line, const struct share_promise *promise)
{
    struct share_table *table = parsing->table;
    int shares = 1, r;
    if (line->n < 2 || line->n > 3)
        return fault_set(
            parsing->fault, EINVAL, "expected 'project NAME [SHARES] [max-slowdown=TIMES]'");
    if (!is_project_name(line->words[1]))
        return fault_set(parsing->fault, EINVAL,
            "'%s': a project's name has letters, digits, '_', '.' and '-', at most %d",
            line->words[1], PROJECT_NAME_BYTES - 1);
    if ((r = take_shares(line, 2, parsing->fault, &shares)) < 0)
        return r;
    int i = find_project(table, line->words[1]);
    if (i > 0)
        return fault_set(parsing->fault, EINVAL, "project %s: named twice", line->words[1]);
    if (i < 0 && table->n_projects == PROJECTS_MAX)
        return fault_set(parsing->fault, EINVAL, "more than %d projects", PROJECTS_MAX - 1);
    i = i < 0 ? table->n_projects++ : i;
    strcpy(table->projects[i].name, line->words[1]);
    table->projects[i].shares = shares;
    table->projects[i].promise = *promise;
    return 0;
}

/* Where the user is, or would be. */
static int lower_bound(const struct share_table *table, uint32_t uid)
{
    int low = 0, high = table->n_users;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (table->users[middle].uid < uid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int add_user(struct parsing *parsing, const char *name, const struct user_shares *user)
{
    struct share_table *table = parsing->table;
    int at = lower_bound(table, user->uid);
    if (at < table->n_users && table->users[at].uid == user->uid)
        return fault_set(parsing->fault, EINVAL, "user %s: named twice", name);
    if (table->n_users == SHARE_USERS_MAX)
        return fault_set(parsing->fault, EINVAL, "more than %d users", SHARE_USERS_MAX);
    memmove(&table->users[at + 1], &table->users[at],
        (size_t)(table->n_users - at) * sizeof *table->users);
    table->users[at] = *user;
    table->n_users++;
    return 0;
}

static int take_user(
    struct parsing *parsing, const struct line *line, const struct share_promise *promise)
{
    struct user_shares user = {.promise = *promise};
    if (line->n < 3 || line->n > 4)
        return fault_set(
            parsing->fault, EINVAL, "expected 'user NAME PROJECT [SHARES] [max-slowdown=TIMES]'");
    user.project = find_project(parsing->table, line->words[2]);
    if (user.project < 0)
        return fault_set(parsing->fault, EINVAL,
            "'%s': no such project: write 'project %s SHARES' before its users", line->words[2],
            line->words[2]);
    int r = take_shares(line, 3, parsing->fault, &user.shares);
    if (r < 0)
        return r;
    r = parsing->find_user(parsing->context, line->words[1], &user.uid);
    if (r == -ENOENT)
        return fault_set(parsing->fault, ENOENT, "'%s': there is no such user", line->words[1]);
    if (r < 0)
        return fault_set(parsing->fault, -r, "'%s': the user cannot be looked up: %s",
            line->words[1], strerror(-r));
    return add_user(parsing, line->words[1], &user);
}

static int take_line(struct parsing *parsing, const char *text, size_t size)
{
    struct line line;
    int r = split_line(text, size, parsing->fault, &line);
    if (r < 0 || line.n == 0)
        return r;
    struct share_promise promise;
    if ((r = take_promise(&line, parsing->fault, &promise)) < 0)
        return r;
    if (line.n > 0 && strcmp(line.words[0], "project") == 0)
        return take_project(parsing, &line, &promise);
    if (line.n > 0 && strcmp(line.words[0], "user") == 0)
        return take_user(parsing, &line, &promise);
    bool is_yaml = strchr(line.words[0], ':') || strcmp(line.words[0], "-") == 0;
    return fault_set(parsing->fault, EINVAL, "'%s': a line begins with 'project' or 'user'%s",
        line.words[0],
        is_yaml ? ": the file is not YAML, but has lines such as 'project vision 2' and "
                  "'user ada vision'"
                : "");
}

int share_table_parse(const char *text, size_t size, const char *path, share_find_user *find_user,
    void *context, struct fault *fault, struct share_table *ret_table)
{
    struct parsing parsing = {ret_table, find_user, context, fault};
    share_table_init(ret_table);
    struct span rest = {text, size}, line;
    for (int number = 1; span_next_line(&rest, &line); number++) {
        int r = take_line(&parsing, line.at, line.size);
        if (r < 0)
            return fault_prefix(fault, r, "%s:%d", path, number);
    }
    return 0;
}

struct user_shares share_table_find(const struct share_table *table, uint32_t uid)
{
    int at = lower_bound(table, uid);
    if (at < table->n_users && table->users[at].uid == uid)
        return table->users[at];
    return (struct user_shares){.uid = uid, .project = 0, .shares = 1};
}

struct reading share_table_promise(const struct share_table *table, uint32_t uid)
{
    struct user_shares user = share_table_find(table, uid);
    const struct share_promise *promise = user.promise.is_set
                                              ? &user.promise
                                              : &table->projects[user.project].promise;
    return promise->slowdown_max > 0 ? reading_of(promise->slowdown_max) : READING_NONE;
}

static bool same_promise(const struct share_promise *a, const struct share_promise *b)
{
    return a->is_set == b->is_set && a->slowdown_max == b->slowdown_max;
}

static bool same_projects(const struct share_table *a, const struct share_table *b)
{
    for (int i = 0; i < a->n_projects && i < b->n_projects; i++)
        if (strcmp(a->projects[i].name, b->projects[i].name) != 0 ||
            a->projects[i].shares != b->projects[i].shares ||
            !same_promise(&a->projects[i].promise, &b->projects[i].promise))
            return false;
    return a->n_projects == b->n_projects;
}

bool share_table_equal(const struct share_table *a, const struct share_table *b)
{
    for (int i = 0; i < a->n_users && i < b->n_users; i++)
        if (a->users[i].uid != b->users[i].uid || a->users[i].project != b->users[i].project ||
            a->users[i].shares != b->users[i].shares ||
            !same_promise(&a->users[i].promise, &b->users[i].promise))
            return false;
    return a->n_users == b->n_users && same_projects(a, b);
}
