/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the host's constants with the reader of data/gpu-kinds.txt, whose form the file has. What
 * it does not name keeps its built-in value. */
#include "daemon/calibration.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "sharing/gpu_kind.h"

enum { FILE_MAX = 1 << 20 };

int calibration_read(const char *path, struct fault *fault, struct core_settings *settings,
    struct host_decoding *ret_decoding)
{
    CLEANUP_FREE char *text = NULL;
    size_t size;
    if (!*path)
        return 0;
    int r = file_read(path, FILE_MAX, fault, &text, &size);
    if (r < 0)
        return fault_prefix(fault, r, "calibration");
    CLEANUP_FREE struct gpu_kinds *kinds = malloc(sizeof *kinds);
    r = kinds ? gpu_kinds_init(kinds, fault) : fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = gpu_kinds_read(kinds, (struct span){text, size}, path, fault);
    if (r < 0)
        return fault_prefix(fault, r, "calibration");
    settings->is_calibrated = true;
    settings->sharing_constants = kinds->constants.interference;
    *ret_decoding = (struct host_decoding){
        kinds->constants.decode_rate, kinds->constants.decode_most};
    return 0;
}
