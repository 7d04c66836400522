/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 of one function, for the tests of libcolloc-preload.so. */
int nvmlInit_v2(void);

__attribute__((visibility("default"))) int nvmlInit_v2(void)
{
    return 0;
}
