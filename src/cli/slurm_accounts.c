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
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/session.h"

enum { COLUMNS_MAX = 1000, WIDTH = 10 };

struct order {
    const char *user, *format;
    bool has_header, is_parsable, ends_so;
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
    if (order->has_header)
        print_line(order, true, false, stdout);
    if (order->has_header && !order->is_parsable)
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

int slurm_accounts_run(const char *const *words, int count)
{
    static const struct option options[] = {{"associations", no_argument, NULL, 's'},
        {"immediate", no_argument, NULL, 'i'}, {"noheader", no_argument, NULL, 'n'},
        {"parsable", no_argument, NULL, 'p'}, {"parsable2", no_argument, NULL, 'P'},
        {"quiet", no_argument, NULL, 'Q'}, {"readonly", no_argument, NULL, 'r'},
        {"withassoc", no_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
    char name[LOGIN_NAME_MAX];
    struct order order = {.user = own_user_name(name, sizeof name),
        .format = "User,DefaultAccount,AdminLevel",
        .has_header = true};
    bool is_known = true;
    int option, code = EXIT_USAGE;
    char **arguments = calloc((size_t)count + 2, sizeof *arguments);
    if (!arguments)
        return EXIT_REFUSED;
    arguments[0] = (char *)(uintptr_t) "sacctmgr";
    for (int i = 0; i < count; i++)
        arguments[i + 1] = (char *)(uintptr_t)words[i];
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(count + 1, arguments, ":inpPQrs", options, NULL)) != -1) {
        is_known &= option != '?' && option != ':';
        order.has_header &= option != 'n';
        order.is_parsable |= option == 'p' || option == 'P';
        order.ends_so |= option == 'p';
    }
    if (!is_known)
        print_error("sacctmgr: colloc does not know one of these options");
    else
        code = read_words((const char *const *)arguments + optind, count + 1 - optind, &order);
    if (code == EXIT_OK)
        code = print_list(&order);
    free(arguments);
    return code;
}
