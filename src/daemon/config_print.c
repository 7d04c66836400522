/* SPDX-License-Identifier: Apache-2.0 */
/* The settings and their defaults as --help, as the man page's list and as the commented
 * configuration file that is installed: three forms of one table (config_table.h). */
#include <string.h>

#include "daemon/config_table.h"

/* Printed after the default of a setting that a reload does not change. */
#define AT_START "; a change needs a restart"

/* In roff, "\\-" is the hyphen that a user types. */
static void print_roff_name(FILE *out, const char *name)
{
    for (; *name; name++)
        fputs(*name == '-' ? "\\-" : (char[]){*name, '\0'}, out);
}

/* Prints words in lines of up to 79 columns, each after `prefix`, with the last line unended. */
static void print_wrapped(FILE *out, const char *prefix, const char *text)
{
    int column = fprintf(out, "%s", prefix);
    for (bool first = true; *text; first = false) {
        int n = (int)strcspn(text, " ");
        if (!first && column + 1 + n > 79)
            column = fprintf(out, "\n%s", prefix) - 1;
        else if (!first)
            column += fprintf(out, " ");
        column += fprintf(out, "%.*s", n, text);
        text += n + strspn(text + n, " ");
    }
}

static void print_row(
    FILE *out, const struct config_row *row, const struct config *defaults, enum config_form form)
{
    char help[OPTION_HELP_MAX], text[OPTION_HELP_MAX + CONFIG_VALUE_SIZE],
        value[CONFIG_VALUE_SIZE] = "";
    const struct option_spec spec = config_row_spec(row);
    option_help_text(&spec, help, sizeof help);
    if (!row->default_text)
        config_row_format(row, defaults, value, sizeof value);
    const char *default_text = row->default_text ? row->default_text : value;
    const char *by_default = *default_text ? default_text : "none";
    switch (form) {
    case CONFIG_AS_HELP:
        fprintf(out, "  --%s=%s\n", row->name, row->takes);
        snprintf(text, sizeof text, "%s (default: %s%s)", help, by_default,
            row->is_live ? "" : AT_START);
        print_wrapped(out, "        ", text);
        fputc('\n', out);
        break;
    case CONFIG_AS_ROFF:
        fputs(".TP\n.BI \\-\\-", out);
        print_roff_name(out, row->name);
        fprintf(out, "= %s\n%s (default:\n.BR \"", row->takes, help);
        print_roff_name(out, by_default);
        fprintf(out, "\" \"%s).\"\n", row->is_live ? "" : AT_START);
        break;
    case CONFIG_AS_YAML:
        fputc('\n', out);
        print_wrapped(out, "# ", help);
        fprintf(out, "\n#%s: %s\n", row->name, default_text);
        break;
    }
}

static void print_section(FILE *out, const char *title, enum config_form form)
{
    static const char *const forms[] = {
        [CONFIG_AS_HELP] = "\n%s:\n",
        [CONFIG_AS_ROFF] = ".SS %s\n",
        [CONFIG_AS_YAML] = "\n\n# ---- %s ----\n",
    };
    if (title)
        fprintf(out, forms[form], title);
}

void config_print(FILE *out, enum config_form form)
{
    if (form == CONFIG_AS_YAML)
        fputs("# /etc/colloc/collocd.yaml: the settings of collocd with their defaults.\n", out);
    struct config defaults;
    config_defaults(&defaults);
    for (size_t i = 0; i < config_row_count(); i++) {
        const struct config_row row = config_row_at(i);
        print_section(out, config_row_section(&row), form);
        print_row(out, &row, &defaults, form);
    }
}
