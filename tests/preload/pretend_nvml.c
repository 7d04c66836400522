/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVML of one function, for the tests of libcolloc-preload.so. Its file is not named
 * libnvidia-ml.so.1: a daemon whose library path has this folder must find the emulator's.
 */
int nvmlInit_v2(void);

__attribute__((visibility("default"))) int nvmlInit_v2(void)
{
    return 0;
}
