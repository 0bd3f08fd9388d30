# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the scripts share: files of results that are read and written, and one sentence, with status 2, where that cannot be."""
import argparse
import contextlib
import json
import os
import signal
import sys

signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads only the head of a table gets no traceback


def complain(sentence):
    print(f"{os.path.basename(sys.argv[0])}: {sentence}", file=sys.stderr)
    sys.exit(2)


def read(path, benchmark=None):
    """The document in a file; of that benchmark, where one is named."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        complain(f"cannot read {path}: {error.strerror}")
    except ValueError:
        complain(f"{path} is no file of JSON; has the program that writes it ended?")
    if benchmark and benchmark_of(document) != benchmark:
        complain(f"{path} has no results of {benchmark}")
    return document


def benchmark_of(document):
    """The benchmark that has written a document; nothing if none has."""
    if not isinstance(document, dict):
        return None
    if "benchmarks" in document and "context" in document:  # as Google Benchmark writes it
        return "codec.codec"
    return document.get("benchmark")


@contextlib.contextmanager
def complete(*paths):
    """Around what takes results as they should be, which those of another version, or written by hand, may not be."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        complain(f"{' or '.join(paths)} is not as the benchmark writes it: {error!r}")


def expect_writable(path):
    """Before anything is measured or drawn."""
    fresh = not os.path.exists(path)
    try:
        with open(path, "a"):
            pass
    except OSError as error:
        complain(f"cannot write {path}: {error.strerror}")
    if fresh:
        os.remove(path)


def text_of(document):
    """JSON with a line for each row of each table, so that a difference shows which rows have changed."""
    def value(v):
        if isinstance(v, list) and v and isinstance(v[0], dict):
            return "[\n  " + ",\n  ".join(map(json.dumps, v)) + "\n ]"
        return json.dumps(v)
    return "{\n" + ",\n".join(f" {json.dumps(k)}: {value(v)}" for k, v in document.items()) + "\n}\n"


def write(path, document):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text_of(document))
    except OSError as error:
        complain(f"cannot write {path}: {error.strerror}")


def codec_name(name):
    """How documents and pictures call a codec of the study."""
    names = {"one_table": "one table, ideal", "one_table_dead_zone": "one table, dead zone, ideal", "grid": "Grid", "entropy_grid": "EntropyGrid",
             "block_scaled": "BlockScaled", "block_scaled_stochastic": "BlockScaled, stochastic", "block_scaled_rotated": "BlockScaled, rotated",
             "cast_bf16": "Cast, bf16", "cast_fp16": "Cast, fp16", "lossless": "Lossless", "filter_and_round": "filter and round, ideal",
             "filter_and_round_nearest": "filter and round, nearest, ideal", "largest": "the largest, ideal", "gradient": "Gradient",
             "gradient_stochastic": "Gradient, stochastic", "gradient_packed": "Gradient, packed",
             "top_k": "TopK"}
    return names.get(name, name.replace("_", " "))


def picture(path):
    """The type of an argument that names a picture."""
    if not path.endswith(".svg"):
        raise argparse.ArgumentTypeError(f"'{path}' is no name of a picture: it must end with .svg")
    return path


def size(text):
    """The type of an argument in bytes: 4m is 4194304."""
    unit = {"k": 10, "m": 20, "g": 30}.get(text[-1:], 0)
    try:
        return int(float(text[:-1] if unit else text) * 2**unit)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is no size: a number, with k, m or g for KiB, MiB, GiB") from None


def numbers(text):
    """The type of an argument that lists whole numbers from 1 on."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of whole numbers from 1 on")
    return values


def main():
    """`results.py FILE`: writes what Google Benchmark wrote without what tells of one computer, a line for each row."""
    document = read(sys.argv[1], "codec.codec")
    for name in "executable", "host_name":
        document["context"].pop(name, None)
    write(sys.argv[1], document)


if __name__ == "__main__":
    main()
