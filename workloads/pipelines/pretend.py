# SPDX-License-Identifier: Apache-2.0
"""A stage that only takes time: pretend.py MS ITEM_MS, milliseconds of a batch and of each item."""

import sys
import time

from stage import run_stage


def main():
    batch_s, item_s = (float(word) / 1e3 for word in sys.argv[1:3])

    def work(items):
        time.sleep(batch_s + item_s * len(items))
        return items

    run_stage(work, lambda n: [{"id": i} for i in range(n)])


if __name__ == "__main__":
    main()
