// SPDX-License-Identifier: BSD-3-Clause
#include "random_type.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace mpiio_test {
namespace {

constexpr MPI_Aint extent_max = 1 << 20;
constexpr MPI_Aint file_extent_max = 1 << 14;

struct Named {
  MPI_Datatype type;
  const char* text;
};

// No long doubles: MPICH moves 10 of their 16 bytes.
DrawnType draw_named(Draw& draw) {
  const std::array named = {
      Named{MPI_BYTE, "byte"},           Named{MPI_CHAR, "char"},
      Named{MPI_SHORT, "short"},         Named{MPI_INT, "int"},
      Named{MPI_DOUBLE, "double"},       Named{MPI_DOUBLE_INT, "double_int"},
      Named{MPI_FLOAT_INT, "float_int"}, Named{MPI_SHORT_INT, "short_int"},
      Named{MPI_LONG_INT, "long_int"},   Named{MPI_2INT, "2int"},
  };
  const int drawn = draw.between(0, static_cast<int>(named.size()) + 2);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (drawn < static_cast<int>(named.size())) {
    const Named& one = named[static_cast<std::size_t>(drawn)];
    return {one.type, one.text};
  }
  if (drawn == static_cast<int>(named.size())) {
    MPI_Type_create_f90_real(6, MPI_UNDEFINED, &type);
    return {type, "f90_real"};
  }
  if (drawn == static_cast<int>(named.size()) + 1) {
    MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &type);
    return {type, "f90_complex"};
  }
  MPI_Type_create_f90_integer(5, &type);
  return {type, "f90_integer"};
}

void free_if_derived(MPI_Datatype& type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
#if MPI_VERSION >= 4
  MPI_Count counts[4];
  MPI_Type_get_envelope_c(type, &counts[0], &counts[1], &counts[2], &counts[3], &combiner);
#else
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
#endif
  (void)integers, (void)addresses, (void)types;
  if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
      combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER) {
    MPI_Type_free(&type);
  }
}

std::string list(const std::vector<int>& numbers) {
  std::string text = "[";
  for (const int number : numbers) text += (text.size() > 1 ? "," : "") + std::to_string(number);
  return text + "]";
}

std::vector<int> draw_list(Draw& draw, int count, int first, int last) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(draw.between(first, last));
  return numbers;
}

template <typename Number>
std::vector<Number> as(const std::vector<int>& numbers) {
  return {numbers.begin(), numbers.end()};
}

MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint lower_bound = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &lower_bound, &extent);
  return extent;
}

#if MPI_VERSION >= 4
using Wide = MPI_Count;
bool draw_wide(Draw& draw) {
  return draw.with_large_counts && draw.once_in(3);
}
#define PERDURE_WIDE_OR(wide, call, ...) ((wide) ? call##_c(__VA_ARGS__) : call(__VA_ARGS__))
#else
bool draw_wide(Draw&) {
  return false;
}
#define PERDURE_WIDE_OR(wide, call, ...) ((void)(wide), call(__VA_ARGS__))
#endif

// --- constructors that take one type -------------------------------------------------------------

DrawnType make_vector(Draw& draw, const DrawnType& of) {
  const int count = draw.between(0, 4);
  const int block = draw.between(0, 3);
  // Open MPI 4.1 takes a stride of -1 for 1.
  const int stride = draw.once_in(2) ? draw.between(-5, -2) : draw.between(0, 6);
  const bool in_bytes = draw.once_in(2);
  const bool wide = draw_wide(draw);
  DrawnType made;
  if (in_bytes) {
    PERDURE_WIDE_OR(wide, MPI_Type_create_hvector, count, block, stride * 3, of.type, &made.type);
  } else {
    PERDURE_WIDE_OR(wide, MPI_Type_vector, count, block, stride, of.type, &made.type);
  }
  made.text = std::string(in_bytes ? "h" : "") + "vector" + (wide ? "_c(" : "(") +
              list({count, block, in_bytes ? stride * 3 : stride}) + ", " + of.text + ")";
  return made;
}

