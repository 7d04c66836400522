/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of modules that run beside each other. PyTorch's authors call the parallel parts of a block
 * "branch": torchvision's and timm's Inception and ShuffleNet, and what was written after them. The
 * parts of one branch are numbered after an underscore, and those of a fork have letters:
 *
 *     branch1x1                             reads the input of the block
 *     branch3x3_1                           reads the input of the block
 *     branch3x3_2a                          goes on with what branch3x3_1 has made
 *     branch3x3_2b                          so does it
 */
#include "model/branch_name.h"

#include <ctype.h>

#include "model/format.h"

enum branch_role branch_role_of(struct span name)
{
    if (!span_starts(name, "branch"))
        return BRANCH_NONE;
    size_t end = name.size;
    char letter = end > 0 && isalpha((unsigned char)name.at[end - 1]) ? name.at[--end] : 'a';
    size_t digits = end;
    while (digits > 0 && isdigit((unsigned char)name.at[digits - 1]))
        digits--;
    bool is_part = digits > 0 && digits < end && name.at[digits - 1] == '_';
    if (!is_part || (end - digits == 1 && name.at[digits] <= '1'))
        return BRANCH_BEGINS;
    return letter == 'a' ? BRANCH_GOES_ON : BRANCH_FORKS;
}
