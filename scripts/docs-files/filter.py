#!/usr/bin/env python3
"""Prints a header with its comments in the form that Doxygen takes.

usage: scripts/docs-files/filter.py include/tarsia.h
       scripts/docs-files/filter.py include/tarsia.hpp (and each file of include/tarsia)

The header's comments are sentences for people who read the header: they name functions, constants and statuses
without marks, and say nothing of a parameter whose name says all. For the reference this adds, in the comments
alone, links to everything that is named, the group of groups.txt, the parameters of parameters.txt, and @return
in the place of "Statuses:"; the text of the header's first page becomes a page, and the programs of c_examples get
one each, by which Doxygen lists them with the functions that they call. The declarations stay as they
are. What the tables leave out, or have too much, is an error.

In the C++ headers, comments directly before a declaration become documentation, with the same links, and the
first comment of tarsia.hpp the first page.
"""

import fnmatch
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ESCAPES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
C_HEADER = HERE.parents[1] / "include" / "tarsia.h"


def fail(text):
    sys.exit(f"filter.py: {text}")


def lines_of(name):
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


class Parameters:
    def __init__(self):
        self.texts, self.used, key = {}, set(), None
        for line in lines_of("parameters.txt"):
            if line.startswith(" "):
                self.texts[key] += " " + line.strip()
                continue
            key, text = (part.strip() for part in line.split("|", 1))
            if key in self.texts:
                fail(f"parameters.txt has {key} twice")
            self.texts[key] = text

    def get(self, name, function=None):
        for key in (f"{function}.{name}", name):
            if key in self.texts:
                self.used.add(key)
                return self.texts[key]
        return fail(f"parameters.txt has nothing for {name} of {function}")


class Groups:
    def __init__(self):
        self.groups, self.used = [], set()  # (id, title, description, patterns)
        for line in lines_of("groups.txt"):
            if line.startswith(">"):
                self.groups[-1][2].append(line[1:].strip())
            elif re.match(r"\w+  ", line):
                name, title = line.split("  ", 1)
                self.groups.append((name, title.strip(), [], []))
            else:
                self.groups[-1][3].extend(line.split())

    def of(self, name):
        for exact in (True, False):
            for group, _, _, patterns in self.groups:
                for pattern in patterns:
                    fits = pattern == name if exact else fnmatch.fnmatchcase(name, pattern)
                    if fits:
                        self.used.add((group, pattern))
                        return group
        return fail(f"no group of groups.txt takes {name}")

    def unused(self):
        return [p for g, _, _, patterns in self.groups for p in patterns if (g, p) not in self.used]


def link(text, names, itself=None):
    """Marks the names of the interface in a text as links, and what Doxygen would take for a command."""

    def mark(match):
        word = match[0]
        target = word if word in names else f"TARSIA_STATUS_{word}"
        if target not in names or target == itself:
            return word
        return f'@ref {target} "{word}"'

    text = re.sub(r"[\\@<>#&]", lambda m: ESCAPES.get(m[0], "\\" + m[0]), text)
    text = text.replace(" ::", " &#58;:").replace("&gt;::", "&gt;&#58;:")
    # A name that is part of a longer one, such as tarsiaPlanInfo_t.checked, is a link; a start of
    # names, such as TARSIA_VERSION_ or tarsiaPlan_set..., is none.
    return re.sub(r"\b(?:tarsia[A-Z]\w*|TARSIA_\w+|[A-Z]+(?:_[A-Z]+)+|SUCCESS)\b(?!\.\.\.)", mark, text)


def comment(lines):
    return "/**\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */"


def body(text):
    """The lines of a comment /** ... */, without stars."""
    lines = text.strip()[3:-2].strip("\n").split("\n")
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines if line.strip() not in ("", "*/")] or [""]


def first_page(text, names):
    """The header's first comment as a page: indented lines are tables and code."""
    lines = [re.sub(r"^ \* ?", "", line) for line in text.strip().split("\n")[1:-1]]
    start = next(i for i, line in enumerate(lines) if line.startswith("create ->"))
    out = ["@page rules Rules for all functions", ""]
    for line in ["  " + lines[start]] + lines[start + 1 :]:
        indented = line.startswith("  ")
        out.append("    " + line if indented else link(line, names))
    return comment(out)