DrawnType make_indexed(Draw& draw, const DrawnType& of) {
  const int count = draw.between(0, 4);
  const std::vector<int> lengths = draw_list(draw, count, 0, 3);
  const std::vector<int> places = draw_list(draw, count, -8, 12);
  const bool in_bytes = draw.once_in(2);
  const bool wide = draw_wide(draw);
  DrawnType made;
  made.text = std::string(in_bytes ? "h" : "") + "indexed" + (wide ? "_c(" : "(") + list(lengths) +
              list(places) + ", " + of.text + ")";
#if MPI_VERSION >= 4
  if (wide) {
    const auto wide_lengths = as<Wide>(lengths);
    const auto wide_places = as<Wide>(places);
    (in_bytes ? MPI_Type_create_hindexed_c : MPI_Type_indexed_c)(
        count, wide_lengths.data(), wide_places.data(), of.type, &made.type);
    return made;
  }
#endif
  if (in_bytes) {
    const auto byte_places = as<MPI_Aint>(places);
    MPI_Type_create_hindexed(count, lengths.data(), byte_places.data(), of.type, &made.type);
  } else {
    MPI_Type_indexed(count, lengths.data(), places.data(), of.type, &made.type);
  }
  return made;
}

DrawnType make_indexed_block(Draw& draw, const DrawnType& of) {
  const int count = draw.between(0, 4);
  const int block = draw.between(0, 3);
  const std::vector<int> places = draw_list(draw, count, -8, 12);
  const bool in_bytes = draw.once_in(2);
  const bool wide = draw_wide(draw);
  DrawnType made;
  made.text = std::string(in_bytes ? "h" : "") + "indexed_block" + (wide ? "_c(" : "(") +
              std::to_string(block) + list(places) + ", " + of.text + ")";
#if MPI_VERSION >= 4
  if (wide) {
    const auto wide_places = as<Wide>(places);
    (in_bytes ? MPI_Type_create_hindexed_block_c : MPI_Type_create_indexed_block_c)(
        count, block, wide_places.data(), of.type, &made.type);
    return made;
  }
#endif
  if (in_bytes) {
    const auto byte_places = as<MPI_Aint>(places);
    MPI_Type_create_hindexed_block(count, block, byte_places.data(), of.type, &made.type);
  } else {
    MPI_Type_create_indexed_block(count, block, places.data(), of.type, &made.type);
  }
  return made;
}

DrawnType make_dup(Draw&, const DrawnType& of) {
  DrawnType made;
  MPI_Type_dup(of.type, &made.type);
  made.text = "dup(" + of.text + ")";
  return made;
}

DrawnType make_contiguous(Draw& draw, const DrawnType& of) {
  const int count = draw.between(0, 4);
  const bool wide = draw_wide(draw);
  DrawnType made;
  PERDURE_WIDE_OR(wide, MPI_Type_contiguous, count, of.type, &made.type);
  made.text =
      (wide ? "contiguous_c(" : "contiguous(") + std::to_string(count) + ", " + of.text + ")";
  return made;
}

DrawnType make_resized(Draw& draw, const DrawnType& of) {
  const int lower_bound = draw.between(-9, 9);
  const int extent = static_cast<int>(extent_of(of.type)) + draw.between(-3, 20);
  const bool wide = draw_wide(draw);
  DrawnType made;
  PERDURE_WIDE_OR(wide, MPI_Type_create_resized, of.type, lower_bound, std::max(extent, 0),
                  &made.type);
  made.text = (wide ? "resized_c(" : "resized(") + list({lower_bound, std::max(extent, 0)}) + ", " +
              of.text + ")";
  return made;
}

