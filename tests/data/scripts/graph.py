# SPDX-License-Identifier: Apache-2.0
"""Two layers over a graph, whose adjacency matrix is sparse: moved to the GPU, or made there.

    graph.py [there] [rows]

With `rows` the matrix that is moved is in compressed rows (CSR).
"""
import sys

import torch

nodes, edges = 3000, 20000
places, weights = torch.randint(0, nodes, (2, edges)), torch.ones(edges)
if "there" in sys.argv:
    adjacency = torch.sparse_coo_tensor(places.cuda(), weights.cuda(), (nodes, nodes))
else:
    adjacency = torch.sparse_coo_tensor(places, weights, (nodes, nodes)).coalesce()
    adjacency = (adjacency.to_sparse_csr() if "rows" in sys.argv else adjacency).cuda()
assert adjacency.is_cuda and adjacency.is_sparse == ("rows" not in sys.argv)
if adjacency.is_sparse:
    assert adjacency.coalesce().is_coalesced() and adjacency._values().is_cuda


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(50, 16), torch.nn.Linear(16, 7)

    def forward(self, x, matrix):
        x = torch.spmm(matrix, self.first(x)).relu()
        return torch.sparse.mm(matrix, self.second(x))


network = Network().cuda()
optimizer = torch.optim.Adam(network.parameters())
x = torch.randn(nodes, 50).cuda()
for step in range(3):
    optimizer.zero_grad()
    network(x, adjacency).sum().backward()
    optimizer.step()
