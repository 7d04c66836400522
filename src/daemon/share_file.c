/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file has names of users, the core uses numbers. While the loop runs it must not wait for the
 * user database (LDAP, perhaps), so the file is read twice: first to find its mistakes and to list
 * its users, who are looked up in the background; when all answers have come, with their numbers.
 */
#include "daemon/share_file.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"

enum { FILE_MAX_BYTES = 1 << 20 }; /* bytes; chosen: far above SHARE_USERS_MAX lines */

/* A user's number needs no database. */
static bool is_number(const char *name, uint32_t *ret_uid)
{
    int64_t uid;
    if (parse_int64(name, 0, UINT32_MAX - 1, &uid) < 0)
        return false;
    *ret_uid = (uint32_t)uid;
    return true;
}

/* ---- at the start ---- */

static int find_in_database(void *context, const char *name, uint32_t *ret_uid)
{
    if (is_number(name, ret_uid))
        return 0;
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (user)
        *ret_uid = user->pw_uid;
    return user ? 0 : errno == 0 ? -ENOENT : -errno;
}

int share_file_read(const char *path, struct fault *fault, struct share_table *ret_table)
{
    char *text;
    size_t size;
    share_table_init(ret_table);
    if (!*path)
        return 0;
    int r = file_read(path, FILE_MAX_BYTES, fault, &text, &size);
    if (r < 0)
        return fault_prefix(fault, r, "shares");
    r = share_table_parse(text, size, path, find_in_database, NULL, fault, ret_table);
    free(text);
    return fault_prefix(r < 0 ? fault : NULL, r, "shares");
}

/* ---- while the loop runs ---- */

/* A file that is being read, and its users in the order of their lines. */
struct reading_again {
    char *path, *text;
    size_t size;
    struct names *names;
    share_file_on_read *on_read;
    void *context;
    struct user {
        char name[NAME_MAX_BYTES];
        int answer; /* 0 or -errno */
        uint32_t uid;
    } users[SHARE_USERS_MAX + 1];
    int n_users, n_open; /* listed; not answered yet */
    struct fault fault;
    struct share_table table;
};

static void finish_reading(struct reading_again *reading, int r)
{
    fault_prefix(r < 0 ? &reading->fault : NULL, r, "shares");
    reading->on_read(reading->context, r < 0 ? NULL : &reading->table, &reading->fault);
    free(reading->path);
    free(reading->text);
    free(reading);
}

static struct user *find_user(struct reading_again *reading, const char *name)
{
    for (int i = 0; i < reading->n_users; i++)
        if (strcmp(reading->users[i].name, name) == 0)
            return &reading->users[i];
    return NULL;
}

/* The first time: any number that no other user has. */
static int list_user(void *context, const char *name, uint32_t *ret_uid)
{
    struct reading_again *reading = context;
    if (is_number(name, ret_uid))
        return 0;
    *ret_uid = UINT32_MAX - 1 - (uint32_t)reading->n_users;
    if (find_user(reading, name) || reading->n_users > SHARE_USERS_MAX)
        return 0; /* named twice, or too many: which the lines behind say */
    if (strlen(name) >= NAME_MAX_BYTES)
        return -ENOENT;
    strcpy(reading->users[reading->n_users++].name, name);
    return 0;
}

static int find_answer(void *context, const char *name, uint32_t *ret_uid)
{
    const struct user *user;
    if (is_number(name, ret_uid))
        return 0;
    user = find_user(context, name);
    if (user)
        *ret_uid = user->uid;
    return user ? user->answer : -ENOENT;
}

static int parse_shares(struct reading_again *reading, share_find_user *find)
{
    return share_table_parse(reading->text, reading->size, reading->path, find, reading,
        &reading->fault, &reading->table);
}

static void close_one(struct reading_again *reading)
{
    if (--reading->n_open == 0)
        finish_reading(reading, parse_shares(reading, find_answer));
}

struct question {
    struct reading_again *reading;
    struct user *user;
};

static void on_answer(void *context, const struct name *name)
{
    struct question *question = context;
    struct user *user = question->user;
    user->uid = name->uid;
    user->answer = name->state == NAME_KNOWN ? 0 : name->state == NAME_NONE ? -ENOENT : -ETIMEDOUT;
    close_one(question->reading);
    free(question);
}

/* One is held open by this function: an answer may come at once. */
static void ask_all(struct reading_again *reading)
{
    reading->n_open = 1 + reading->n_users;
    for (int i = 0, n = reading->n_users; i < n; i++) {
        struct question *question = malloc(sizeof *question);
        if (!question) {
            reading->users[i].answer = -ENOMEM;
            reading->n_open--;
            continue;
        }
        *question = (struct question){reading, &reading->users[i]};
        names_ask_name(reading->names, reading->users[i].name, on_answer, question);
    }
    close_one(reading);
}

void share_file_read_again(
    const char *path, struct names *names, share_file_on_read *on_read, void *context)
{
    struct reading_again *reading = calloc(1, sizeof *reading);
    struct fault fault = {"shares: out of memory"};
    if (!reading) {
        on_read(context, NULL, &fault);
        return;
    }
    reading->path = strdup(path);
    reading->names = names;
    reading->on_read = on_read;
    reading->context = context;
    share_table_init(&reading->table);
    if (!reading->path) {
        finish_reading(reading, fault_set(&reading->fault, ENOMEM, "out of memory"));
        return;
    }
    int r = *path ? file_read(path, FILE_MAX_BYTES, &reading->fault, &reading->text, &reading->size)
                  : 0;
    if (r == 0)
        r = parse_shares(reading, list_user);
    if (r < 0)
        finish_reading(reading, r);
    else
        ask_all(reading);
}