DrawnType make_subarray(Draw& draw, const DrawnType& of) {
  const int dimensions = draw.between(1, 3);
  const std::vector<int> sizes = draw_list(draw, dimensions, 1, 5);
  std::vector<int> parts;
  std::vector<int> begins;
  for (const int size : sizes) {
    parts.push_back(draw.between(1, size));
    begins.push_back(draw.between(0, size - parts.back()));
  }
  const int order = draw.once_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  const bool wide = draw_wide(draw);
  DrawnType made;
  made.text = std::string(wide ? "subarray_c(" : "subarray(") +
              (order == MPI_ORDER_C ? "C" : "Fortran") + list(sizes) + list(parts) + list(begins) +
              ", " + of.text + ")";
#if MPI_VERSION >= 4
  if (wide) {
    MPI_Type_create_subarray_c(dimensions, as<Wide>(sizes).data(), as<Wide>(parts).data(),
                               as<Wide>(begins).data(), order, of.type, &made.type);
    return made;
  }
#endif
  MPI_Type_create_subarray(dimensions, sizes.data(), parts.data(), begins.data(), order, of.type,
                           &made.type);
  return made;
}

struct DarrayArguments {
  int ranks = 1;
  int rank = 0;
  std::vector<int> sizes;
  std::vector<int> distributions;
  std::vector<int> arguments;
  std::vector<int> places;
};

DarrayArguments draw_darray(Draw& draw) {
  DarrayArguments drawn;
  const int dimensions = draw.between(1, 3);
  for (int i = 0; i < dimensions; ++i) {
    const int size = draw.between(2, 6);
    const int kind = draw.between(0, 2);
    const int places = kind == 0 ? 1 : draw.between(1, 3);
    int argument = MPI_DISTRIBUTE_DFLT_DARG;
    if (kind == 1 && draw.once_in(2)) argument = (size + places - 1) / places + draw.between(0, 1);
    if (kind == 2 && draw.once_in(2)) argument = draw.between(1, 3);
    const std::array kinds = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    drawn.sizes.push_back(size);
    drawn.distributions.push_back(kinds[static_cast<std::size_t>(kind)]);
    drawn.arguments.push_back(argument);
    drawn.places.push_back(places);
    drawn.ranks *= places;
  }
  drawn.rank = draw.between(0, drawn.ranks - 1);
  return drawn;
}

DrawnType make_darray(Draw& draw, const DrawnType& of) {
  const DarrayArguments drawn = draw_darray(draw);
  const int dimensions = static_cast<int>(drawn.sizes.size());
  const int order = draw.once_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  const bool wide = draw_wide(draw);
  DrawnType made;
  made.text = std::string(wide ? "darray_c(" : "darray(") +
              (order == MPI_ORDER_C ? "C" : "Fortran") + list({drawn.ranks, drawn.rank}) +
              list(drawn.sizes) + list(drawn.distributions) + list(drawn.arguments) +
              list(drawn.places) + ", " + of.text + ")";
#if MPI_VERSION >= 4
  if (wide) {
    MPI_Type_create_darray_c(drawn.ranks, drawn.rank, dimensions, as<Wide>(drawn.sizes).data(),
                             drawn.distributions.data(), drawn.arguments.data(),
                             drawn.places.data(), order, of.type, &made.type);
    return made;
  }
#endif
  MPI_Type_create_darray(drawn.ranks, drawn.rank, dimensions, drawn.sizes.data(),
                         drawn.distributions.data(), drawn.arguments.data(), drawn.places.data(),
                         order, of.type, &made.type);
  return made;
}

// --- the whole -----------------------------------------------------------------------------------

DrawnType make_struct(Draw& draw, const std::vector<DrawnType>& fields) {
  const int count = static_cast<int>(fields.size());
  const std::vector<int> lengths = draw_list(draw, count, 0, 3);
  const std::vector<int> places = draw_list(draw, count, -20, 60);
  const bool wide = draw_wide(draw);
  std::vector<MPI_Datatype> types;
  DrawnType made;
  made.text = (wide ? "struct_c(" : "struct(") + list(lengths) + list(places);
  for (const DrawnType& field : fields) {
    types.push_back(field.type);
    made.text += ", " + field.text;
  }
  made.text += ")";
#if MPI_VERSION >= 4
  if (wide) {
    MPI_Type_create_struct_c(count, as<Wide>(lengths).data(), as<Wide>(places).data(), types.data(),
                             &made.type);
    return made;
  }
#endif
  MPI_Type_create_struct(count, lengths.data(), as<MPI_Aint>(places).data(), types.data(),
                         &made.type);
  return made;
}

