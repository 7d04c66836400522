# SPDX-License-Identifier: Apache-2.0
"""Work in processes that have the libraries of this one, which take long to import."""
import os
import sys
import traceback


def fork(function):
    """Calls the function in a child, which then ends. Returns the child's process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        function()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)
