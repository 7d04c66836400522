/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose name is all that matters. */
int nothing_at_all;
