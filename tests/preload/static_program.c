/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing can be preloaded into it. */
#include <stdio.h>

int main(void)
{
    puts("static");
    return 0;
}
