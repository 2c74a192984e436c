# SPDX-License-Identifier: BSD-3-Clause
"""The same ranks by other means, for check.py: plain and slow, nothing shared with the program.

A graph is a pair: the number of nodes, and the set or array of its arcs (source, target).
"""

import collections


def pagerank(nodes, arcs, iterations, damping=0.85):
    """Ranks after so many iterations, in plain Python; the arcs have no duplicates."""
    degree = collections.Counter(source for source, _ in arcs)
    ranks = [1.0 / nodes] * nodes
    for _ in range(iterations):
        dangling = sum(rank for node, rank in enumerate(ranks) if node not in degree)
        made = [(damping * dangling + 1 - damping) / nodes] * nodes
        for source, target in arcs:
            made[target] += damping * ranks[source] / degree[source]
        ranks = made
    return ranks


def pagerank_numpy(numpy, nodes, arcs, iterations, damping=0.85):
    """The same for millions of arcs, an array of pairs."""
    source, target = arcs[:, 0], arcs[:, 1]
    degree = numpy.bincount(source, minlength=nodes)
    ranks = numpy.full(nodes, 1.0 / nodes)
    for _ in range(iterations):
        shares = ranks / numpy.maximum(degree, 1)
        gathered = numpy.bincount(target, weights=shares[source], minlength=nodes)
        base = damping * ranks[degree == 0].sum() + 1 - damping
        ranks = base / nodes + damping * gathered
    return ranks


def rmat(scale, edge_factor, seed):
    """The graph that --rmat makes (rmat.hpp), from its definition."""
    mask = (1 << 64) - 1
    golden = 0x9E3779B97F4A7C15

    def mixed(word):
        word &= mask
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ word >> 27) * 0x94D049BB133111EB & mask
        return word ^ word >> 31

    def scrambled(node):
        for step in (1, 2, 3):
            node = (node * (mixed(seed + step) | 1) + mixed(seed - step)) % (1 << scale)
            node ^= node >> (scale + 1) // 2
        return node

    thresholds = [int(share * 2**32) for share in (0.57, 0.57 + 0.19, 0.57 + 0.19 + 0.19)]
    first_key = mixed(seed + golden)
    arcs = set()
    for arc in range(edge_factor << scale):
        key = mixed(first_key + arc)
        source = target = 0
        for level in range(scale):
            word = mixed(key + golden * (level // 2 + 1))
            drawn = word >> 32 if level % 2 == 0 else word & 0xFFFFFFFF
            quadrant = sum(drawn >= threshold for threshold in thresholds)
            source, target = 2 * source + quadrant // 2, 2 * target + quadrant % 2
        if source != target:
            arcs.add((scrambled(source), scrambled(target)))
    return 1 << scale, arcs


class _Bits:
    """A bit stream with the codes that a BVGraph has by default."""

    def __init__(self, path):
        with open(path, "rb") as file:
            content = file.read()
        self.text = "".join(f"{byte:08b}" for byte in content)
        self.at = 0

    def take(self, count):
        self.at += count
        return int(self.text[self.at - count : self.at] or "0", 2)

    def unary(self):
        one = self.text.index("1", self.at)
        zeros, self.at = one - self.at, one + 1
        return zeros

    def gamma(self):
        length = self.unary()
        return (1 << length) + self.take(length) - 1

    def zeta3(self):
        groups = self.unary()
        left = 1 << 3 * groups
        value = self.take(3 * groups + 2)
        if value < left:
            return value + left - 1
        return 2 * value + self.take(1) - 1


def bvgraph(base):
    """The arcs of a BVGraph with default codings, as a list of lists of successors."""
    with open(base + ".properties", encoding="latin-1") as file:
        lines = [line.strip().split("=", 1) for line in file if "=" in line]
    properties = dict(lines)
    if properties["compressionflags"] or properties["zetak"] != "3":
        raise ValueError("only default codings")
    window, shortest = int(properties["windowsize"]), int(properties["minintervallength"])
    bits = _Bits(base + ".graph")
    lists = []
    for node in range(int(properties["nodes"])):
        lists.append(_successors(bits, node, lists, window, shortest))
    return lists


def _successors(bits, node, lists, window, shortest):
    degree = bits.gamma()
    if degree == 0:
        return []
    back = bits.unary() if window else 0
    found = []
    if back:
        other, at = lists[node - back], 0
        lengths = [bits.gamma() for _ in range(bits.gamma())]
        lengths = [length + (i > 0) for i, length in enumerate(lengths)]
        for i, length in enumerate(lengths):
            if i % 2 == 0:
                found += other[at : at + length]
            at += length
        if len(lengths) % 2 == 0:
            found += other[at:]
    if len(found) < degree and shortest:
        end = None
        for _ in range(bits.gamma()):
            code = bits.gamma()
            left = _around(node, code) if end is None else end + 1 + code
            end = left + shortest + bits.gamma()
            found += range(left, end)
    last = None
    while len(found) < degree:
        code = bits.zeta3()
        last = _around(node, code) if last is None else last + 1 + code
        found.append(last)
    return sorted(found)


def _around(node, code):
    return node + code // 2 if code % 2 == 0 else node - (code + 1) // 2
