/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are assembled from pieces of any size and compared with the sentences (exec/pattern.h). The
 * last cause wins, unless it only followed from an earlier one. It does in two cases:
 *
 *     the earlier cause is certain, and the next exception was thrown while it was handled:
 *         CUDA out of memory ... / During handling of the above exception ... / RuntimeError: died
 *     the earlier cause broke the CUDA context, and the later line is what libraries then say:
 *         Assertion `t < n_classes` failed / RuntimeError: CUBLAS_STATUS_ALLOC_FAILED
 */
#include "exec/logscan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/log_line.h"

#define OVERLAP                                                                                    \
    512 /* bytes of two parts of a very long line. Chosen: more than any known message */

#define DETAIL_WITHIN 512 /* bytes after the line of the cause. Chosen: six lines */

#define TRACEBACK "Traceback (most recent call last)"

/* "ValueError: ...", "torch.cuda.OutOfMemoryError", "RayTaskError(ValueError)": dotted names, the
 * last in CamelCase. */
static bool looks_thrown(const char *text)
{
    const char *name = text, *end = text;
    bool has_lower = false;
    for (; isalnum((unsigned char)*end) || *end == '_' || *end == '.'; end++) {
        if (*end == '.')
            name = end + 1;
        has_lower |= islower((unsigned char)*end);
    }
    const char *initial = name + strspn(name, "_");
    return isupper((unsigned char)*initial) && has_lower &&
           (*end == '\0' || *end == ':' || *end == '(');
}

/* Returns the part of a line to show: a line that is too long from shortly before the match. */
static struct span shown_part(const char *text, const char *lower, const struct pattern *pattern)
{
    const char *found = strstr(lower, pattern->parts[0]);
    size_t skip = found && strlen(lower) >= EVIDENCE_MAX && found - lower > EVIDENCE_MAX / 2
                      ? (size_t)(found - lower) - EVIDENCE_MAX / 8
                      : 0;
    return span_of(text + skip);
}

static bool is_oom(enum log_cause cause)
{
    return cause == LOG_CAUSE_GPU_OOM || cause == LOG_CAUSE_HOST_OOM ||
           cause == LOG_CAUSE_ALLOC_FAILED;
}

/* After such an error each call of CUDA in the process fails. */
static bool breaks_context(enum log_cause cause)
{
    return cause == LOG_CAUSE_ASSERT || cause == LOG_CAUSE_HARDWARE ||
           cause == LOG_CAUSE_GPU_FAULT || cause == LOG_CAUSE_MPS;
}

static bool is_certain(enum log_cause cause)
{
    return is_oom(cause) || breaks_context(cause);
}

/* What a process prints whose CUDA context is broken. */
static bool is_symptom(enum log_cause earlier, enum log_cause later)
{
    bool is_clearer = earlier == LOG_CAUSE_ASSERT || earlier == LOG_CAUSE_HARDWARE;
    return (breaks_context(earlier) &&
               (later == LOG_CAUSE_LIBRARY || later == LOG_CAUSE_ALLOC_FAILED)) ||
           (is_clearer && later == LOG_CAUSE_GPU_FAULT);
}

/* The last cause decides, unless it only followed from an earlier one. */
static bool replaces_cause(const struct logscan *scan, const struct pattern *pattern, bool thrown)
{
    enum log_cause earlier = scan->cause.kind;
    if (is_symptom(earlier, pattern->kind))
        return false;
    if (!is_certain(earlier))
        return true;
    bool handles_it = thrown && scan->chained;
    return pattern->kind != LOG_CAUSE_KILLED &&
           !(handles_it &&
               (pattern->kind == LOG_CAUSE_PROGRAM || pattern->kind == LOG_CAUSE_LIBRARY));
}

static void note_match(struct logscan *scan, struct log_match *match, const struct pattern *pattern,
    struct span evidence)
{
    match->kind = pattern->kind;
    match->framework = pattern->framework;
    match->at = scan->offset;
    log_line_clean(evidence, match->evidence);
}

/* A further line of the message that is the cause: its evidence has it, too. */
static void add_detail(struct logscan *scan, struct span text)
{
    char detail[EVIDENCE_MAX], both[EVIDENCE_MAX * 2];
    if (scan->cause.kind != LOG_CAUSE_GPU_OOM || scan->offset - scan->cause.at > DETAIL_WITHIN)
        return;
    log_line_clean(text, detail);
    snprintf(both, sizeof both, "%s %s", scan->cause.evidence, detail);
    log_line_clean(span_of(both), scan->cause.evidence);
}

/* A library that cannot initialise seldom reports why: a shortage directly before is the reason. */
static void judge_library(struct logscan *scan, const struct pattern *pattern, struct span text)
{
    if (scan->shortage.kind == LOG_CAUSE_NONE) {
        note_match(scan, &scan->cause, pattern, text);
        scan->cause.kind = LOG_CAUSE_PROGRAM;
        return;
    }
    scan->cause = scan->shortage;
    scan->cause.kind = LOG_CAUSE_GPU_OOM;
    scan->cause.at = scan->offset;
}

