#!/usr/bin/env python3
"""Writes include/tarsia.f90, the Fortran module, from include/tarsia.h.

usage: scripts/fortran-module.py [--check] [HEADER [MODULE]]

Enumerators, structs, callbacks and functions are translated, with their comments; tarsiaCheck,
tarsiaLastMessage and tarsiaText below are written by hand. Functions that take alpha and beta, a path, or
arrays also get forms for Fortran's own scalars, strings and arrays, under the same generic name. The same
header gives the same bytes. A declaration that this script does not understand is an error, so that
nothing is left out silently.

--check writes nothing and fails if MODULE is not what HEADER gives.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = 132  # longest line of free-form source
NAME = 63  # longest Fortran name

SCALARS = {  # C type -> (Fortran type, what to import, bytes)
    "int": ("integer(c_int)", "c_int", 4),
    "int32_t": ("integer(c_int32_t)", "c_int32_t", 4),
    "int64_t": ("integer(c_int64_t)", "c_int64_t", 8),
    "size_t": ("integer(c_size_t)", "c_size_t", 8),
    "float": ("real(c_float)", "c_float", 4),
    "double": ("real(c_double)", "c_double", 8),
    "char": ("character(kind=c_char)", "c_char", 1),
}
C_PTR = ("type(c_ptr)", "c_ptr", 8)
C_FUNPTR = ("type(c_funptr)", "c_funptr", 8)

HEAD = """\
! SPDX-License-Identifier: MIT OR Apache-2.0
!
! Fortran interface of tarsia: sparse matrix products behind handles, descriptors and plans.
!
! Generated from include/tarsia.h by scripts/fortran-module.py; do not edit. Names, arguments and their
! order are those of tarsia.h, whose first page also says what blocks, what a CUDA graph may capture, and
! what threads, streams, fork() and memory mean for all of it. Comments here are C's: NULL is c_null_ptr.
!
! Compile this file with your program: module files of different compilers do not fit together.
!
!   handles, descriptors, plans   type(c_ptr); c_null_ptr is C's NULL
!   enums                         integer(c_int), with the parameters below
!   dimensions, counts of nnz     integer(c_int64_t)
!   sizes in bytes                integer(c_size_t)
!   alpha, beta                   real or complex of the compute type's kind, without c_loc, which the call
!                                 reads before it returns (pointer mode HOST); or type(c_ptr)
!   paths                         character, without the blanks at its end; or type(c_ptr)
!   arrays                        type(c_ptr): what tarsiaMalloc gave, or c_loc(x) of a target; and, see
!                                 below, arrays of Fortran
!   callbacks                     type(c_funptr): c_funloc(f) of a bind(C) procedure; the abstract
!                                 interfaces tarsiaAllocFn_t ... say which arguments it has
!   answers                       intent(out). Those that C may leave out with NULL are optional: use
!                                 keywords, as in tarsiaSpMatGetSize(A, nnz=nnz). After a call that
!                                 failed an answer is undefined.
!
! The types of alpha and beta are not converted: 1.0 is of 32 bits, 1.0_c_double of 64.
!
! Forms for arrays of Fortran, in memory of the host, real or complex of 4 or 8 bytes a part, indices of 4
! or 8 bytes. Sizes and types come from the arrays:
!
!   tarsiaMemcpyToDevice(handle, dst, src)        src(:) or src(:, :), integers too; whole array
!   tarsiaMemcpyToHost(handle, dst, src)          dst(:) or dst(:, :), integers too; whole array
!   tarsiaCreateCsr(A, rows, cols, rowOffsets, colInd, values, base)
!   tarsiaCreateCsc(A, rows, cols, colOffsets, rowInd, values, base)
!   tarsiaCreateCoo(A, rows, cols, rowInd, colInd, values, base)
!   tarsiaCreateDnVec(x, values)
!   tarsiaCreateDnMat(B, values, rows)            values(:, :) by columns; rows: the first of each, optional
!   tarsiaCreateConstCsr ... ConstDnMat           the same of arrays that are only read
!   tarsiaPlan_updateValues(handle, plan, values)
!
! Descriptors and plans borrow arrays: they must be targets of the caller that live as long as they are used,
! and contiguous, since a copy of a section would be gone after the call. A form for arrays returns
! TARSIA_STATUS_INVALID_VALUE for one that is not contiguous or has another size than the arguments beside it
! say; tarsiaCheck and tarsiaLastMessage name it. Such arrays serve handles of the CPU backends; a GPU needs
! tarsiaMalloc's.
!
! Fortran's arrays count from 1 and are stored by columns: TARSIA_INDEX_BASE_ONE, TARSIA_ORDER_COL. Texts of
! errors count positions from 0, as C does, and say so: colInd[4] is colInd(5) here.
"""

HELPERS = """\
    ! A C string, or a character field of tarsiaPlanInfo_t, as a Fortran string.
    interface tarsiaText
        module procedure text_of_pointer
        module procedure text_of_field
    end interface tarsiaText
    public :: tarsiaText

    public :: tarsiaCheck
    public :: tarsiaLastMessage

    ! Why this module refused a call of the thread, and the text that the library then has. Another text of
    ! the library belongs to a later failure.
    character(len=200), save :: refusal = "", beside = ""
    !$omp threadprivate(refusal, beside)

    interface
        pure function c_strlen(string) bind(C, name="strlen")
            import :: c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: string
            integer(c_size_t) :: c_strlen
        end function c_strlen
    end interface