def parameters_of(function, arguments, parameters):
    out = []
    for argument in arguments.split(","):
        kind, name = re.match(r"\s*(.*?)(\w+)\s*$", argument, re.S).groups()
        kind = re.sub(r"\s+", " ", kind).strip()
        answer = kind.endswith("**") or (kind.endswith("*") and not re.match(r"(const )?(void|char) \*$", kind))
        text = parameters.get(name, function)
        if answer and name != "info":
            text = re.sub("^[Tt]he ", "", text)
            array = kind.endswith("**") and name not in ("ptr", "stream")
            text = f"Where to write the {'address of the ' if array else ''}{text[0].lower()}{text[1:]}"
        direction = "out" if answer or (function, name) in WRITTEN else "in"
        out.append((direction, name, text))
    return out


# Memory that is given as void * or char *, and written.
WRITTEN = {
    ("tarsiaGetLastErrorMessage", "buf"),
    ("tarsiaPlan_getDecisions", "buffer"),
    ("tarsiaMemcpyToHost", "dst"),
    ("tarsiaMemcpyToDevice", "dst"),
}


def function_comment(lines, name, arguments, names, parameters, group):
    out, statuses = [], False
    for line in lines:
        if line.startswith("Statuses:"):
            statuses = True
            out.append("@return A status: " + link(line[len("Statuses:") :].strip(), names, name))
        else:
            out.append(link(line, names, name))
    if not statuses:
        out += ["", "@return " + link(parameters.get("return", name), names, name)]
    out.append("")
    for direction, parameter, text in parameters_of(name, arguments, parameters):
        out.append(f"@param[{direction}] {parameter} {link(text, names, name)}")
    return comment(out + [f"@ingroup {group}"])


def declared(rest):
    """Name and arguments of the declaration that a text begins with; arguments only of a function."""
    patterns = [
        r"\s*typedef enum \{.*?\} (tarsia\w+);",
        r"\s*typedef struct \{.*?\} (tarsia\w+);",
        r"\s*typedef struct \w+ (tarsia\w+);",
        r"\s*typedef [^;{]*?\(\*(tarsia\w+)\)\(",
        r"\s*typedef [^;{(]*?\b(tarsia\w+);",
        r"\s*(?:const char \*|tarsiaStatus_t )(tarsia\w+)\(([^;]*)\);",
    ]
    for pattern in patterns:
        match = re.match(pattern, rest, re.S)
        if match:
            return match[1], match[2] if match.lastindex > 1 else None
    return None, None


def names_of(text):
    """Everything that tarsia.h declares."""
    names = set(re.findall(r"^    (TARSIA_\w+) = ", text, re.M))
    names |= set(re.findall(r"^#define (TARSIA_VERSION\w*) ", text, re.M))
    names |= set(re.findall(r"^\} (tarsia\w+);", text, re.M))
    names |= set(re.findall(r"\(\*(tarsia\w+)\)\(", text))
    names |= set(re.findall(r"^typedef [^;{(]*?\b(tarsia\w+_t);", text, re.M))
    names |= set(re.findall(r"^(?:const char \*|tarsiaStatus_t )(tarsia\w+)\(", text, re.M))
    return names


def example_pages():
    """A page for each program in C and C++ of c_examples, with the program's first comment."""
    pages = []
    for source in sorted((C_HEADER.parents[1] / "c_examples").iterdir()):
        if source.suffix not in (".c", ".cpp", ".h"):
            continue
        lines = source.read_text(encoding="utf-8").splitlines()[1:]
        end = next(i for i, line in enumerate(lines) if not line or line.endswith("*/"))
        text = "\n".join(re.sub(r"^(/\*| \*(?!/)|//) ?|\s*\*/$", "", line) for line in lines[: end + 1])
        text = re.sub(r"[\\@<>#&%*]", r"\\\g<0>", text)
        pages.append(f"/** @example {source.name}\n{text}\n*/")
    return "\n".join(pages)


