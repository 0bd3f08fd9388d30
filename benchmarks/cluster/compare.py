# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares wring with MPI on emulated hosts: benchmark.collective.sweep for every number of hosts, link rate and setting."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is left beside the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import results  # noqa: E402  (after its folder)

here = os.path.dirname(os.path.abspath(__file__))

# MPI as it comes; and with messages that it sends at once, without asking the receiver first, up to 4 MiB instead of 64 KiB.
limits = {
    "default": "",
    "raised": " ".join(
        f"--mca btl_tcp_{name} 4194304" for name in ("eager_limit", "rndv_eager_limit", "max_send_size")
    ),
}


def read_arguments():
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    numbers = results.numbers
    words = lambda text: text.split(",")
    parser.add_argument("--hosts", type=numbers, default=[4], help="numbers of hosts (default 4)")
    parser.add_argument("--rates", type=numbers, default=[100], help="link rates in Mb/s (default 100)")
    parser.add_argument("--sizes", default="1m,4m,16m", help="bytes of the vector (default 1m,4m,16m)")
    parser.add_argument("--algorithms", default="ring,direct", help="wring's (default ring,direct)")
    parser.add_argument("--compressors", default="grid", help="of grid, none and cast (default grid)")
    parser.add_argument("--segments", type=words, default=["128k"], help="segment sizes (default 128k)")
    parser.add_argument("--depths", type=numbers, default=[4], help="segments in flight (default 4)")
    parser.add_argument("--limits", type=words, default=list(limits), help="MPI's eager limits: default, raised (both)")
    parser.add_argument("--bound", default="rms:0.1", help="as the sweep takes it (default rms:0.1)")
    parser.add_argument("--data", default="", help="files of float32, one per rank, taken in turn")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each row (default 5)")
    parser.add_argument("--json", default="", help="a file for all results")
    given = parser.parse_args()
    if unknown := set(given.limits) - set(limits):
        parser.error(f"--limits: '{unknown.pop()}' is none of {', '.join(limits)}")
    if given.json:
        results.expect_writable(given.json)
    return given


def wire_rate(hosts, rate):
    """What TCP carries while every host sends and receives, in Mb/s."""
    command = [here + "/hosts", "-n", str(hosts), "-r", str(rate), here + "/check", "ring"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode == 77:
        print(done.stdout, end="")
        sys.exit(77)
    return float(done.stdout)


def sweep(given, hosts, rate, segment, depth, limit, mpi):
    """One run of the sweep: its JSON document."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [here + "/../run", "collective.sweep", "--sizes", given.sizes, "--algorithms", given.algorithms]
        command += ["--compressors", given.compressors, "--bound", given.bound, "--segment", segment, "--depth", str(depth)]
        command += ["--repeat", str(given.repeat), "--mpi", mpi, "--json", file.name]
        command += ["--link", f"{rate} Mb/s", "--label", f"eager limits {limit}"]
        if given.data:
            command += ["--data", given.data]
        settings = {"WRING_CLUSTER": f"-n {hosts} -r {rate}", "WRING_MPIRUN": limits[limit]}
        done = subprocess.run(command, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"compare: the sweep failed\n{done.stdout}")
        return json.load(open(file.name))


def measure(given):
    """All runs. MPI's own rows do not depend on wring's settings: they are measured once for each network and limit."""
    runs = []
    for hosts in given.hosts:
        for rate in given.rates:
            wire = wire_rate(hosts, rate)
            for limit in given.limits:
                mpi = "all"
                for segment in given.segments:
                    for depth in given.depths:
                        print(f"{hosts} hosts, {rate} Mb/s, eager limits {limit}, segments {segment}, depth {depth}", file=sys.stderr)
                        document = sweep(given, hosts, rate, segment, depth, limit, mpi)
                        runs.append({"hosts": hosts, "rate_mbit": rate, "wire_mbit": wire, "limits": limit,
                                     "segment": segment, "depth": depth, **document})
                        mpi = "none"
    return runs


def rows_of(runs):
    """Every row of every run, with the settings of its run."""
    for run in runs:
        settings = {name: run[name] for name in ("hosts", "rate_mbit", "wire_mbit", "limits", "segment", "depth")}
        for row in run["rows"]:
            yield {**settings, **row}


def vector_mbit(row):
    """What a rank sends in an allreduce of least bytes, uncompressed, in Mb: 2 (p - 1) / p vectors."""
    return 8e-6 * row["bytes"] * 2 * (row["hosts"] - 1) / row["hosts"]


def share(row, mbit):
    """Of what the wire carries in one direction, the part that is used by so many Mb in the row's time."""
    return mbit / (1e-3 * row["ms"]) / row["wire_mbit"]


def break_even(row):
    """The link rate in Mb/s up to which compression pays if nothing overlaps: saved time on the wire = time in the codec."""
    codec = 1e-3 * row["ms"] * (row["encode"] + row["combine"] + row["decode"])
    return vector_mbit(row) * (1 - 1 / row["ratio"]) / codec if codec > 0 and row["ratio"] > 1 else None


def entry(rows):
    """One line of the table: one size on one network."""
    mpi = [row for row in rows if not row["algorithm"]]
    uncompressed = [row for row in mpi if "bf16" not in row["what"]]
    default = next(row for row in uncompressed if row["limits"] == rows[0]["limits"])  # MPI's own choice comes first
    fastest = min(uncompressed, key=lambda row: row["ms"])
    result = {name: default[name] for name in ("hosts", "rate_mbit", "wire_mbit", "bytes")}
    result["mpi_default"] = {"ms": default["ms"], "share": share(default, vector_mbit(default))}
    result["mpi_fastest"] = {"ms": fastest["ms"], "share": share(fastest, vector_mbit(fastest)),
                             "what": fastest["what"], "limits": fastest["limits"]}
    result["mpi_cast_ms"] = min((row["ms"] for row in mpi if "bf16" in row["what"]), default=None)
    result["wring"] = {}
    for row in sorted((row for row in rows if row["algorithm"]), key=lambda row: row["ms"]):  # the best setting is kept
        row["ratio"] = row["ratio"] or 1  # nothing that could be compressed was sent: it rode along
        sent = 8e-6 * row["bytes_sent"] / row["hosts"]  # by each rank, on average
        result["wring"].setdefault(row["compressor"] + "/" + row["algorithm"], {
            "ms": row["ms"], "ratio": row["ratio"], "share": share(row, sent), "break_even_mbit": break_even(row),
            "default_over_wring": default["ms"] / row["ms"], "fastest_over_wring": fastest["ms"] / row["ms"],
            "fastest_over_wring_over_ratio": fastest["ms"] / row["ms"] / row["ratio"],
            "segment": row["segment"], "depth": row["depth"], "limits": row["limits"]})
    return result


def size_text(size):
    for unit in ("", "k", "m", "g"):
        if size < 1024 or size % 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}t"


