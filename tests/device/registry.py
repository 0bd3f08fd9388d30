#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails when a kernel of the library is missing from the device checks.

Usage: registry.py INCLUDE_FOLDER OBJECT...

The objects come from the files *.cpp of this folder, all compiled for one backend. Three things are checked:
- every kernel in the headers is launched in some object, by itself or as a template argument of what is launched. A kernel is a
  class with a member `KOKKOS_FUNCTION void operator()(...)` (or KOKKOS_INLINE_FUNCTION, KOKKOS_FORCEINLINE_FUNCTION), or one that
  gives a kernel its body and label (`static constexpr const char* ..._label`); classes whose call operator returns something
  are helpers;
- a kernel that is launched with one element type is launched with all of them: float, double, the library's 16-bit types, and
  Kokkos' own where the objects have them;
- kernels are named: no launch takes a lambda, and none is launched in an object that the headers do not show.

A new kernel needs a line in a file of this folder that instantiates what launches it, nothing else. A kernel that is meant for
the host alone carries no KOKKOS_FUNCTION.
"""
import pathlib
import re
import subprocess
import sys

ELEMENTS = ["float", "double", "wring::half_t", "wring::bhalf_t"]
KOKKOS_ELEMENT = re.compile(r"Kokkos::Experimental::Impl::floating_point_wrapper<\w+>|Kokkos::Experimental::b?half_t")
LAUNCH = re.compile(r"\bKokkos::parallel_(?:for|reduce|scan)\s*\(")
NAMESPACE = re.compile(r"\bnamespace\s+([\w:]+(?:::inline \w+)*(?:::\w+)*)\s*\{")
CLASS = re.compile(r"\b(?:struct|class)\s+(\w+)\s*(?:final\s*)?(?::[^{;]*)?\{")
KERNEL = re.compile(r"\bKOKKOS_(?:INLINE_|FORCEINLINE_)?FUNCTION\s+(?:constexpr\s+)?void\s+operator\(\)\s*\("
                    r"|\bstatic constexpr const char\* \w*label\b")


def without_comments(text):
    keep_lines = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r"//[^\n]*|/\*.*?\*/", keep_lines, text, flags=re.S)


def closing(text, opening):
    """Index of the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(text)):
        depth += text[i] in "([{"
        depth -= text[i] in ")]}"
        if depth == 0:
            return i
    return len(text)


def kernels_in(text):
    """Qualified names of the classes whose own call operator or label makes them kernels."""
    scopes = [(m.start(), closing(text, m.end() - 1), m.group(1)) for m in NAMESPACE.finditer(text)]
    classes = [(m.start(), closing(text, m.end() - 1), m.group(1)) for m in CLASS.finditer(text)]
    for call in KERNEL.finditer(text):
        around = lambda ranges: [name for first, last, name in ranges if first < call.start() < last]
        if around(classes):
            parts = [part for name in around(scopes) for part in name.split("::") if not part.startswith("inline ")]
            yield "::".join(parts + around(classes))


def unnamed_launches(path, text):
    """Launches of whole kernels (their first argument is no range inside a team) that are given a lambda."""
    for launch in LAUNCH.finditer(text):
        arguments = text[launch.end():closing(text, launch.end() - 1)]
        if re.match(r"\s*Kokkos::(Team|Thread)\w*Range\b|\s*all_values\b", arguments):
            continue
        if re.search(r"KOKKOS_(CLASS_)?LAMBDA|\[[=&]?\w*\]\s*\(", arguments):
            yield f"{path}:{text.count(chr(10), 0, launch.start()) + 1}"


def template_argument(text, start):
    """The text of a template argument that starts at `start`, up to the comma or bracket that ends it."""
    depth = 0
    for i in range(start, len(text)):
        if depth == 0 and text[i] in ",>":
            return text[start:i].strip()
        depth += text[i] in "<("
        depth -= text[i] in ">)"
    return text[start:].strip()


def launched_in(objects):
    """The functor types that Kokkos was told to run."""
    symbols = subprocess.run(["nm", "-C", *objects], check=True, capture_output=True, text=True).stdout
    symbols = symbols.replace("wring::v0::", "wring::").replace(" >", ">")
    found = set()
    for name in ("ParallelFor<", "ParallelScan<", "ParallelScanWithTotal<", "CombinedFunctorReducer<",
                 "ParallelReduceAdaptor<"):
        for match in re.finditer(r"\bKokkos::Impl::" + name, symbols):
            start = match.end()
            if name == "ParallelReduceAdaptor<":  # policy first
                start += len(template_argument(symbols, start)) + 1
                while symbols[start] in " ,":
                    start += 1
            found.add(re.sub(r"\s*\bconst$", "", template_argument(symbols, start)))
    return {functor for functor in found if functor.startswith("wring::")}


def class_names(functor):
    """The functor's own name first, then those of the classes in its template arguments."""
    return re.findall(r"\bwring::(?:\w+::)*\w+(?=<|$|[,> ])", functor)


class Elements:
    """The element types of a backend, and where they occur in the types of functors."""

    def __init__(self, launched):
        self.all = ELEMENTS + sorted({e for functor in launched for e in KOKKOS_ELEMENT.findall(functor)})
        self.pattern = re.compile(r"(?<![\w:])(?<!complex<)(" + "|".join(map(re.escape, self.all)) + r")(?![\w:])")

    def within(self, functor):
        return set(self.pattern.findall(functor))

    def incomplete(self, launched, kernels):
        """Kernels that are compiled for some element types and not for others: by kernel, and for functors of one element type by
        their other template arguments, too."""
        found = {}
        for functor in launched:
            elements = self.within(functor)
            if not elements:
                continue
            for name in set(class_names(functor)) & set(kernels):
                found.setdefault(name, set()).update(elements)
            if len(elements) == 1:
                found.setdefault(self.pattern.sub("T", functor), set()).update(elements)
        for kernel, elements in sorted(found.items()):
            missing = [e for e in self.all if e not in elements]
            if missing:
                yield f"{kernel} is not compiled for T = {', '.join(missing)}"


def main(include, objects):
    kernels, problems = {}, []
    for path in sorted(pathlib.Path(include).rglob("*.hpp")):
        if "testing" in path.relative_to(include).parts:
            continue
        text = without_comments(path.read_text())
        for name in kernels_in(text):
            kernels[name] = path
        problems += [f"{where}: a launch takes a lambda; write a named functor" for where in unnamed_launches(path, text)]
    launched = launched_in(objects)
    seen = {name for functor in launched for name in class_names(functor)}
    for name, path in kernels.items():
        if name not in seen:
            problems.append(f"{path}: kernel {name} is launched in no object: instantiate it in a file of tests/device")
    for name in sorted({class_names(functor)[0] for functor in launched} - set(kernels)):
        problems.append(f"{name} is launched, but no header shows it as a kernel (KOKKOS_FUNCTION void operator())")
    elements = Elements(launched)
    problems += elements.incomplete(launched, kernels)
    print(f"{len(kernels)} kernels, {len(launched)} instantiations, {len(elements.all)} element types")
    for problem in problems:
        print("MISSING:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