DrawnType draw_uncommitted(Draw& draw, int depth);

// A type that others are made of carries something. Of those that don't, MPICH 4.0 (yaksa) may
// divide by zero when it packs, and Open MPI 4.1 refuses a darray and misplaces fields of structs.
DrawnType draw_part(Draw& draw, int depth) {
  while (true) {
    DrawnType made = draw_uncommitted(draw, depth);
    int size = 0;
    MPI_Type_size(made.type, &size);
    if (size > 0) return made;
    free_if_derived(made.type);
  }
}

DrawnType draw_uncommitted(Draw& draw, int depth) {
  if (depth == 0 || draw.once_in(12)) return draw_named(draw);
  DrawnType made;
  if (draw.once_in(6)) {
    std::vector<DrawnType> fields;
    for (int count = draw.between(1, 3); count > 0; --count) {
      fields.push_back(draw_part(draw, depth - 1));
    }
    made = make_struct(draw, fields);
    for (DrawnType& field : fields) free_if_derived(field.type);
    return made;
  }
  DrawnType of = draw_part(draw, depth - 1);
  constexpr std::array makers = {make_vector,  make_indexed,  make_indexed_block, make_contiguous,
                                 make_resized, make_subarray, make_darray,        make_dup};
  const int last = static_cast<int>(makers.size()) - 1;
  made = makers[static_cast<std::size_t>(draw.between(0, last))](draw, of);
  free_if_derived(of.type);
  return made;
}

// --- filetypes -----------------------------------------------------------------------------------

// Lengths of at least 1, and places that leave room for them; of `unit` each.
DrawnType make_file_indexed(Draw& draw, const DrawnType& of, MPI_Aint) {
  std::vector<int> lengths;
  std::vector<int> places;
  int end = 0;
  for (int count = draw.between(1, 4); count > 0; --count) {
    places.push_back(end + draw.between(0, 3));
    lengths.push_back(draw.between(1, 3));
    end = places.back() + lengths.back();
  }
  const int count = static_cast<int>(lengths.size());
  DrawnType made;
  MPI_Type_indexed(count, lengths.data(), places.data(), of.type, &made.type);
  made.text = "indexed(" + list(lengths) + list(places) + ", " + of.text + ")";
  return made;
}

DrawnType make_file_vector(Draw& draw, const DrawnType& of, MPI_Aint) {
  const int count = draw.between(1, 4);
  const int block = draw.between(1, 3);
  const int stride = block + draw.between(0, 4);
  DrawnType made;
  if (draw.once_in(2)) {
    MPI_Type_vector(count, block, stride, of.type, &made.type);
  } else {
    MPI_Type_create_hvector(count, block, stride * extent_of(of.type), of.type, &made.type);
  }
  made.text = "vector(" + list({count, block, stride}) + ", " + of.text + ")";
  return made;
}

DrawnType make_file_contiguous(Draw& draw, const DrawnType& of, MPI_Aint) {
  DrawnType made;
  const int count = draw.between(1, 4);
  MPI_Type_contiguous(count, of.type, &made.type);
  made.text = "contiguous(" + std::to_string(count) + ", " + of.text + ")";
  return made;
}

DrawnType make_file_resized(Draw& draw, const DrawnType& of, MPI_Aint etype_extent) {
  const MPI_Aint extent = extent_of(of.type) + draw.between(0, 5) * etype_extent;
  DrawnType made;
  MPI_Type_create_resized(of.type, 0, extent, &made.type);
  made.text = "resized(" + std::to_string(extent) + ", " + of.text + ")";
  return made;
}

