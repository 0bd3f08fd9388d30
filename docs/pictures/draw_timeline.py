#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws what wring::write_chrome_trace wrote: for each rank its work, coloured by kind, and below it the messages that it
sends. Usage: draw_timeline.py TRACE.json ... PICTURE.svg [--operation NUMBER] [--from MILLISECONDS] [--to MILLISECONDS]
Several traces are one picture: files of the ranks of one machine. Without --operation: the last one in the trace."""

import argparse
import os
import sys

sys.dont_write_bytecode = True  # nothing is left beside the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../benchmarks/support"))
import results  # noqa: E402  (after its folder)

try:
    import matplotlib
except ImportError:
    print("SKIPPED: matplotlib is not here, so nothing is drawn")
    sys.exit(77)
matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "wring", "svg.fonttype": "none", "font.size": 8})
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

COLOURS = {
    "wring::measure": "#999933",
    "wring::encode": "#0077bb",
    "wring::combine": "#ee7733",
    "wring::decode": "#009988",
    "wring::wire": "#bbbbbb",
    "send": "#cc3311",
    "agreement": "#f0ead6",
    "confirmation": "#f0ead6",
}
LABELS = {"wring::wire": "put together, check", "send": "on the wire", "agreement": "agreement"}


def events_of(path):
    document = results.read(path)
    if not isinstance(document, dict) or "traceEvents" not in document:
        results.complain(f"{path} is no trace: it has no traceEvents")
    return document["traceEvents"]


def load(paths):
    """Spans of all traces: dictionaries of rank, name, begin and end (in ms) and the event's arguments. Spans without an end, of
    operations in flight or of events beyond the timeline's capacity, are left out."""
    spans, open_spans = [], {}
    for path in paths:
        for event in events_of(path):
            if event["ph"] == "M":
                continue
            key = (path, event["pid"], event.get("id2", {}).get("local"))
            if event["ph"] == "e":
                if key in open_spans:
                    open_spans.pop(key)["end"] = event["ts"] / 1000
                continue
            span = {"rank": event["pid"], "name": event["name"], "begin": event["ts"] / 1000, **event["args"]}
            spans.append(span)
            if event["ph"] == "b":
                open_spans[key] = span
            else:
                span["end"] = span["begin"] + event["dur"] / 1000
    return [span for span in spans if "end" in span]


def lanes(spans):
    """Puts spans that overlap below one another: returns pairs (lane, span)."""
    ends, placed = [], []
    for span in sorted(spans, key=lambda s: (s["begin"], s["end"])):
        lane = next((i for i, end in enumerate(ends) if end <= span["begin"]), len(ends))
        ends[lane:lane + 1] = [span["end"]]
        placed.append((lane, span))
    return placed


def draw(spans, path, first, last):
    origin = min(s["begin"] for s in spans)
    until = max(s["end"] for s in spans) - origin if last is None else last
    ranks = sorted({s["rank"] for s in spans})
    height, seen = 1.9, set()
    figure, axes = plt.subplots(figsize=(9, 0.6 + 0.75 * len(ranks)), layout="constrained")

    def bar(span, bottom, tall, **style):
        seen.add(span["name"])
        axes.broken_barh([(span["begin"] - origin, span["end"] - span["begin"])], (bottom, tall),
                         facecolor=COLOURS[span["name"]], **style)

    for row, rank in enumerate(ranks):
        top = -height * row
        mine = [s for s in spans if s["rank"] == rank]
        for span in mine:
            if span["name"] in ("agreement", "confirmation"):
                bar(span, top - height + 0.2, height - 0.2, zorder=0)
            elif span["name"].startswith("wring::"):
                bar(span, top - 0.8, 0.8, zorder=2)
        sends = lanes([s for s in mine if s["name"] == "send"])
        thick = 0.8 / max((lane + 1 for lane, _ in sends), default=1)
        for lane, span in sends:
            bar(span, top - 0.85 - thick * (lane + 1), 0.85 * thick, alpha=0.8, zorder=1)

    axes.set_xlim(first, until)
    axes.set_ylim(-height * len(ranks), 0.1)
    axes.set_yticks([-height * row - 0.8 for row in range(len(ranks))], [f"rank {r}" for r in ranks])
    axes.set_xlabel("ms")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    shown = [name for name in COLOURS if name in seen and name != "confirmation"]
    figure.legend(handles=[Patch(color=COLOURS[n], label=LABELS.get(n, n.removeprefix("wring::"))) for n in shown],
                  loc="outside upper center", ncols=len(shown), frameon=False)
    try:
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    except OSError as error:
        results.complain(f"cannot write {path}: {error.strerror}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("traces", nargs="+")
    arguments.add_argument("picture", type=results.picture)
    arguments.add_argument("--operation", type=int)
    arguments.add_argument("--from", type=float, default=0, dest="first")
    arguments.add_argument("--to", type=float, dest="last")
    chosen = arguments.parse_args()
    spans = load(chosen.traces)
    if not spans:
        results.complain("there is no event in the traces")
    operation = max(s["operation"] for s in spans) if chosen.operation is None else chosen.operation
    spans = [s for s in spans if s["operation"] == operation]
    if not spans:
        results.complain(f"there is no operation {operation} in the traces")
    draw(spans, chosen.picture, chosen.first, chosen.last)


if __name__ == "__main__":
    main()
