/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits between markers. For an administrator who reads the file, what was there stays in sight:
 *
 *     # BEGIN colloc (colloc slurm setup; colloc slurm remove takes it out)
 *     #was: NodeName=gpu[01-04] Gres=gpu:4
 *     NodeName=gpu[01-04] Gres=gpu:i0:1,...
 *     # END colloc
 *
 * Removing keeps the lines that begin with "#was: ", without these bytes, and drops the rest of the
 * block. Our lines end as the file's first line does (CR LF, LF). A last line without a line end
 * gets one; "#unended 1" in the last block says how many bytes that are.
 */
#include "slurmconf/marked_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/span_parts.h"

static const char begin_words[] = " BEGIN colloc";
static const char begin_note[] = " (colloc slurm setup; colloc slurm remove takes it out)";
static const char end_words[] = " END colloc";
static const char was_words[] = "was: ";
static const char unended_words[] = "unended ";

int text_edits_add(struct text_edits *edits, struct span old, char *lines)
{
    struct text_edit edit = {old, lines};
    if (lines && ARRAY_APPEND(edits->edits, edits->count, edits->capacity, edit) == 0)
        return 0;
    free(lines);
    return -ENOMEM;
}

void text_edits_fini(struct text_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++)
        free(edits->edits[i].lines);
    free(edits->edits);
    *edits = (struct text_edits){0};
}

static bool is_ended(struct span text)
{
    return text.size == 0 || text.at[text.size - 1] == '\n';
}

static const char *line_end_of(struct span text)
{
    const char *end = memchr(text.at, '\n', text.size);
    return end && end > text.at && end[-1] == '\r' ? "\r\n" : "\n";
}

static void write_block(
    FILE *out, struct text_edit edit, const char *comment, const char *end, bool was_unended)
{
    struct span rest = edit.old, line;
    fprintf(out, "%s%s%s%s", comment, begin_words, begin_note, end);
    if (was_unended)
        fprintf(out, "%s%s%zu%s", comment, unended_words, strlen(end), end);
    while ((line = span_take_line(&rest)).size > 0) {
        fprintf(out, "%s%s", comment, was_words);
        fwrite(line.at, 1, line.size, out);
        if (!is_ended(line))
            fputs(end, out);
    }
    rest = span_of(edit.lines);
    while (span_next_line(&rest, &line)) {
        fwrite(line.at, 1, line.size, out);
        fputs(end, out);
    }
    fprintf(out, "%s%s%s", comment, end_words, end);
}

static void write_edited(
    FILE *out, struct span text, const struct text_edits *edits, const char *comment)
{
    const char *at = text.at, *text_end = text.at + text.size, *end = line_end_of(text);
    for (size_t i = 0; i < edits->count; i++) {
        struct text_edit edit = edits->edits[i];
        bool is_last = i + 1 == edits->count;
        fwrite(at, 1, (size_t)(edit.old.at - at), out);
        if (edit.old.at == text_end && at < text_end && !is_ended(text))
            fputs(end, out);
        at = edit.old.at + edit.old.size;
        write_block(out, edit, comment, end, is_last && !is_ended(text) && at == text_end);
    }
    fwrite(at, 1, (size_t)(text_end - at), out);
}

char *marked_text_apply(struct span text, const struct text_edits *edits, const char *comment)
{
    char *result = NULL;
    size_t size;
    FILE *out = open_memstream(&result, &size);
    if (!out)
        return NULL;
    write_edited(out, text, edits, comment);
    if (fclose(out) != 0) {
        free(result);
        return NULL;
    }
    return result;
}

static bool line_says(struct span line, const char *comment, const char *words)
{
    size_t size = strlen(comment);
    if (!span_starts(line, comment))
        return false;
    return span_starts((struct span){line.at + size, line.size - size}, words);
}

/* Writes what a block replaced. Returns where it ends, or NULL when it does not. */
static const char *write_old_lines(FILE *out, struct span rest, const char *comment, size_t *added)
{
    size_t prefix = strlen(comment) + strlen(was_words);
    size_t number_at = strlen(comment) + strlen(unended_words);
    struct span line;
    while ((line = span_take_line(&rest)).size > 0) {
        if (line_says(line, comment, end_words))
            return rest.at;
        if (line_says(line, comment, unended_words))
            *added = number_at < line.size && line.at[number_at] == '2' ? 2 : 1;
        if (out && line_says(line, comment, was_words))
            fwrite(line.at + prefix, 1, line.size - prefix, out);
    }
    return NULL;
}

static void write_restored(
    FILE *out, struct span text, const char *comment, size_t *blocks, size_t *added)
{
    struct span rest = text, line;
    while ((line = span_take_line(&rest)).size > 0) {
        size_t ignored = 0;
        const char *end = line_says(line, comment, begin_words)
                              ? write_old_lines(NULL, rest, comment, &ignored)
                              : NULL;
        if (!end) {
            fwrite(line.at, 1, line.size, out);
            continue;
        }
        write_old_lines(out, rest, comment, added);
        rest = (struct span){end, (size_t)(text.at + text.size - end)};
        ++*blocks;
    }
}

char *marked_text_remove(struct span text, const char *comment, size_t *ret_blocks)
{
    char *result = NULL;
    size_t size, blocks = 0, added = 0; /* bytes of a line end that the text did not have */
    FILE *out = open_memstream(&result, &size);
    if (!out)
        return NULL;
    write_restored(out, text, comment, &blocks, &added);
    if (fclose(out) != 0) {
        free(result);
        return NULL;
    }
    if (added <= size)
        result[size - added] = '\0';
    if (ret_blocks)
        *ret_blocks = blocks;
    return result;
}
