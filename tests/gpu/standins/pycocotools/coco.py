# SPDX-License-Identifier: Apache-2.0
"""The annotations of a file of COCO's form."""
import json


class COCO:
    def __init__(self, path=None):
        self.dataset, self.imgs, self.anns, self.cats, self._of = {}, {}, {}, {}, {}
        if path:
            with open(path, encoding="utf-8") as file:
                self.dataset = json.load(file)
            self.createIndex()

    def createIndex(self):
        self.imgs = {one["id"]: one for one in self.dataset.get("images", [])}
        self.cats = {one["id"]: one for one in self.dataset.get("categories", [])}
        for one in self.dataset.get("annotations", []):
            self.anns[one["id"]] = one
            self._of.setdefault(one["image_id"], []).append(one["id"])

    def getAnnIds(self, imgIds=(), **kwargs):
        ids = imgIds if isinstance(imgIds, (list, tuple)) else [imgIds]
        return [ann for one in ids for ann in self._of.get(one, [])]

    def getImgIds(self):
        return list(self.imgs)

    def getCatIds(self):
        return list(self.cats)

    def _named(self, table, ids):
        return [table[one] for one in (ids if isinstance(ids, (list, tuple)) else [ids])]

    def loadAnns(self, ids):
        return self._named(self.anns, ids)

    def loadImgs(self, ids):
        return self._named(self.imgs, ids)

    def loadCats(self, ids):
        return self._named(self.cats, ids)