def passed_on(lines, at):
    """The C function that the member at this line calls, if it begins there and has no comment."""
    if not re.match(r"    [A-Za-z][^;=]*\(", lines[at]):
        return None
    for line in lines[at:]:
        call = re.search(r"TARSIA_HPP_CALL\((tarsia\w+)", line)
        if call:
            return call[1]
        if line.startswith("    }") or (line.rstrip().endswith(("}", ";")) and line.startswith("    ") and line[4] != " "):
            return None
    return None


def cpp(text, names, first):
    """A C++ header: // before a declaration becomes ///."""
    lines, out, block = text.split("\n"), [], []

    def end(documented):
        code = False
        for line in [*block, None] if documented else []:
            indent, words = re.match(r"( *)// ?(.*)", line).groups() if line else ("", "")
            if words.startswith("    ") != code:
                out.append("/// @endcode" if code else "/// @code{.cpp}")
                code = not code
            if line:
                out.append(f"{indent}/// {words if code else link(words, names)}".rstrip())
        out.extend([] if documented else block)
        block.clear()

    start = 0
    while lines[start].startswith("//"):
        start += 1
    if first:
        page = [re.sub("^// ?", "", line) for line in lines[1:start]]
        page = page[1:] if page[0] == "" else page
        out.append(comment(["@mainpage The C++ interface", ""]
                           + [line if line.startswith("    ") else link(line, names) for line in page]))
    private = False  # is left out: it is nobody's interface
    for at, line in enumerate(lines[start:], start):
        private = line == "  private:" or private and not re.match(r"\S|  (public|protected):", line)
        if private:
            continue
        if re.match(r" *// (?!-|clang-format)", line) or (block and re.match(r" *//$", line)):
            block.append(line)
        else:
            called = None if block else passed_on(lines, at)
            if called:
                out.append(f"    /// Calls @ref {called} \"{called}\".")
            end(line.strip() not in ("", "}") and not line.lstrip().startswith(("//", "#", "if ", "return ")))
            out.append(line)
    return "\n".join(out)


def main(path):
    text = Path(path).read_text(encoding="utf-8")
    names = names_of(C_HEADER.read_text(encoding="utf-8"))
    sys.stdout.reconfigure(encoding="utf-8")
    if path.endswith(".hpp"):
        print(cpp(text, names, Path(path).name == "tarsia.hpp"))
        return
    macros = [name for name in names if name.startswith("TARSIA_VERSION")]
    parameters, groups = Parameters(), Groups()

    end = text.index("*/") + 2
    out = [first_page(text[:end], names)]
    for name, title, description, _ in groups.groups:
        out.append(comment([f"@defgroup {name} {title}", *(link(line, names) for line in description)]))
    out.append(comment(["@file", "The C interface."]))

    # From comment to comment; those inside an enum or a structure only get links.
    at = end
    for match in re.finditer(r"^( *)/\*\*.*?\*/", text[end:], re.S | re.M):
        start, stop = match.start() + end, match.end() + end
        out.append(text[at:start])
        lines = body(match[0])
        name, arguments = (None, None) if match[1] else declared(text[stop:])
        if match[1]:
            out.append(comment([link(line, names) for line in lines]))
        elif name is None:
            fail(f"what does this comment belong to: {lines[0]!r}")
        elif arguments is None:
            out.append(comment([link(line, names, name) for line in lines] + [f"@ingroup {groups.of(name)}"]))
        else:
            out.append(function_comment(lines, name, arguments, names, parameters, groups.of(name)))
        at = stop
    out.append(text[at:])

    result = "\n".join(out)
    for macro in macros:
        described = comment([link(parameters.get(macro), names, macro), f"@ingroup {groups.of(macro)}"])
        result = re.sub(rf"^#define {macro} ", lambda m, d=described: f"{d}\n{m[0]}", result, flags=re.M)
    spare = sorted(set(parameters.texts) - parameters.used)
    if spare or groups.unused():
        fail(f"nothing is left for {spare} of parameters.txt and {groups.unused()} of groups.txt")
    print(result)
    print(example_pages())


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if len(sys.argv) == 2 else 2)
    main(sys.argv[1])
