# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and figures of results in pages: what is between `<!-- table NAME [WORD ...] -->` and `<!-- end -->`, or, within a line, between
`<!-- value NAME [WORD ...] -->` and `<!-- end -->`, is written by a function of that name, which is given the words."""
import re
import sys

import results


def markdown(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def two_digits(value):
    """0.60, 1.4, 15, 150."""
    return f"{value:#.2g}".rstrip(".") if value < 99.5 else f"{value:.0f}"


def spread(values):
    """From the least to the greatest, with two digits each."""
    texts = [two_digits(value) for value in (min(values), max(values))]
    return " to ".join(dict.fromkeys(texts))


def written(page, makers):
    """The page with what the functions say now."""
    def made(match):
        name, *words = match[2].split()
        return makers[name](*words)

    page = re.sub(r"(<!-- table ([^>]*) -->\n).*?(<!-- end -->)", lambda match: f"{match[1]}\n{made(match)}\n\n{match[3]}", page,
                  flags=re.DOTALL)
    return re.sub(r"(<!-- value ([^>]*) -->)[^\n]*?(<!-- end -->)", lambda match: match[1] + made(match) + match[3], page)


def rewrite(path, makers, sources, check):
    """Writes the page anew; with `check` ends with 1 if that would change it. `sources`: what the figures come from, in words."""
    try:
        with open(path, encoding="utf-8") as file:
            page = file.read()
    except OSError as error:
        results.complain(f"cannot read {path}: {error.strerror}")
    with results.complete(sources, path):
        new = written(page, makers)
    if check:
        sys.exit(0 if new == page else f"{path} has other figures than {sources}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)
