# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the benchmarks cannot understand, read or write they say in one sentence, before they measure, with status 2; and that results
were lost, with status 1. Usage: refusals.py FOLDER LAUNCHER [ARGUMENT ...]: the folder of the programs, and what starts 2 ranks.
"""
import os
import subprocess
import sys

folder, launcher = sys.argv[1], sys.argv[2:]
nowhere = "no_such_folder/results.json"
with open("odd.f32", "wb") as odd:
    odd.write(bytes(10))
for name, content in [("bad.tensors", b"# a comment\nconv 3\n"), ("good.tensors", b"a conv 2\nb bias 1\n"), ("four.f32", bytes(16))]:
    with open(name, "wb") as file:
        file.write(content)

ALL = [("--help", 0, "usage:"), ("--nonsense 1", 2, "there is no option --nonsense"), ("--json", 2, "--json has no value")]
FILES = ALL + [
    (f"--json {nowhere}", 2, f"cannot write {nowhere}"),
    ("--data missing.f32", 2, "cannot read missing.f32"),
]
CASES = {
    "collective.sweep": FILES + [
        ("word", 2, "not 'word'"),
        ("--json a.json --json b.json", 2, "--json is given twice"),
        ("--data odd.f32", 2, "odd.f32 has 10 bytes"),
        ("--sizes 1x", 2, "--sizes: '1x' is no size"),
        ("--sizes 1", 2, "--sizes: '1' is no size of a vector"),
        ("--sizes 8g", 2, "--sizes: '8g' is no size of a vector"),
        ("--sizes ,", 2, "--sizes: the list is empty"),
        ("--bound 0.1", 2, "--bound: '0.1' is no bound"),
        ("--bound rms:nan", 2, "--bound: 'nan' is no number"),
        ("--bound rms:0", 2, "--bound: the bound 'rms:0' is not greater than 0"),
        ("--collective scan", 2, "there is no collective 'scan'"),
        ("--algorithms bruck", 2, "'bruck' is none of ring, direct"),
        ("--algorithms native", 2, "packed_words runs on native alone"),
        ("--algorithms ring --compressors packed_words", 2, "packed_words runs on native alone"),
        ("--depth 0", 2, "--depth: '0' is no whole number from 1 on"),
        ("--repeat 1.5", 2, "--repeat: '1.5' is no whole number"),
        ("--budget 0", 2, "--budget: '0' is not greater than 0"),
        ("--segment 2", 2, "--segment: '2' has no room for a value"),
        ("--sizes 8 --mpi none --compressors none --algorithms ring --repeat 1 --json /dev/full", 1, "cannot write /dev/full"),
    ],
    "advise.advise": FILES + [
        ("--collective broadcast", 2, "'broadcast' adds nothing up"),
        ("--ranks 1", 2, "--ranks: '1' is no whole number from 2 on"),
        ("--rates 0", 2, "--rates: '0' is not greater than 0"),
    ],
    "collective.predict": ALL[:2] + [
        ("bytes=1m", 2, "not 'bytes=1m'"),
        ("--bytes", 2, "--bytes has no value"),
        ("--ranks abc", 2, "--ranks: 'abc' is no number"),
        ("--ranks 1", 2, "--ranks: '1' is no whole number from 2 on"),
        ("--encode fast", 2, "--encode: 'fast' is no number"),
        ("--encode 0", 2, "encode is 0"),
        ("--bytes=1m --ranks=4", 0, "allreduce of 1048576 bytes"),
        ("--ranks 8", 0, "recursive_doubling"),
    ],
    "data.make": ALL[:2] + [
        ("", 2, "expected a kind of data, and a file"),
        ("fields a.f32", 2, "'fields' is none of field, gradient, factor"),
        ("field no_such_folder/a.f32", 2, "cannot write no_such_folder/a.f32"),
        ("field a.f32 --values 0", 2, "there must be one at least"),
        ("field /dev/full --values 10k", 1, "cannot write /dev/full"),
    ],
    "gradients.study": ALL + [
        (f"--json {nowhere}", 2, f"cannot write {nowhere}"),
        ("word", 2, "'word' is no NAME=TENSORS"),
        ("a=missing.tensors,odd.f32", 2, "cannot read missing.tensors"),
        ("a=bad.tensors,odd.f32", 2, "'conv 3' is no name, kind and number"),
        ("a=good.tensors,odd.f32", 2, "odd.f32 has 10 bytes"),
        ("a=good.tensors,four.f32", 2, "four.f32 has 4 values, good.tensors names 3"),
        ("--levels 1", 2, "--levels: '1' is not between 0 and 1"),
        ("--codecs zip", 2, "--codecs: 'zip' is none of one_table"),
        ("--quick maybe", 2, "'maybe' is none of yes, no"),
        ("--values 0", 2, "--values: there must be one at least"),
        ("--quick yes --speed no --codecs cast_bf16 --json /dev/full", 1, "cannot write /dev/full"),
    ],
    "codec.codec": [
        ("--help", 0, "--bounds"),
        ("--sizs=64k", 2, "there is no option --sizs"),
        ("--sizes=1", 2, "--sizes: '1' has no room for a value"),
        ("--bounds=0.1", 2, "--bounds: '0.1' is no bound"),
        ("gradients:a.f32", 2, "'gradients:a.f32' is no gradient:FILE"),
        ("gradient:missing.f32", 2, "cannot read missing.f32"),
        ("--sizes=4k --bounds=rms:0.1 --benchmark_filter=^decode/grid/float/4k/field --benchmark_list_tests=true", 0,
         "decode/grid/float/4k/field/rms:0.1"),
        ("--benchmark_filter=nonsense", 1, "nonsense"),
    ],
}


def check(name, arguments, status, fragment):
    start = launcher if name in ("collective.sweep", "advise.advise") else []
    run = subprocess.run([*start, f"{folder}/benchmark.{name}", *arguments.split()], capture_output=True, text=True)
    said = run.stdout if status == 0 else run.stderr
    faults = []
    if run.returncode != status:
        faults.append(f"status {run.returncode}, expected {status}")
    if said.count(fragment) == 0:
        faults.append(f"does not say: {fragment}")
    if status == 2 and said.count(f"{name}: ") != 1:
        faults.append("is not said once")
    if status == 2 and run.stdout:
        faults.append("has begun nevertheless")
    for fault in faults:
        print(f"FAILED: {name} {arguments}: {fault}\n{run.stdout}{run.stderr}")
    return not faults


results = [check(name, *case) for name, cases in CASES.items() for case in cases
           if os.path.exists(f"{folder}/benchmark.{name}") and os.path.exists("/dev/full" if "/dev/full" in case[0] else "/")]
print(f"{sum(results)} of {len(results)} are told as they should be")
sys.exit(0 if all(results) else 1)
