// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/element_types.hpp"

#include "mpi/mpi_library.hpp"

namespace perdure {

#ifdef OPEN_MPI

Element element_of(MPI_Datatype) {
  return Element::other;
}

#else
namespace {

enum class Kind : std::uint8_t { integer, cardinal, real, complex };

struct Known {
  MPI_Datatype type;
  Kind kind;
};

// Their sizes are asked for, as options of compilers change those of Fortran's. Not here: pairs,
// characters, Fortran's LOGICAL, and reals of 16 bytes, which are of two kinds.
const Known known[] = {
    {MPI_INT, Kind::integer},
    {MPI_LONG, Kind::integer},
    {MPI_DOUBLE, Kind::real},
    {MPI_FLOAT, Kind::real},
    {MPI_INT64_T, Kind::integer},
    {MPI_INT32_T, Kind::integer},
    {MPI_UINT64_T, Kind::cardinal},
    {MPI_UINT32_T, Kind::cardinal},
    {MPI_UNSIGNED, Kind::cardinal},
    {MPI_UNSIGNED_LONG, Kind::cardinal},
    {MPI_LONG_LONG_INT, Kind::integer},
    {MPI_UNSIGNED_LONG_LONG, Kind::cardinal},
    {MPI_DOUBLE_PRECISION, Kind::real},
    {MPI_REAL, Kind::real},
    {MPI_INTEGER, Kind::integer},
    {MPI_SHORT, Kind::integer},
    {MPI_UNSIGNED_SHORT, Kind::cardinal},
    {MPI_SIGNED_CHAR, Kind::integer},
    {MPI_UNSIGNED_CHAR, Kind::cardinal},
    {MPI_INT8_T, Kind::integer},
    {MPI_INT16_T, Kind::integer},
    {MPI_UINT8_T, Kind::cardinal},
    {MPI_UINT16_T, Kind::cardinal},
    {MPI_AINT, Kind::integer},
    {MPI_OFFSET, Kind::integer},
    {MPI_COUNT, Kind::integer},
    {MPI_INTEGER1, Kind::integer},
    {MPI_INTEGER2, Kind::integer},
    {MPI_INTEGER4, Kind::integer},
    {MPI_INTEGER8, Kind::integer},
    {MPI_REAL4, Kind::real},
    {MPI_REAL8, Kind::real},
    {MPI_COMPLEX, Kind::complex},
    {MPI_DOUBLE_COMPLEX, Kind::complex},
    {MPI_COMPLEX8, Kind::complex},
    {MPI_COMPLEX16, Kind::complex},
    {MPI_C_FLOAT_COMPLEX, Kind::complex},
    {MPI_C_DOUBLE_COMPLEX, Kind::complex},
};

Element element_of(Kind kind, int bytes) {
  switch (bytes) {
    case 1:
      return kind == Kind::integer    ? Element::int8
             : kind == Kind::cardinal ? Element::uint8
                                      : Element::other;
    case 2:
      return kind == Kind::integer    ? Element::int16
             : kind == Kind::cardinal ? Element::uint16
                                      : Element::other;
    case 4:
      return kind == Kind::integer    ? Element::int32
             : kind == Kind::cardinal ? Element::uint32
             : kind == Kind::real     ? Element::float32
                                      : Element::other;
    case 8:
      return kind == Kind::integer    ? Element::int64
             : kind == Kind::cardinal ? Element::uint64
             : kind == Kind::real     ? Element::float64
                                      : Element::complex32;
    case 16:
      return kind == Kind::complex ? Element::complex64 : Element::other;
    default:
      return Element::other;
  }
}

}  // namespace

Element element_of(MPI_Datatype type) {
  if (type == type_null()) return Element::other;
  if (type == MPI_BYTE) return Element::byte;
  if (type == MPI_C_BOOL || type == MPI_CXX_BOOL) return Element::boolean;
  if (type == MPI_LONG_DOUBLE) return Element::long_double;
  for (const Known& each : known) {
    if (each.type != type) continue;
    int bytes = 0;
    PMPI_Type_size(type, &bytes);
    return element_of(each.kind, bytes);
  }
  return Element::other;
}

#endif

}  // namespace perdure
