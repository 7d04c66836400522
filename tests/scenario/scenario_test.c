/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one scenario file and compares its trace with the lines below its "---", or with --update
 * puts the new trace there. Exit status 0: the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "sim/scenario.h"

#define LIMIT (1u << 20)

static struct span cut_story(struct span *text)
{
    struct span story = *text, line;
    while (span_next_line(text, &line)) {
        if (span_is(span_trim(line), "---")) {
            story.size = (size_t)(line.at - story.at);
            return story;
        }
    }
    return story;
}

static int compare(const char *name, struct span expected, struct span actual)
{
    int differences = 0;
    struct span left, right;
    for (int number = 1;; number++) {
        bool has_left = span_next_line(&expected, &left),
             has_right = span_next_line(&actual, &right);
        if (!has_left && !has_right)
            return differences;
        if (has_left && has_right && left.size == right.size &&
            memcmp(left.at, right.at, left.size) == 0)
            continue;
        differences++;
        printf("%s, line %d of the trace:\n", name, number);
        printf("  expected: %.*s\n", has_left ? (int)left.size : 11,
            has_left ? left.at : "(no line)\n");
        printf("  happened: %.*s\n", has_right ? (int)right.size : 11,
            has_right ? right.at : "(no line)\n");
    }
}

static int update(const char *name, struct span story, struct span trace)
{
    FILE *file = fopen(name, "w");
    if (!file)
        return 1;
    fprintf(file, "%.*s---\n%.*s", (int)story.size, story.at, (int)trace.size, trace.at);
    return fclose(file) ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct fault fault = {0};
    bool updates = argc == 3 && strcmp(argv[1], "--update") == 0;
    char *text, *trace = NULL;
    size_t size, trace_size = 0;
    if (argc != 2 && !updates) {
        fprintf(stderr, "usage: scenario_test [--update] FILE\n");
        return 2;
    }
    const char *name = argv[argc - 1];
    if (file_read(name, LIMIT, &fault, &text, &size) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        return 2;
    }
    struct span rest = {text, size}, story = cut_story(&rest);
    FILE *out = open_memstream(&trace, &trace_size);
    int r = scenario_run(story, name, out, &fault);
    fclose(out);
    struct span actual = {trace, trace_size};
    int status = 2;
    if (r < 0)
        fprintf(stderr, "%s\n", fault.text);
    else
        status = updates ? update(name, story, actual) : compare(name, rest, actual) ? 1 : 0;
    free(text);
    free(trace);
    return status;
}