DrawnType make_file_struct(Draw& draw, const DrawnType& of, MPI_Aint etype_extent) {
  const std::array lengths = {draw.between(1, 2), draw.between(1, 2)};
  const MPI_Aint first = draw.between(0, 3) * etype_extent;
  const MPI_Aint second =
      first + lengths[0] * extent_of(of.type) + draw.between(0, 3) * etype_extent;
  const std::array places = {first, second};
  const std::array types = {of.type, of.type};
  DrawnType fields;
  MPI_Type_create_struct(2, lengths.data(), places.data(), types.data(), &fields.type);
  const MPI_Aint extent = second + (lengths[1] + draw.between(0, 1)) * extent_of(of.type);
  DrawnType made;
  MPI_Type_create_resized(fields.type, 0, extent, &made.type);
  MPI_Type_free(&fields.type);
  made.text = "resized(" + std::to_string(extent) + ", struct(" + list({lengths[0], lengths[1]}) +
              list({static_cast<int>(first), static_cast<int>(second)}) + ", " + of.text + "))";
  return made;
}

DrawnType make_file_subarray(Draw& draw, const DrawnType& of, MPI_Aint) {
  return make_subarray(draw, of);
}

DrawnType make_file_darray(Draw& draw, const DrawnType& of, MPI_Aint) {
  return make_darray(draw, of);
}

DrawnType draw_file_uncommitted(Draw& draw, const DrawnType& etype, int depth, bool outermost) {
  if (depth == 0) {
    DrawnType copy{MPI_DATATYPE_NULL, etype.text};
    MPI_Type_dup(etype.type, &copy.type);
    return copy;
  }
  constexpr std::array makers = {make_file_vector,   make_file_indexed, make_file_contiguous,
                                 make_file_subarray, make_file_darray,  make_file_resized,
                                 make_file_struct};
  // ROMIO of MPICH 4.0 misplaces bytes where a type with bounds of its own is part of another.
#ifdef MPICH_VERSION
  constexpr bool bounds_inside = false;
#else
  constexpr bool bounds_inside = true;
#endif
  const int last = outermost || bounds_inside ? 6 : 2;
  DrawnType of = draw_file_uncommitted(draw, etype, depth - 1, false);
  DrawnType made =
      makers[static_cast<std::size_t>(draw.between(0, last))](draw, of, extent_of(etype.type));
  int size = 0;
  MPI_Type_size(made.type, &size);
  if (size == 0) {  // a darray of which this place has nothing
    MPI_Type_free(&made.type);
    return of;
  }
  MPI_Type_free(&of.type);
  return made;
}

}  // namespace

DrawnType draw_etype(Draw& draw) {
  const std::array simple = {Named{MPI_BYTE, "byte"}, Named{MPI_SHORT, "short"},
                             Named{MPI_INT, "int"}, Named{MPI_DOUBLE, "double"}};
  const int drawn = draw.between(0, 4);
  DrawnType made;
  if (drawn < 4) {
    const Named& one = simple[static_cast<std::size_t>(drawn)];
    MPI_Type_dup(one.type, &made.type);
    made.text = one.text;
  } else {
    MPI_Type_contiguous(3, MPI_BYTE, &made.type);
    made.text = "contiguous(3, byte)";
  }
  MPI_Type_commit(&made.type);
  return made;
}

DrawnType draw_filetype(Draw& draw, const DrawnType& etype, int depth) {
  while (true) {
    DrawnType made = draw_file_uncommitted(draw, etype, depth, true);
    MPI_Type_commit(&made.type);
    if (extent_of(made.type) <= file_extent_max) return made;
    MPI_Type_free(&made.type);
  }
}

DrawnType draw_type(Draw& draw, int depth) {
  while (true) {
    DrawnType made = draw_uncommitted(draw, depth);
    MPI_Aint lower_bound = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_true_extent(made.type, &lower_bound, &extent);
    const MPI_Aint step = extent_of(made.type);
    if (extent <= extent_max && step >= 0 && step <= extent_max) {
      if (made.made_by("(")) MPI_Type_commit(&made.type);
      return made;
    }
    free_if_derived(made.type);
  }
}

}  // namespace mpiio_test
