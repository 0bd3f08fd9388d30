#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the frequencies in include/wring/detail/entropy/scales.hpp, and with the argument 1.75 those for values whose own scale is known.

A scale is a distribution of quanta with a given mean magnitude: a generalised Gaussian density exp(-|t|^1.25), which lies between
those of Laplace and Gauss, quantised with thresholds 0.55, 1.5, 2.5, ... Blocks of gradients take about as few bits with it as with
tables made for them; scaled to frequencies out of 4096. The escape is what lies beyond the last symbol, or 1.
"""
import math
import sys

SHAPE, THRESHOLD, TOTAL, FAR = float(sys.argv[1]) if len(sys.argv) > 1 else 1.25, 0.55, 4096, 400


def cumulative(shape, top=40.0, steps=200000):
    h, sums = top / steps, [0.0]
    density = [math.exp(-((i * h) ** shape)) for i in range(steps + 1)]
    for a, b in zip(density, density[1:]):
        sums.append(sums[-1] + (a + b) * h / 2)
    return h, sums


def masses(table, scale, edges):
    h, sums = table

    def below(x):
        u = x / scale / h
        i = int(u)
        return 1.0 if i >= len(sums) - 1 else (sums[i] + (sums[i + 1] - sums[i]) * (u - i)) / sums[-1]

    values = [below(x) for x in edges] + [1.0]
    return [b - a for a, b in zip(values, values[1:])]


def with_mean(table, mean, edges, magnitudes):
    low, high = 1e-3, 1e3
    for _ in range(60):
        scale = math.sqrt(low * high)
        p = masses(table, scale, edges)
        if sum(a * b for a, b in zip(p, magnitudes)) > mean:
            high = scale
        else:
            low = scale
    return p


def frequencies(p, centred):
    """Of each magnitude, for one sign; and the escape's."""
    signs = [1 if centred and k == 0 else 2 for k in range(len(p))]
    used = max(k for k in range(64) if p[k] / signs[k] * TOTAL >= 0.3) + 1
    escape = max(1, round(TOTAL * sum(p[used:])))
    f = [max(1, round(p[k] / signs[k] * TOTAL)) for k in range(used)]
    rest = TOTAL - escape - sum(a * b for a, b in zip(f, signs))
    if not centred and rest % 2:
        escape, rest = escape + 1, rest - 1
    f[0] += rest // signs[0]
    return f, escape


def main():
    table = cumulative(SHAPE)
    centred = [0, THRESHOLD] + [k + 0.5 for k in range(1, FAR)]
    halves = list(range(FAR))
    for name, scales, edges, offset in (
        ("centred", range(1, 22), centred, 0.0),
        ("halves", (20, 21), halves, 0.5),
    ):
        print(f"// {name}")
        for scale in scales:
            p = with_mean(table, 2 ** ((scale - 15) / 2), edges, [k + offset for k in range(len(edges))])
            f, escape = frequencies(p, name == "centred")
            print("{" + ", ".join(map(str, [escape] + f)) + "},")


main()
