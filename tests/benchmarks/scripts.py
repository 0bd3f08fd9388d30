# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests what belongs to the benchmarks: scripts.py BENCHMARKS RESULTS compare|plot|study|figures|made|refused.

BENCHMARKS is the folder of the scripts, RESULTS the one where the benchmarks have left theirs. Ends with 77 where matplotlib is missing.
"""
import array
import json
import os
import re
import subprocess
import sys

benchmarks, results, what = sys.argv[1:]
os.chdir(results)
have_codec = os.path.exists("codec.json")


def script(name, *arguments, at=None):
    return subprocess.run([sys.executable, f"{benchmarks}/{name}", *arguments], capture_output=True, text=True, cwd=at)


def expect(fact, sentence, detail=""):
    if not fact:
        sys.exit(f"FAILED: {sentence}\n{detail}")


def row(what, median, distance, repetitions=100, right=True):
    return {"bytes": 8, "what": what, "ms": median, "ms_quarter": median - distance / 2,
            "ms_three_quarters": median + distance / 2, "repetitions": repetitions, "right": right}


def write(name, *rows, ranks=2):
    with open(name, "w") as file:
        json.dump({"benchmark": "collective.sweep", "settings": {"ranks": ranks}, "rows": rows}, file)


def test_compare():
    for name in ["sweep.allreduce.json"] + ["codec.json"] * have_codec:
        run = script("compare_runs", name, name, "--all")
        expect(run.returncode == 0, f"{name} is as it is", run.stdout + run.stderr)
        expect("0 slower, 0 faster" in run.stdout and "0 missing, 0 new" in run.stdout, f"{name} is as it is", run.stdout)

    # Of 100 repetitions the half notch is 0.157 times the distance of the quartiles.
    write("before.json", row("a", 1, 0.1), row("b", 1, 0.1), row("c", 1, 0.1), row("d", 1, 1), row("e", 1, 0.1))
    write("after.json", row("a", 1.1, 0.1), row("b", 0.9, 0.1), row("c", 1.04, 0.1), row("d", 1.3, 1),
          row("e", 1, 0.1, right=False))
    run = script("compare_runs", "before.json", "after.json", "--all")
    marks = {words[1]: words[-1] for words in map(str.split, run.stdout.splitlines()) if len(words) > 1 and words[0] == "8"}
    expect(run.returncode == 1, "what is slower is told by the exit status", run.stdout + run.stderr)
    expect("noise" in run.stdout.splitlines()[-1], "the last line warns of noise", run.stdout)
    expect(marks == {"a": "slower", "b": "faster", "c": "1.040", "d": "1.300", "e": "WRONG"}, "changes and noise differ",
           run.stdout)
    expect("note" not in run.stdout, "the circumstances are the same", run.stdout)
    write("after.json", row("a", 1, 0.1), ranks=4)
    run = script("compare_runs", "before.json", "after.json")
    expect("median of milliseconds" in run.stdout, "the columns are named", run.stdout)
    expect(run.returncode == 1 and "4 missing" in run.stdout, "missing rows are told", run.stdout + run.stderr)
    expect("note: ranks was 2, is 4" in run.stdout, "other circumstances are told", run.stdout)

    with open("text.json", "w") as file:
        file.write("no run")
    write("strange.json", {"bytes": 8})
    for name in "missing.json", "text.json", "strange.json":
        run = script("compare_runs", "before.json", name)
        expect(run.returncode == 2 and name in run.stderr and "Traceback" not in run.stderr,
               "what is no run is told from one that is slower", run.stdout + run.stderr)


def test_plot():
    with open("sweep.allreduce.json") as file:
        fast = json.load(file)
    fast["settings"]["link"] = "10Gb/s"
    for each in fast["rows"]:  # MPI wins at this rate, wring at the other
        each["ms"] = 2 if each["compressor"] else 1
    with open("fast.json", "w") as file:
        json.dump(fast, file)
    for each in fast["rows"]:
        each["ms"] = 20 if each["compressor"] else 40
    fast["settings"]["link"] = "100Mb/s"
    with open("slow.json", "w") as file:
        json.dump(fast, file)
    pictures = [["size", "size.svg", "sweep.allreduce.json"], ["link", "link.svg", "--size", "10k", "slow.json", "fast.json"]]
    with open("advise.json") as file:
        advice = json.load(file)
    expect(len(advice["rows"]) == 6 and len(advice["break_even"]) == 2, "advice for every size and rate")
    expect(all(each["compressed_ms"] > 0 and each["plain_ms"] > 0 for each in advice["rows"]), "times are predicted")
    pictures.append(["advise", "advise.svg", "advise.json"])
    pictures += [["rate", "rate.svg", "study.json"], ["kinds", "kinds.svg", "--level", "0.1", "study.json"]]
    for arguments in pictures + [["error", "error.svg", "codec.json"]] * have_codec:
        run = script("plot", *arguments)
        if run.returncode == 77:
            print(run.stdout, end="")
            sys.exit(77)
        expect(run.returncode == 0, f"{arguments[1]} is drawn", run.stdout + run.stderr)
        with open(arguments[1]) as file:
            picture = file.read()
        expect(picture.rstrip().endswith("</svg>"), f"{arguments[1]} is complete")
        # Both lines are straight on logarithmic scales: halfway in time's logarithm is halfway in the rate's, 1 Gb/s.
        expect(("break-even 1 Gb/s" in picture) == (arguments[0] == "link"), "the break-even is where lines cross", picture)


def test_study():
    """What the study says is what is known of these codecs, and the tables are written where they belong."""
    with open("study.json") as file:
        study = json.load(file)
    bits = {(row["data"], row["codec"]): row["bits"] for row in study["rows"] if row["kind"] == "flat"}
    for data in {row["data"] for row in study["rows"]}:
        fine, coarse = 0, -1
        one_table, grid, entropy_grid = (bits[data, codec] for codec in ("one_table", "grid", "entropy_grid"))
        # Errors that differ by 100 belong to steps that differ by 10: log2(10) bits, fewer where most values are 0.
        expect(2.5 < one_table[fine] - one_table[coarse] < 3.4, "a tenth of the step costs 3.3 bits at most", str(one_table))
        expect(all(a > b for a, b in zip(grid, entropy_grid)), "the entropy stage makes pieces smaller", f"{grid} {entropy_grid}")
        expect(all(a < b + 0.1 for a, b in zip(entropy_grid, one_table)), "it comes near the entropy", f"{entropy_grid} {one_table}")
        expect(bits[data, "cast_bf16"] == [16, 16], "16 bits are 16 bits")
    widths = [point["bits"] for point in study["points"] if point["codec"] == "block_scaled"][:6]
    expect([int(width) for width in widths] == [8, 6, 5, 4, 3, 2], "numbers of bits, and scales", str(widths))
    expect(all(0 < row["share_of_largest_hundredth"] <= 1 for row in study["statistics"]), "a share is a share")

    with open("page.md", "w") as file:
        file.write("Before.\n\n<!-- table kinds 0.1 -->\nold\n<!-- end -->\n\n<!-- table above cnn_step0100 -->\n\n<!-- end -->\nAfter.\n")
    for arguments, status in [(["--check"], 1), ([], 0), (["--check"], 0)]:
        run = script("gradients/tables", "study.json", "page.md", *arguments)
        expect(run.returncode == status, f"status {status}: tables {arguments}", run.stdout + run.stderr)
    with open("page.md") as file:
        page = file.read()
    expect(page.startswith("Before.") and page.endswith("After.\n") and "old" not in page, "the rest stays", page)
    expect("| bits per value at 0.1 |" in page and "| bits above one table at |" in page, "both tables are there", page)
    for page, arguments in [("gradients.md", ["gradients/tables", "results/gradients.json", "../docs/gradients.md"]), ("performance.md", ["tables"])]:
        run = script(*arguments, "--check", at=benchmarks)
        expect(run.returncode == 0, f"docs/{page} has the figures of the results", run.stdout + run.stderr)


def test_figures():
    """Values and tables of a page, from results that are known."""
    os.makedirs("figures", exist_ok=True)
    rows = [("encode/grid/float/64k/a/rms:0.1/manual_time", 4, 0.5), ("encode/grid/float/64k/b/rms:0.1/manual_time", 14, 1.96),
            ("decode/grid/float/64k/a/rms:0.1/manual_time", 4, 12), ("encode/lossless/float/64k/a/manual_time", 27, 0.25),
            ("encode/grid/double/64k/a/rms:0.1/manual_time", 9, 9)]
    with open("figures/codec.json", "w") as file:
        json.dump({"context": {}, "benchmarks": [{"name": name, "bits": bits, "of_memcpy": speed, "microseconds": 65.536 / speed}
                                                 for name, bits, speed in rows]}, file)
    with open("figures/page.md", "w") as file:
        file.write("From <!-- value codec encode grid 64k -->old<!-- end -->, <!-- value codec encode lossless 64k gigabytes --><!-- end -->, "
                   "<!-- value codec encode top_k 64k --><!-- end -->.\n\n<!-- table codec -->\n<!-- end -->\n")
    for arguments, status in [(["--check"], 1), ([], 0), (["--check"], 0)]:
        run = script("tables", "--results", "figures", "--page", "figures/page.md", *arguments)
        expect(run.returncode == status, f"status {status}: tables {arguments}", run.stdout + run.stderr)
    with open("figures/page.md") as file:
        page = file.read()
    plain = re.sub("<!--.*?-->", "", page)
    expect(plain.startswith("From 0.50 to 2.0, 0.25, not recorded."), "values within a line", page)
    expect("| `Grid` | 4.0 to 14 | 0.50 to 2.0 | 12 |  |\n" in page and "| `Lossless` | 27 | 0.25 |  |  |\n" in page, "a table", page)


def values_of(name):
    values = array.array("f")
    with open(name, "rb") as file:
        values.frombytes(file.read())
    return values


def test_made():
    field, gradient, factor = (values_of(f"{kind}.f32") for kind in ("field", "gradient", "factor"))
    expect((len(field), len(gradient), len(factor)) == (101 * 101, 10240, 101 * 101), "as many as asked for")
    steps = sum((b - a)**2 for a, b in zip(field, field[1:])) / len(field)
    expect(steps < 0.1 * sum(x * x for x in field) / len(field), "the field is smooth")
    square, fourth = (sum(x**power for x in gradient) / len(gradient) for power in (2, 4))
    expect(fourth / square**2 > 6, "the gradient's tails are heavy (kurtosis 3: normal)")
    side = 101
    expect(all(factor[i * side + j] == factor[j * side + i] for i in range(side) for j in range(i)), "symmetric")
    expect(all(factor[i * side + j]**2 <= 1.0001 * factor[i * side + i] * factor[j * side + j] for i in range(side)
               for j in range(i)), "no correlation exceeds 1")


def test_refused():
    """What cannot be read, written or understood: one sentence, and status 2."""
    for name, content in [("empty.json", ""), ("list.json", "[]"), ("other.json", "{}"), ("trace.json", '{"traceEvents": []}'),
                          ("bare.json", '{"benchmark": "collective.sweep", "rows": []}')]:
        with open(name, "w") as file:
            file.write(content)
    write("own.json", row("a", 1, 0.1))
    write("quotient.json", {**row("a", 1, 0.1), "of_mpi": 1, "of_mpi_quarter": 1, "of_mpi_three_quarters": 1})
    with open("sweep.allreduce.json") as file:
        elsewhere = json.load(file)
    elsewhere["settings"]["link"] = "another"
    with open("elsewhere.json", "w") as file:
        json.dump(elsewhere, file)
    sweep, timeline = "sweep.allreduce.json", "../docs/pictures/draw_timeline.py"
    for name, arguments, sentence in [
            ("compare_runs", ["missing.json", sweep], "cannot read missing.json"),
            ("compare_runs", [sweep, "empty.json"], "empty.json is no file of JSON"),
            ("compare_runs", [sweep, "list.json"], "list.json has no results of"),
            ("compare_runs", [sweep, "advise.json"], "advise.json has no results of"),
            ("compare_runs", [sweep, "bare.json"], "bare.json has no rows"),
            ("compare_runs", ["own.json", "quotient.json"], "do not measure the same"),
            ("compare_runs", [sweep], "the following arguments are required: after"),
            ("plot", ["size", "a.svg", "missing.json"], "cannot read missing.json"),
            ("plot", ["size", "a.svg", "advise.json"], "advise.json has no results of collective.sweep"),
            ("plot", ["size", "a.svg", sweep, "elsewhere.json"], "they are no one picture"),
            ("plot", ["size", "missing/a.svg", sweep], "cannot write missing/a.svg"),
            ("plot", ["size", sweep, sweep], "it must end with .svg"),
            ("plot", ["error", "a.svg", sweep], f"{sweep} has no results of codec.codec"),
            ("plot", ["advise", "a.svg", sweep], f"{sweep} has no results of advise.advise"),
            ("plot", ["link", "a.svg", "advise.json"], "advise.json has no results of"),
            ("plot", ["link", "a.svg", "--size", "12x", sweep], "'12x' is no size"),
            ("plot", ["link", "a.svg", "--size", "3g", sweep], "no results for 3 GiB"),
            ("plot", ["rate", "a.svg", sweep], f"{sweep} has no results of gradients.study"),
            ("gradients/tables", [sweep, "page.md"], f"{sweep} has no results of gradients.study"),
            ("gradients/tables", ["study.json", "missing.md"], "cannot read missing.md"),
            ("gradients/tables", ["study.json"], "expected STUDY.json PAGE.md"),
            ("tables", ["--results", ".", "--page", "missing.md"], "cannot read missing.md"),
            ("tables", ["--results", "missing"], "cannot read missing/"),
            ("cluster/model", [], "Usage: model"),
            ("cluster/model", ["missing.json"], "cannot read missing.json"),
            ("cluster/model", [sweep], f"{sweep} has no results of cluster.compare"),
            ("cluster/check", [], "benchmarks/cluster/hosts"),
            ("cluster/compare.py", ["--hosts", "x"], "'x' is no list of whole numbers"),
            ("cluster/compare.py", ["--limits", "low"], "'low' is none of default, raised"),
            ("cluster/compare.py", ["--json", "missing/a.json"], "cannot write missing/a.json"),
            (timeline, ["missing.json", "a.svg"], "cannot read missing.json"),
            (timeline, ["empty.json", "a.svg"], "empty.json is no file of JSON"),
            (timeline, ["other.json", "a.svg"], "other.json is no trace"),
            (timeline, ["trace.json", "a.svg"], "no event"),
            (timeline, ["trace.json", "trace.json"], "it must end with .svg")]:
        run = script(name, *arguments)
        if run.returncode == 77:
            continue  # without matplotlib
        expect(run.returncode == 2, f"status 2: {name} {arguments}", run.stdout + run.stderr)
        said = run.stdout + run.stderr
        expect(sentence in said and "Traceback" not in said, f"{sentence}: {name} {arguments}", said)
    expect(not os.path.exists("a.svg"), "no picture without results")


{"compare": test_compare, "plot": test_plot, "study": test_study, "figures": test_figures, "made": test_made, "refused": test_refused}[what]()