def rate_text(mbit):
    if mbit is None:
        return "-"
    return f"{mbit / 1000:.0f} Gb/s" if mbit >= 1000 else f"{mbit:.0f} Mb/s"


def print_table(table):
    network = None
    for line in table:
        if network != (line["hosts"], line["rate_mbit"]):
            network = (line["hosts"], line["rate_mbit"])
            print(f"\n{line['hosts']} hosts, {line['rate_mbit']} Mb/s, of which TCP carries {line['wire_mbit']:.1f} both ways at once\n")
            print(f"{'size':>5} {'what':<58} {'ms':>9} {'ratio':>6} {'wire':>5} {'MPI/':>6} {'fastest/':>8} {'.../ratio':>9}  break-even")
        print_line(line)


def print_line(line):
    size = size_text(line["bytes"])
    mpi, best = line["mpi_default"], line["mpi_fastest"]
    print(f"{size:>5} {'MPI, its own choice':<58} {mpi['ms']:9.2f} {'':6} {mpi['share']:5.2f}")
    print(f"{size:>5} {best['what'] + ', eager limits ' + best['limits']:<58} {best['ms']:9.2f} {'':6} {best['share']:5.2f}")
    if line["mpi_cast_ms"]:
        print(f"{size:>5} {'MPI after a cast to bf16, best':<58} {line['mpi_cast_ms']:9.2f} {2:6.2f}")
    for name, row in line["wring"].items():
        what = f"wring {name}, {row['segment']}, depth {row['depth']}, eager limits {row['limits']}"
        print(f"{size:>5} {what:<58} {row['ms']:9.2f} {row['ratio']:6.2f} {row['share']:5.2f} {row['default_over_wring']:6.2f} "
              f"{row['fastest_over_wring']:8.2f} {row['fastest_over_wring_over_ratio']:9.3f}  {rate_text(row['break_even_mbit'])}")


def main():
    given = read_arguments()
    runs = measure(given)
    groups = {}
    for row in rows_of(runs):
        groups.setdefault((row["hosts"], row["rate_mbit"], row["bytes"]), []).append(row)
    table = [entry(rows) for rows in groups.values()]
    print_table(table)
    if given.json:
        settings = {name: value for name, value in vars(given).items() if name != "json"}
        results.write(given.json, {"benchmark": "cluster.compare", "machine": runs[0]["machine"], "settings": settings,
                                   "table": table, "runs": runs})


main()
