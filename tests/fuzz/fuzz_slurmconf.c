/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as slurm.conf and gres.conf: what setup changes can be taken back byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "slurmconf/slurm_setup.h"

static void check_file(struct setup_file *file)
{
    char *changed = marked_text_apply(file->text, &file->edits, file->comment);
    char *restored = changed ? marked_text_remove(span_of(changed), file->comment, NULL) : NULL;
    if (!restored || strlen(restored) != file->text.size ||
        memcmp(restored, file->text.at, file->text.size) != 0)
        abort();
    free(changed);
    free(restored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct setup_options options = {.intake = "gpu", .run = "gpu-run", .shards = 80};
    char *text = strndup((const char *)data, size), *notes;
    char *clean = text ? marked_text_remove(span_of(text), "#", NULL) : NULL;
    struct setup_file conf = {.name = "slurm.conf", .comment = "#"}, gres = conf;
    struct setup_files files = {&conf, 1, &gres};
    size_t nodes;
    if (clean && !strstr(clean, "# BEGIN colloc")) {
        conf.text = gres.text = span_of(clean);
        if (slurm_setup_plan(&files, &options, NULL, &notes, &nodes) == 0) {
            check_file(&conf);
            check_file(&gres);
        }
        free(notes);
        text_edits_fini(&conf.edits);
        text_edits_fini(&gres.edits);
    }
    free(text);
    free(clean);
    return 0;
}
