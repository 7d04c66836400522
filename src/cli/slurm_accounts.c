/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snakemake asks which accounts a user has, and submits nothing with another one. There is one
 * account, "colloc", as there is one partition: colloc's projects are in the shares file, and a
 * task's follows from its user.
 *
 *     sacctmgr -n -s list user "ada" format=account%20                     colloc
 *
 * All that would change an account is refused.
 */
#include "cli/slurm_accounts.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/slurm_getopt.h"

enum { COLUMNS_MAX = 1000, WIDTH = 10 };

struct order {
    const char *user, *format;
    bool no_header, is_parsable, ends_so;
};

/* Headers and widths are those of sacctmgr 22.05; NULL: the user. */
static const struct {
    const char *name, *header, *value;
} fields[] = {
    {"account", "Account", "colloc"},
    {"adminlevel", "Admin", "None"},
    {"cluster", "Cluster", "colloc"},
    {"defaultaccount", "Def Acct", "colloc"},
    {"defaultqos", "Def QOS", ""},
    {"description", "Descr", "colloc"},
    {"fairshare", "Share", "1"},
    {"organization", "Org", "colloc"},
    {"partition", "Partition", ""},
    {"qos", "QOS", ""},
    {"user", "User", NULL},
};

/* As Slurm, by the beginning of a name. Returns the row, or -1. */
static int find_field(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (size && strncasecmp(fields[i].name, name, size) == 0)
            return (int)i;
    return -1;
}

/* `is_rule`: the line of dashes. Returns 0, or -EINVAL at an unknown field. */
static int print_line(const struct order *order, bool is_header, bool is_rule, FILE *out)
{
    static const char dashes[] = "----------------------------------------------------------------";
    for (const char *at = order->format; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",%");
        int row = find_field(at, size);
        long given = at[size] == '%' ? strtol(at + size + 1, NULL, 10) : WIDTH;
        long width = given < 0 && given >= -COLUMNS_MAX ? -given : given;
        if (row < 0 || width < 1 || width > COLUMNS_MAX)
            return -EINVAL;
        const char *value = fields[row].value ? fields[row].value : order->user;
        const char *text = is_rule ? dashes : is_header ? fields[row].header : value;
        bool is_last = !strchr(at, ',');
        if (order->is_parsable)
            fprintf(out, "%s%s", text, is_last && !order->ends_so ? "" : "|");
        else
            fprintf(out, "%*.*s ", (int)width, (int)width, text);
    }
    fputc('\n', out);
    return 0;
}

static int print_row(const void *order, FILE *out)
{
    return print_line(order, false, false, out);
}

static int print_list(const struct order *order)
{
    if (!print_is_format_valid(print_row, order)) {
        fprintf(stderr, "sacctmgr: fatal: Unknown field in '%.80s'\n", order->format);
        return EXIT_REFUSED;
    }
    if (!order->no_header)
        print_line(order, true, false, stdout);
    if (!order->no_header && !order->is_parsable)
        print_line(order, true, true, stdout);
    print_row(order, stdout);
    return EXIT_OK;
}

/* "list user ada format=account%20": words that choose among accounts choose the only one. */
static int read_words(const char *const *words, int count, struct order *order)
{
    bool lists = count > 1 &&
                 (strcasecmp(words[0], "list") == 0 || strncasecmp(words[0], "show", 4) == 0);
    static const char *const kinds[] = {"user", "account", "assoc"};
    bool is_known = false;
    for (size_t i = 0; i < ARRAY_SIZE(kinds) && lists; i++)
        is_known |= strncasecmp(words[1], kinds[i], strlen(kinds[i])) == 0;
    if (!is_known) {
        print_error(
            "sacctmgr %.40s: colloc has one account for all, and lists users, accounts and "
            "associations only; shares of users are in the shares file (docs/fair-share.md)",
            count ? words[0] : "");
        return EXIT_USAGE;
    }
    for (int i = 2; i < count; i++)
        if (strncasecmp(words[i], "format=", 7) == 0)
            order->format = words[i] + 7;
        else if (strncasecmp(words[i], "user=", 5) == 0 || strncasecmp(words[i], "name=", 5) == 0)
            order->user = words[i] + 5;
        else if (!strchr(words[i], '=') && strncasecmp(words[1], "user", 4) == 0)
            order->user = words[i];
    return EXIT_OK;
}

#define FLAG(name, letter, member) SLURM_FLAG(name, letter, struct order, member)

static const struct slurm_row rows[] = {
    SLURM_OTHER("associations", 's', no_argument),
    SLURM_OTHER("immediate", 'i', no_argument),
    FLAG("noheader", 'n', no_header),
    FLAG("parsable", 'p', ends_so),
    FLAG("parsable2", 'P', is_parsable),
    SLURM_OTHER("quiet", 'Q', no_argument),
    SLURM_OTHER("readonly", 'r', no_argument),
    SLURM_OTHER("withassoc", 's', no_argument),
};

int slurm_accounts_run(const char *const *words, int count)
{
    char name[LOGIN_NAME_MAX];
    struct order order = {
        .user = own_user_name(name, sizeof name), .format = "User,DefaultAccount,AdminLevel"};
    const char **rest;
    int n = slurm_getopt(words, count, rows, ARRAY_SIZE(rows), &order, NULL, &rest);
    int code = n == -ENOMEM ? EXIT_REFUSED : EXIT_USAGE;
    order.is_parsable |= order.ends_so;
    if (n == -EINVAL)
        print_error("sacctmgr: colloc does not know one of these options");
    else if (n >= 0)
        code = read_words(rest, n, &order);
    if (code == EXIT_OK)
        code = print_list(&order);
    free(rest);
    return code;
}