"""

BODY = """\
contains

    ! Returns if status is SUCCESS. Else says on the error unit which call failed (where), with what
    ! status, and why, and stops the program with code 1.
    subroutine tarsiaCheck(status, where)
        integer(c_int), intent(in) :: status
        character(len=*), intent(in) :: where

        if (status == TARSIA_STATUS_SUCCESS) return
        write (error_unit, '(5a)') where, ": ", tarsiaText(tarsiaGetErrorName(status)), ": ", tarsiaLastMessage()
        error stop 1
    end subroutine tarsiaCheck

    ! Text of the calling thread's last failed call; empty before the first failure.
    function tarsiaLastMessage() result(text)
        character(len=:), allocatable :: text

        text = library_message()
        if (refusal /= "" .and. text == beside) text = trim(refusal)
    end function tarsiaLastMessage

    ! INVALID_VALUE, with a text for tarsiaLastMessage.
    function refused(text) result(status)
        character(len=*), intent(in) :: text
        integer(c_int) :: status
        character(kind=c_char) :: nothing(1)

        refusal = text
        ! A call that the library refuses, too, so that its text is none that a program has seen.
        status = tarsiaGetLastErrorMessage(nothing, 0_c_size_t)
        beside = library_message()
        status = TARSIA_STATUS_INVALID_VALUE
    end function refused

    ! Refuses an array that is not contiguous.
    function kept(array, is_contiguous) result(status)
        character(len=*), intent(in) :: array
        logical, intent(in) :: is_contiguous
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (.not. is_contiguous) status = refused(array // ": it is not contiguous, and a copy would be gone after the call")
    end function kept

    ! Refuses an array that has another size than what is expected.
    function sized(array, found, what, expected) result(status)
        character(len=*), intent(in) :: array, what
        integer(c_int64_t), intent(in) :: found, expected
        integer(c_int) :: status
        character(len=120) :: text

        status = TARSIA_STATUS_SUCCESS
        if (found == expected) return
        write (text, '(a, i0, 3a, i0)') ": has the size ", found, ", expected ", what, " = ", expected
        status = refused(array // trim(text))
    end function sized

    ! Text of the last call that the library refused.
    function library_message() result(text)
        character(len=:), allocatable :: text
        character(kind=c_char), allocatable :: buffer(:)
        integer :: room

        room = 512
        do
            allocate (buffer(room))
            text = ""
            if (tarsiaGetLastErrorMessage(buffer, int(room, c_size_t)) /= TARSIA_STATUS_SUCCESS) return
            text = text_of_field(buffer)
            ! A text that fills the buffer may have been cut.
            if (len(text) < room - 1) return
            deallocate (buffer)
            room = 2*room
        end do
    end function library_message

    ! The C string that an address points to; empty for NULL.
    function text_of_pointer(string) result(text)
        type(c_ptr), intent(in) :: string
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)

        text = ""
        if (.not. c_associated(string)) return
        call c_f_pointer(string, characters, [c_strlen(string)])
        text = text_of_field(characters)
    end function text_of_pointer

    ! The characters up to the first 0.
    pure function text_of_field(characters) result(text)
        character(kind=c_char), intent(in) :: characters(:)
        character(len=:), allocatable :: text
        integer :: i, length

        length = size(characters)
        do i = size(characters), 1, -1
            if (characters(i) == c_null_char) length = i - 1
        end do
        allocate (character(len=length) :: text)
        do i = 1, length
            text(i:i) = characters(i)
        end do
    end function text_of_field
"""


def fail(text):
    sys.exit(f"fortran-module.py: {text}")


ASCII = {"·": "*", "×": "x", "≥": ">=", "≤": "<=", "…": "...", "–": "-", "−": "-", "Σ": "sum of "}


def plain(text):
    """Text in ASCII, on one line."""
    text = " ".join(text.split())
    for old, new in ASCII.items():
        text = text.replace(old, new)
    if not text.isascii():
        fail(f"a character that ASCII lacks and no rule replaces: {text}")
    return text


def paragraphs(comment):
    """Paragraphs of a doc comment."""
    lines = [re.sub(r"^\s*\*", "", line).strip() for line in (comment or "").strip("/*\n ").splitlines()]
    return [plain(part) for part in "\n".join(lines).split("\n\n") if part.strip()]


def comment_lines(text, indent):
    """Text as comment lines of at most 100 columns."""
    lines, line = [], indent + "!"
    for word in text.split():
        if len(line) + 1 + len(word) > 100:
            lines.append(line)
            line = indent + "!"
        line += " " + word
    return lines + [line]


def doc_lines(doc, indent):
    """Paragraphs as comment lines, with an empty one between them."""
    lines = []
    for part in doc:
        if lines:
            lines.append(indent + "!")
        lines += comment_lines(part, indent)
    return lines


class Header:
    """What tarsia.h declares, in its order."""

    DOC = r"(?:/\*\*(?P<doc>(?:(?!\*/).)*)\*/\s*)?"
    DECLARATIONS = re.compile(
        DOC
        + r"""(?:
            typedef\ enum\ \{(?P<enum>[^{}]*)\}\ (?P<enum_name>\w+);
          | typedef\ struct\ \{(?P<struct>[^{}]*)\}\ (?P<struct_name>\w+);
          | typedef\ struct\ (?P<opaque>\w+)\ (?P=opaque);
          | typedef\ (?P<fn_result>[\w\s*]+?)\(\*(?P<fn_name>\w+)\)\((?P<fn_args>[^()]*)\);
          | typedef\ (?:const\ )?(?P<object_of>\w+)\ \*(?P<object>\w+);
          | (?P<result>\w[\w\s*]*?)(?P<function>\w+)\((?P<args>[^()]*)\);
        )""",
        re.S | re.X,
    )

    def __init__(self, text):
        self.versions = re.findall(r"^#define (TARSIA_VERSION\w*) (.+)$", text, re.M)
        # What only C and C++ need.
        text = re.sub(r'#ifdef __cplusplus\n(extern "C" \{|\}.*)\n#endif.*\n', "", text)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        text = re.sub(r"\A\s*/\*(?!\*).*?\*/", "", text, flags=re.S)
        self.enums, self.structs, self.opaques, self.callbacks = [], [], set(), []
        self.objects, self.functions = set(), []
        rest = self.DECLARATIONS.sub(self.take, text).strip()
        if rest:
            fail(f"declarations that are not understood:\n{rest}")
        self.enum_names = {name for name, _, _ in self.enums}
        self.callback_names = {name for name, _, _, _ in self.callbacks}
        self.struct_names = {name for name, _, _ in self.structs}

    def take(self, m):
        doc = paragraphs(m["doc"])
        if m["enum_name"]:
            body = re.sub(r"/\*.*?\*/", "", m["enum"], flags=re.S)
            members = re.findall(r"(?:/\*\*((?:(?!\*/).)*)\*/\s*)?(\w+) = (-?\d+),", m["enum"], flags=re.S)
            members = [(name, value, paragraphs(comment)) for comment, name, value in members]
            if len(members) != body.count(","):
                fail(f"enumerators of {m['enum_name']} without a number")
            self.enums.append((m["enum_name"], members, doc))
        elif m["struct_name"]:
            body = re.sub(r"/\*.*?\*/", "", m["struct"], flags=re.S)
            field = r"(?:/\*\*((?:(?!\*/).)*)\*/\s*)?(\w+) (\w+)(?:\[(\d+)\])?;"
            fields = [(kind, name, count, paragraphs(comment))
                      for comment, kind, name, count in re.findall(field, m["struct"], flags=re.S)]
            if len(fields) != body.count(";"):
                fail(f"fields of {m['struct_name']} that are not understood")
            self.structs.append((m["struct_name"], fields, doc))
        elif m["opaque"]:
            self.opaques.add(m["opaque"])
        elif m["fn_name"]:
            self.callbacks.append((m["fn_name"], m["fn_result"].strip(), arguments(m["fn_args"]), doc))
        elif m["object"]:
            if m["object_of"] not in self.opaques:
                fail(f"{m['object']} points to {m['object_of']}, which is not opaque")
            self.objects.add(m["object"])
        else:
            self.functions.append((m["function"], m["result"].strip(), arguments(m["args"]), doc))
        return ""


def arguments(text):
    """[(C type without const, whether what it points to is const, name)]."""
    text = " ".join(text.split())
    if text in ("", "void"):
        return []
    out = []
    for part in text.split(","):
        m = re.fullmatch(r"\s*(const )?(\w+) (\**)(\w+)\s*", part)
        if not m:
            fail(f"argument that is not understood: {part}")
        # In "const void **v" what v points to is an address that may be written.
        out.append((m[2] + m[3], bool(m[1]) and m[3] == "*", m[4]))
    return out


VALUES = {  # a word in names -> (Fortran type, tarsiaDataType_t)
    "real32": ("real(c_float)", "TARSIA_R_32F"),
    "real64": ("real(c_double)", "TARSIA_R_64F"),
    "complex32": ("complex(c_float_complex)", "TARSIA_C_32F"),
    "complex64": ("complex(c_double_complex)", "TARSIA_C_64F"),
}
INDICES = {  # a word in names -> (Fortran type, tarsiaIndexType_t)
    "int32": ("integer(c_int32_t)", "TARSIA_INDEX_32I"),
    "int64": ("integer(c_int64_t)", "TARSIA_INDEX_64I"),
}


FAILED = "if (status /= TARSIA_STATUS_SUCCESS) return"


class Wrappers:
    """Procedures that call a C function with the addresses of Fortran's scalars, strings and arrays."""

    def __init__(self, header):
        self.header = header
        self.functions = {name: args for name, _, args, _ in header.functions}
        self.names = {}
        self.written = []
        for name, args in self.functions.items():
            names = [arg for _, _, arg in args]
            if "alpha" in names:
                self.scalars(name, args)
            for c_type, is_const, arg in args:
                if c_type == "char*" and is_const:
                    self.text(name, args, arg)
        for name, array, other in (("tarsiaMemcpyToDevice", "src", "dst"), ("tarsiaMemcpyToHost", "dst", "src")):
            self.copies(name, array, other)
        for const in ("", "Const"):
            intent = "in" if const else "inout"
            self.sparse(f"tarsiaCreate{const}Csr", intent, "rowOffsets", "colInd", "rows + 1")
            self.sparse(f"tarsiaCreate{const}Csc", intent, "colOffsets", "rowInd", "cols + 1")
            self.sparse(f"tarsiaCreate{const}Coo", intent, "rowInd", "colInd", None)
            self.dense(const, intent)
        self.updates("tarsiaPlan_updateValues")

    def of(self, name):
        return self.names.get(name, [])

    def write(self, function, word, args, declarations, body):
        """A procedure. What it expects of the C function's arguments is checked."""
        name = f"{function}_{word}"
        self.names.setdefault(function, []).append(name)
        declarations += ["integer(c_int) :: status"]
        lines = [f"    function {name}({', '.join(args)}) result(status)"]
        lines += [f"        {line}" for line in declarations] + [""]
        lines += [f"        {line}" for line in body]
        self.written.append(lines + [f"    end function {name}"])

    def expect(self, name, args):
        found = [arg for _, _, arg in self.functions[name]]
        if found != args:
            fail(f"{name} has the arguments {found}, expected {args}")

    def value(self, c_type, arg):
        """Declaration of an argument that is passed on as it is."""
        if c_type in SCALARS:
            return f"{SCALARS[c_type][0]}, value, intent(in) :: {arg}"
        if c_type in self.header.enum_names:
            return f"integer(c_int), value, intent(in) :: {arg}"
        if c_type in self.header.objects or c_type == "void*":
            return f"type(c_ptr), value, intent(in) :: {arg}"
        return fail(f"argument that is not understood: {c_type} {arg}")

    def scalars(self, name, args):
        for word, (kind, _) in VALUES.items():
            declarations, passed = [], []
            for c_type, is_const, arg in args:
                if arg in ("alpha", "beta"):
                    if c_type != "void*" or not is_const:
                        fail(f"{name}: {arg} is {c_type}")
                    declarations.append(f"{kind}, target, intent(in) :: {arg}")
                    passed.append(f"c_loc({arg})")
                else:
                    declarations.append(self.value(c_type, arg))
                    passed.append(arg)
            self.write(name, word, [arg for _, _, arg in args], declarations,
                       [f"status = {name}({', '.join(passed)})"])

    def text(self, name, args, path):
        self.expect(name, ["handle", path])
        self.write(name, "text", ["handle", path], [
            "type(c_ptr), value, intent(in) :: handle",
            f"character(len=*), intent(in) :: {path}",
            "character(kind=c_char), target :: characters(len_trim(" + path + ") + 1)",
            "integer :: i",
        ], [
            f"do i = 1, len_trim({path})",
            f"    characters(i) = {path}(i:i)",
            "end do",
            "characters(size(characters)) = c_null_char",
            f"status = {name}(handle, c_loc(characters))",
        ])

    def copies(self, name, array, other):
        self.expect(name, ["handle", "dst", "src", "bytes"])
        intent = "in" if array == "src" else "out"
        passed = {array: f"c_loc({array})", other: other}
        for word, (kind, _) in {**INDICES, **VALUES}.items():
            for rank in (1, 2):
                shape = ", ".join(":" * rank)
                self.write(name, f"{word}_{rank}d", ["handle", "dst", "src"], [
                    f"type(c_ptr), value, intent(in) :: handle, {other}",
                    f"{kind}, contiguous, target, intent({intent}) :: {array}({shape})",
                ], [
                    "status = TARSIA_STATUS_SUCCESS",
                    f"if (size({array}) == 0) return",
                    f"status = {name}(handle, {passed['dst']}, {passed['src']}, &",
                    f"    size({array}, kind=c_size_t)*(storage_size({array})/8))",
                ])

    def sparse(self, name, intent, first, second, offsets):
        types = ["offsetType", "indexType"] if offsets else ["indexType"]
        self.expect(name, ["A", "rows", "cols", "nnz", first, second, "values", *types, "base", "valueType"])
        arrays = (first, second, "values")
        count = "size(values, kind=c_int64_t)"
        sizes = [(first, offsets or "size(values)", offsets or count), (second, "size(values)", count)]
        for index_word, (index, index_type) in INDICES.items():
            for word, (kind, value_type) in VALUES.items():
                self.write(name, f"{index_word}_{word}", ["A", "rows", "cols", first, second, "values", "base"], [
                    "type(c_ptr), intent(out) :: A",
                    "integer(c_int64_t), value, intent(in) :: rows, cols",
                    f"{index}, target, intent({intent}) :: {first}(:), {second}(:)",
                    f"{kind}, target, intent({intent}) :: values(:)",
                    "integer(c_int), value, intent(in) :: base",
                ], [
                    "A = c_null_ptr",
                    *sum(([f'status = kept("{a}", is_contiguous({a}))', FAILED] for a in arrays), []),
                    *sum(([f'status = sized("{a}", size({a}, kind=c_int64_t), "{what}", {size})', FAILED]
                          for a, what, size in sizes), []),
                    f"status = {name}(A, rows, cols, {count}, &",
                    f"    {', '.join(f'c_loc({a})' for a in arrays)}, &",
                    f"    {', '.join([index_type] * len(types))}, base, {value_type})",
                ])

    def dense(self, const, intent):
        vector, matrix = f"tarsiaCreate{const}DnVec", f"tarsiaCreate{const}DnMat"
        self.expect(vector, ["x", "size", "values", "valueType"])
        self.expect(matrix, ["B", "rows", "cols", "ld", "values", "valueType", "order"])
        for word, (kind, value_type) in VALUES.items():
            self.write(vector, word, ["x", "values"], [
                "type(c_ptr), intent(out) :: x",
                f"{kind}, target, intent({intent}) :: values(:)",
            ], [
                "x = c_null_ptr",
                'status = kept("values", is_contiguous(values))',
                FAILED,
                f"status = {vector}(x, size(values, kind=c_int64_t), c_loc(values), {value_type})",
            ])
            self.write(matrix, word, ["B", "values", "rows"], [
                "type(c_ptr), intent(out) :: B",
                f"{kind}, target, intent({intent}) :: values(:, :)",
                "integer(c_int64_t), intent(in), optional :: rows",
                "integer(c_int64_t) :: ld, taken",
            ], [
                "B = c_null_ptr",
                'status = kept("values", is_contiguous(values))',
                FAILED,
                "ld = size(values, 1, kind=c_int64_t)",
                "taken = ld",
                "if (present(rows)) taken = rows",
                f"status = {matrix}(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &",
                f"    c_loc(values), {value_type}, TARSIA_ORDER_COL)",
            ])

    def updates(self, name):
        self.expect(name, ["handle", "plan", "newValues"])
        for word, (kind, _) in VALUES.items():
            self.write(name, word, ["handle", "plan", "newValues"], [
                "type(c_ptr), value, intent(in) :: handle, plan",
                f"{kind}, target, intent(in) :: newValues(:)",
            ], [
                'status = kept("newValues", is_contiguous(newValues))',
                FAILED,
                f"status = {name}(handle, plan, c_loc(newValues))",
            ])


class Module:
    """The lines of the Fortran module."""

    def __init__(self, header):
        self.header = header
        self.lines = []
        self.names = {}

    def name(self, name):
        """A module name: not too long, and not taken, whatever the case of its letters."""
        if len(name) > NAME:
            fail(f"{name} has more than {NAME} characters")
        other = self.names.setdefault(name.lower(), None)
        if other:
            fail(f"{name} and {other} are one name in Fortran")
        self.names[name.lower()] = name
        return name

    def scalar(self, c_type):
        """(Fortran type, import, bytes) of a value, or None."""
        if c_type in self.header.enum_names:
            return SCALARS["int"]
        if c_type in self.header.callback_names:
            return C_FUNPTR
        if c_type in self.header.objects:
            return C_PTR
        if c_type in self.header.struct_names:
            return (f"type({c_type})", c_type, 0)
        return SCALARS.get(c_type)

    def argument(self, c_type, is_const, name, optional, callback):
        """(declaration, import) of a dummy argument."""
        if not c_type.endswith("*"):
            known = self.scalar(c_type)
            if not known:
                fail(f"argument type that is not understood: {c_type} {name}")
            return f"{known[0]}, value, intent(in) :: {name}", known[1]
        target = c_type[:-1]
        if target == "void" or is_const or callback:
            return f"type(c_ptr), value, intent(in) :: {name}", "c_ptr"
        if target == "char":
            return f"character(kind=c_char), intent(out) :: {name}(*)", "c_char"
        # void ** is an answer that is an address.
        known = C_PTR if target == "void*" else self.scalar(target)
        if not known:
            fail(f"argument type that is not understood: {c_type} {name}")
        # A struct tells its size before it is filled.
        intent = "inout" if target in self.header.struct_names else "out"
        option = ", optional" if optional and intent == "out" else ""
        return f"{known[0]}, intent({intent}){option} :: {name}", known[1]

    def procedure(self, name, result, args, indent, bind, optional, callback):
        """An interface body."""
        lowered = [arg.lower() for _, _, arg in args] + [name.lower()]
        if len(set(lowered)) != len(lowered):
            fail(f"{name}: two of its names are one in Fortran")
        declared, imports = [], []
        for c_type, is_const, arg in args:
            line, kind = self.argument(c_type, is_const, arg, optional, callback)
            declared.append(line)
            imports.append(kind)
        if result == "void":
            word = "subroutine"
        else:
            word = "function"
            known = C_PTR if result.endswith("*") else self.scalar(result)
            if not known:
                fail(f"{name}: result type that is not understood: {result}")
            declared.append(f"{known[0]} :: {name}")
            imports.append(known[1])
        self.call(f"{indent}{word} {name}(", [arg for _, _, arg in args], f") {bind}")
        self.lines.append(f"{indent}    import :: {', '.join(sorted(set(imports)))}")
        self.lines += [f"{indent}    {line}" for line in declared]
        self.lines.append(f"{indent}end {word} {name}")

    def call(self, start, words, end):
        """start word, word, ... end, continued where it is longer than 100 columns."""
        indent = " " * (len(start) - len(start.lstrip()) + 8)
        line = start
        for i, word in enumerate(words):
            piece = word + (", " if i + 1 < len(words) else "")
            if len(line) + len(piece) > 98:
                self.lines.append(line.rstrip() + " &")
                line = indent
            line += piece
        if len(line) + len(end) > 100:
            self.lines.append(line.rstrip() + " &")
            line = indent
        self.lines.append(line + end)

    def struct(self, name, fields, doc):
        rows, offset, align = [], 0, 1
        for c_type, field, count, comment in fields:
            known = self.scalar(c_type)
            if not known or not known[2]:
                fail(f"{name}: type of {field} that is not understood: {c_type}")
            size = known[2]
            offset = -(-offset // size) * size + size * int(count or 1)
            align = max(align, size)
            rows.append((known[0], field, count, comment))
        size = -(-offset // align) * align
        self.lines += doc_lines(doc, "    ")
        sized = rows[0][1] == "structSize"
        if sized:
            self.lines.append("    ! structSize is set here, so that a variable can be passed as it is.")
        self.lines.append(f"    type, bind(C), public :: {self.name(name)}")
        for fortran, field, count, comment in rows:
            self.lines += doc_lines(comment, "        ")
            start = f" = {size}_c_size_t" if sized and field == "structSize" else ""
            self.lines.append(f"        {fortran} :: {field}" + (f"({count})" if count else "") + start)
        self.lines.append(f"    end type {name}")
        return size if sized else None

    def write(self):
        add = self.lines.append
        self.lines += HEAD.splitlines()
        add("module tarsia")
        add("    use, intrinsic :: iso_c_binding")
        add("    use, intrinsic :: iso_fortran_env, only: error_unit")
        self.lines += ["    implicit none", "    private", ""]
        for helper in ("tarsiaText", "tarsiaCheck", "tarsiaLastMessage", "text_of_pointer", "text_of_field", "c_strlen",
                       "library_message", "refused", "refusal", "beside", "kept", "sized"):
            self.name(helper)
        self.name("tarsia")
        add("    ! Version of the header that this module was made from; tarsiaGetVersion tells the library's.")
        for name, value in self.header.versions:
            if not re.fullmatch(r"[\d\s()*+]+", value):
                fail(f"{name} is not a number: {value}")
            number = eval(value)  # digits, spaces, ( ) * + only
            add(f"    integer(c_int), parameter, public :: {self.name(name)} = {number}")
        for name, members, doc in self.header.enums:
            add("")
            self.lines += doc_lines([f"{name}: {doc[0]}"] + doc[1:], "    ")
            add("")
            for member, value, comment in members:
                self.lines += doc_lines(comment, "    ")
                add(f"    integer(c_int), parameter, public :: {self.name(member)} = {value}")
        for name, fields, doc in self.header.structs:
            add("")
            size = self.struct(name, fields, doc)
            if size:
                probe = self.name(f"probe_{name}")
                check = self.name(f"check_{name}")
                add("")
                add("    ! Does not compile (division by 0) where structSize is not the size of the type.")
                add(f"    type({name}) :: {probe}")
                add(f"    integer, parameter :: {check} = 1/merge(1, 0, storage_size({probe}) == 8*{size})")
        add("")
        add("    ! Callbacks.")
        add("    abstract interface")
        for i, (name, result, args, doc) in enumerate(self.header.callbacks):
            if i:
                add("")
            self.lines += doc_lines(doc, "        ")
            self.procedure(self.name(name), result, args, "        ", "bind(C)", False, True)
        add("    end interface")
        for name, _, _, _ in self.header.callbacks:
            add(f"    public :: {name}")
        add("")
        docs = {name: " ".join(doc) for name, _, _, doc in self.header.functions}
        wrappers = Wrappers(self.header)
        for i, (name, result, args, doc) in enumerate(self.header.functions):
            if i:
                add("")
            # A generic name may be that of one of its procedures: the C function, which takes addresses.
            generic = wrappers.of(name)
            add(f"    interface {name}" if generic else "    interface")
            self.lines += doc_lines(doc, "        ")
            # "As tarsiaCsrGet, ...": what the other function's comment says holds here too.
            same = re.match(r"As (tarsia\w+)", docs[name])
            optional = "each may be NULL" in docs[name] + (docs.get(same[1], "") if same else "")
            self.procedure(self.name(name), result, args, "        ", f'bind(C, name="{name}")', optional, False)
            for wrapper in generic:
                add(f"        module procedure {self.name(wrapper)}")
            add(f"    end interface {name}" if generic else "    end interface")
        for name, _, _, _ in self.header.functions:
            add(f"    public :: {name}")
        add("")
        self.lines += HELPERS.splitlines() + [""] + BODY.splitlines()
        for function in wrappers.written:
            self.lines += ["", *function]
        self.lines += ["", "end module tarsia"]
        for line in self.lines:
            if len(line) > LINE:
                fail(f"line with more than {LINE} columns: {line}")
        return "\n".join(self.lines) + "\n"


def main():
    args = sys.argv[1:]
    check = "--check" in args
    paths = [Path(arg) for arg in args if arg != "--check"]
    if len(paths) > 2 or any(str(path).startswith("-") for path in paths):
        sys.exit(__doc__)
    source = paths[0] if paths else ROOT / "include/tarsia.h"
    target = paths[1] if len(paths) > 1 else ROOT / "include/tarsia.f90"
    text = Module(Header(source.read_text(encoding="utf-8"))).write()
    if check:
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            fail(f"{target} is not what {source} gives; run scripts/fortran-module.py")
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