static void judge_pattern(
    struct logscan *scan, const struct pattern *pattern, struct span text, bool thrown)
{
    switch (pattern->kind) {
    case LOG_CAUSE_NONE:
        break;
    case LOG_CAUSE_DETAIL:
        add_detail(scan, text);
        break;
    case LOG_CAUSE_SHORTAGE:
        note_match(scan, &scan->shortage, pattern, text);
        break;
    case LOG_CAUSE_CONSEQUENCE:
        if (scan->consequence.kind == LOG_CAUSE_NONE)
            note_match(scan, &scan->consequence, pattern, text);
        break;
    case LOG_CAUSE_LIBRARY:
        if (replaces_cause(scan, pattern, thrown))
            judge_library(scan, pattern, text);
        break;
    default:
        if (replaces_cause(scan, pattern, thrown))
            note_match(scan, &scan->cause, pattern, text);
    }
}

static void judge_line(struct logscan *scan, const char *text, bool thrown)
{
    char lower[LOGSCAN_PIECE];
    pattern_lower(text, lower);
    const struct pattern *pattern = pattern_find(lower, thrown);
    if (pattern)
        judge_pattern(scan, pattern, shown_part(text, lower, pattern), thrown);
    if (thrown)
        scan->chained = false;
}

/* The prefix may contain the time of each line: digits may differ. */
static const char *without_prefix(const struct logscan *scan, const char *text)
{
    size_t n = 0;
    for (; scan->prefix[n]; n++) {
        bool are_digits = isdigit((unsigned char)text[n]) &&
                          isdigit((unsigned char)scan->prefix[n]);
        if (text[n] != scan->prefix[n] && !are_digits)
            return text;
    }
    return text + n;
}

/* The text before it may also be a progress bar, which further lines do not repeat. */
static void begin_traceback(struct logscan *scan, const char *line, size_t prefix_size)
{
    scan->in_traceback = true;
    span_copy((struct span){line, prefix_size}, scan->prefix, sizeof scan->prefix);
}

/* Is it a source line of a traceback? Such a line may contain any text. ("|" precedes the parts of
 * an exception group.) */
static bool is_frame(const char *text)
{
    return *text == ' ' && text[strspn(text, " ")] != '|';
}

static void read_line(struct logscan *scan, struct span raw)
{
    char line[LOGSCAN_PIECE];
    log_line_strip(raw, line, sizeof line);
    if (line[strspn(line, " ")] == '\0')
        return;
    log_line_clean(span_of(line), scan->last_line);
    const char *traceback = strstr(line, TRACEBACK), *text = line;
    if (traceback) {
        begin_traceback(scan, line, (size_t)(traceback - line));
        return;
    }
    if (strstr(line, "During handling of the above exception, another") ||
        strstr(line, "The above exception was the direct cause of")) {
        scan->chained = true;
        return;
    }
    if (scan->in_traceback) {
        text = without_prefix(scan, line);
        if (is_frame(text))
            return;
    }
    bool thrown = scan->in_traceback && looks_thrown(text);
    if (thrown)
        scan->in_traceback = false;
    judge_line(scan, text, thrown);
}

static void end_line(struct logscan *scan)
{
    read_line(scan, (struct span){scan->piece, scan->piece_size});
    scan->piece_size = 0;
}

static void end_part(struct logscan *scan)
{
    read_line(scan, (struct span){scan->piece, scan->piece_size});
    memmove(scan->piece, scan->piece + scan->piece_size - OVERLAP, OVERLAP);
    scan->piece_size = OVERLAP;
}

void logscan_feed(struct logscan *scan, struct span bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        scan->offset++;
        if (bytes.at[i] == '\n' || bytes.at[i] == '\r')
            end_line(scan);
        else
            scan->piece[scan->piece_size++] = bytes.at[i];
        if (scan->piece_size == sizeof scan->piece)
            end_part(scan);
    }
}

static void drop_stale(struct log_match *match, int64_t offset)
{
    if (offset - match->at > LOGSCAN_WINDOW)
        match->kind = LOG_CAUSE_NONE;
}

static void skip_to(struct logscan *scan, int64_t offset)
{
    const struct logscan before = *scan;
    *scan = (struct logscan){.offset = offset,
        .shortage = before.shortage,
        .cause = before.cause,
        .consequence = before.consequence};
}

int logscan_update(struct logscan *scan, int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_size == scan->offset)
        return 0;
    if (status.st_size < scan->offset)
        *scan = (struct logscan){0};
    if (status.st_size - scan->offset > LOGSCAN_WINDOW)
        skip_to(scan, status.st_size - LOGSCAN_WINDOW);
    char buffer[16 * 1024];
    while (scan->offset < status.st_size) {
        ssize_t n = pread(fd, buffer, sizeof buffer, scan->offset);
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        logscan_feed(scan, (struct span){buffer, (size_t)n});
    }
    drop_stale(&scan->shortage, scan->offset);
    drop_stale(&scan->cause, scan->offset);
    drop_stale(&scan->consequence, scan->offset);
    return 0;
}

void logscan_next_file(struct logscan *scan)
{
    scan->shortage.at -= scan->offset;
    scan->cause.at -= scan->offset;
    scan->consequence.at -= scan->offset;
    scan->offset = 0;
}

void logscan_finish(struct logscan *scan)
{
    end_line(scan);
}
