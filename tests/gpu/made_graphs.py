# SPDX-License-Identifier: Apache-2.0
"""Random graphs in place of data sets of PyTorch Geometric, for the trial of scripts.

They have the number of nodes, edges and features of the real ones, or of a larger graph of that
kind, so that training takes memory.
"""
import torch

CITATION = {"nodes": 200_000, "edges": 2_000_000, "features": 500, "classes": 7}
GRAPHS = {"count": 2048, "nodes": 40, "edges": 160}


def _graph(data_kind, nodes, edges, **members):
    return data_kind(edge_index=torch.randint(0, nodes, (2, edges)), num_nodes=nodes, **members)


def _citation(data_kind, name):
    count = CITATION["nodes"]
    masks = {f"{part}_mask": torch.rand(count) < 0.3 for part in ("train", "val", "test")}
    return [
        _graph(
            data_kind, count, CITATION["edges"], x=torch.randn(count, CITATION["features"]),
            y=torch.randint(0, CITATION["classes"], (count,)), **masks,
        )  # fmt: skip
    ]


def _many(data_kind, count=GRAPHS["count"], **features):
    def one():
        nodes = torch.randint(GRAPHS["nodes"] // 2, GRAPHS["nodes"], ()).item()
        members = {name: make(nodes) for name, make in features.items()}
        return _graph(data_kind, nodes, GRAPHS["edges"], **members)

    return [one() for _ in range(count)]


def _kinds(data_kind):
    """Name of the data set: the graphs of its part of the data."""
    return {
        "Planetoid": lambda name: _citation(data_kind, name),
        "TUDataset": lambda name: _many(
            data_kind, x=lambda n: torch.randn(n, 16), y=lambda n: torch.randint(0, 2, (1,))
        ),
        "ZINC": lambda name: _many(  # few: scripts change each one before they train
            data_kind, 512, x=lambda n: torch.randint(0, 21, (n, 1)), y=lambda n: torch.randn(1),
            edge_attr=lambda n: torch.randint(0, 4, (GRAPHS["edges"],)),
        ),
        "PPI": lambda name: [
            _graph(
                data_kind, 3000, 60_000, x=torch.randn(3000, 50),
                y=torch.randint(0, 2, (3000, 121)).float(),
            )
            for _ in range(20)
        ],
        "ModelNet": lambda name: [
            data_kind(pos=torch.rand(1024, 3), y=torch.randint(0, 10, (1,))) for _ in range(512)
        ],
    }  # fmt: skip


def replace_data_sets():
    from torch_geometric import datasets
    from torch_geometric.data import Data, InMemoryDataset

    for name, graphs in _kinds(Data).items():

        def initialized(
            self, root=None, *args, _graphs=graphs, transform=None, pre_transform=None, **kwargs
        ):
            InMemoryDataset.__init__(self, None, transform)
            change = pre_transform or (lambda graph: graph)
            name = args[0] if args else kwargs.get("name", "")
            self.name = name
            self._data, self.slices = self.collate(list(map(change, _graphs(name))))

        kind = type(name, (InMemoryDataset,), {"__init__": initialized})
        setattr(datasets, name, kind)
