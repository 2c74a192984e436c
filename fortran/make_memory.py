#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what Fortran needs once for each kind and rank of arrays, as it has no templates.

    fortran/make_memory.py            says whether the files are as it would write them
    fortran/make_memory.py --write    writes perdure_memory.inc, and the list in perdure.f90

A kind is a row of KINDS.
"""

import pathlib
import sys
import textwrap

FOLDER = pathlib.Path(__file__).resolve().parent
# Name, the pointer's type, and the perdure_type whose elements it may show.
KINDS = (
    ("byte", "integer(c_int8_t)", ("perdure_byte", "perdure_int8")),
    ("int16", "integer(c_int16_t)", ("perdure_int16",)),
    ("int32", "integer(c_int32_t)", ("perdure_int32",)),
    ("int64", "integer(c_int64_t)", ("perdure_int64",)),
    ("float", "real(c_float)", ("perdure_float",)),
    ("double", "real(c_double)", ("perdure_double",)),
    ("complex_float", "complex(c_float_complex)", ("perdure_complex_float",)),
    ("complex", "complex(c_double_complex)", ("perdure_complex_double",)),
    ("logical", "logical", ("perdure_logical",)),
    ("bool", "logical(c_bool)", ("perdure_bool",)),
    ("character", "character(kind=c_char)", ("perdure_character",)),
)
RANKS = range(1, 8)
LIST_BEGIN = "  interface perdure_memory\n"
LIST_END = "  end interface\n"

HEAD = """\
! SPDX-License-Identifier: BSD-3-Clause
!
! The specific functions of perdure_memory (perdure.f90), one for each kind and rank, as not every
! compiler has pointers of assumed rank. Written by make_memory.py.
"""
FUNCTION = """
  integer(c_int) function {name}(array, p, which)
    type(perdure_array), intent(in) :: array
    {pointer}, pointer, contiguous, intent(out) :: p({colons})
    integer(c_int), intent(in), optional :: which
    type(c_ptr) :: address
    nullify (p)
    {name} = find_memory(array, [{types}], {rank}, which, address)
    if ({name} == perdure_ok) call c_f_pointer(address, p, extents_of(array))
  end function
"""


def name_of(kind, rank):
    return f"memory_{kind}_{rank}"


def functions():
    return HEAD + "".join(
        FUNCTION.format(
            name=name_of(kind, rank),
            pointer=pointer,
            colons=", ".join(":" * rank),
            types=", ".join(types),
            rank=rank,
        )
        for kind, pointer, types in KINDS
        for rank in RANKS
    )


def with_list(module):
    """perdure.f90 with the generic interface's functions."""
    before, rest = module.split(LIST_BEGIN)
    _, after = rest.split(LIST_END, 1)
    names = ", ".join(name_of(kind, rank) for kind, _, _ in KINDS for rank in RANKS)
    lines = textwrap.wrap(
        "module procedure " + names, 98, initial_indent="    ", subsequent_indent="      "
    )
    return before + LIST_BEGIN + " &\n".join(lines) + "\n" + LIST_END + after


def main():
    module = FOLDER / "perdure.f90"
    wanted = {
        FOLDER / "perdure_memory.inc": functions(),
        module: with_list(module.read_text()),
    }
    other = [path for path, text in wanted.items() if path.read_text() != text]
    if sys.argv[1:] == ["--write"]:
        for path in other:
            path.write_text(wanted[path])
    elif sys.argv[1:]:
        sys.exit(__doc__)
    elif other:
        names = ", ".join(path.name for path in other)
        sys.exit(f"{names}: not as fortran/make_memory.py --write makes it")


if __name__ == "__main__":
    main()
