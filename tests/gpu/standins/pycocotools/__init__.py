# SPDX-License-Identifier: Apache-2.0
"""In place of pycocotools, for training alone: boxes and polygons, and no evaluation."""
