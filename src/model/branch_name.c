/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of modules that run beside each other. PyTorch's authors call the parallel parts of a block
 * "branch": torchvision's and timm's Inception and ShuffleNet, and what was written after them. The
 * parts of one branch have a number or a word after an underscore, and parts of a fork letters:
 *
 *     branch1x1                             reads the input of the block
 *     branch3x3_1                           reads the input of the block
 *     branch3x3_2a                          goes on with what branch3x3_1 has made
 *     branch3x3_2b                          so does it
 *     branch4_conv                          reads the input of the block
 *     branch4_norm                          goes on with what branch4_conv has made
 *
 * What follows "branch_" names a branch, not a part: branch_pool, branch_0.
 */
#include "model/branch_name.h"

#include <ctype.h>

#include "model/format.h"

static const char prefix[] = "branch";

/* Returns the name of the branch that this module is a part of: the name up to its last '_', or all
 * of it if only "branch" stands before that. */
static struct span stem_of(struct span name)
{
    size_t end = name.size;
    while (end > 0 && name.at[end - 1] != '_')
        end--;
    return end > sizeof prefix ? span_first(name, end - 1) : name;
}

/* Tests whether a part is the second of a fork or a later one: digits and a letter after 'a'. */
static bool is_fork(struct span part)
{
    size_t digits = 0;
    while (digits < part.size && isdigit((unsigned char)part.at[digits]))
        digits++;
    return digits > 0 && digits + 1 == part.size && isalpha((unsigned char)part.at[digits]) &&
           part.at[digits] != 'a';
}

enum branch_role branch_role_of(struct span name, struct span before)
{
    if (!span_starts(name, prefix))
        return BRANCH_NONE;
    struct span stem = stem_of(name);
    if (!span_equals(stem, stem_of(before)))
        return BRANCH_BEGINS;
    bool has_part = stem.size < name.size;
    return has_part && is_fork(span_skip(name, stem.size + 1)) ? BRANCH_FORKS : BRANCH_GOES_ON;
}
