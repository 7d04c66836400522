/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is linked with a function of the driver: its calls pass no stub. */
int cuTexRefSetMipmapLevelBias(void *texture, float bias);
int set_bias(float bias);

int set_bias(float bias)
{
    return cuTexRefSetMipmapLevelBias(0, bias);
}
