/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's patterns in file names. What sbatch 22.05 makes of them was measured:
 *
 *     %j %A %a %x %4j    the job, the array, the index, the name, zeros up to a width: at the start
 *     %J                 the job with its step, which the batch script is not: as %j
 *     %u %N              the user, the server without its domain
 *     %n %t %s           0 (the first node), 0 (the first process), batch (the step)
 *
 * sbatch leaves another letter as it is; colloc refuses it in #SBATCH lines, where it is a mistake.
 */
#include "taskfile/output_pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Letters behind a width, if it is at most two digits, as in Slurm. */
static const char *letter_of(const char *percent)
{
    return percent + 1 + strspn(percent + 1, "0123456789");
}

char output_pattern_unknown(const char *path)
{
    for (const char *at = strchr(path, '%'); at && at[1]; at = strchr(at, '%')) {
        at = letter_of(at);
        if (!*at || !strchr("jJAaxuNnts%", *at))
            return *at ? *at : '?';
        at++;
    }
    return 0;
}

/* Writes the value of a letter, or the pattern for the start. */
static void put_pattern(FILE *out, const char *percent, const char *letter, const char *user,
    const char *host, int process)
{
    int size = (int)(letter - percent);
    if (*letter == 'u')
        fputs(user, out);
    else if (*letter == 'N')
        fprintf(out, "%.*s", (int)strcspn(host, "."), host);
    else if (*letter == 'n' || *letter == 't')
        fprintf(out, "%0*d", size > 1 && size < 4 ? atoi(percent + 1) : 1,
            *letter == 't' ? process : 0);
    else if (*letter == 's')
        fputs("batch", out);
    else if (*letter == 'J')
        fprintf(out, "%.*sj", size, percent);
    else
        fprintf(out, "%.*s%c", size, percent, *letter);
}

char *output_pattern_fill(const char *path, const char *user, const char *host, int process)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (const char *at = path; *at; at++) {
        const char *letter = *at == '%' ? letter_of(at) : at;
        if (*at != '%' || !*letter) {
            fputc(*at, out);
            continue;
        }
        put_pattern(out, at, letter, user, host, process);
        at = letter;
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
