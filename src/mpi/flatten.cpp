// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/flatten.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "mpi/element_types.hpp"
#include "mpi/grid.hpp"
#include "mpi/mpi_library.hpp"
#include "mpi/run_list.hpp"

namespace perdure {
namespace {

// MPI 3 removed their names, not what an old Fortran program may have made with them.
#if defined(OPEN_MPI) && !OMPI_ENABLE_MPI1_COMPAT
constexpr int hvector_integer = OMPI_WAS_MPI_COMBINER_HVECTOR_INTEGER;
constexpr int hindexed_integer = OMPI_WAS_MPI_COMBINER_HINDEXED_INTEGER;
constexpr int struct_integer = OMPI_WAS_MPI_COMBINER_STRUCT_INTEGER;
#elif defined(MPI_ABI_VERSION)  // has no such datatypes
constexpr int hvector_integer = -1;
constexpr int hindexed_integer = -2;
constexpr int struct_integer = -3;
#else
constexpr int hvector_integer = MPI_COMBINER_HVECTOR_INTEGER;
constexpr int hindexed_integer = MPI_COMBINER_HINDEXED_INTEGER;
constexpr int struct_integer = MPI_COMBINER_STRUCT_INTEGER;
#endif

bool is_predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

#if MPI_VERSION >= 4
// The MPI of the header has these, that of the process may not.
struct LargeQueries {
  decltype(&PMPI_Type_get_envelope_c) envelope = nullptr;
  decltype(&PMPI_Type_get_contents_c) contents = nullptr;
};

const LargeQueries* large_queries() {
  static const LargeQueries found = {
      reinterpret_cast<decltype(&PMPI_Type_get_envelope_c)>(mpi_symbol("PMPI_Type_get_envelope_c")),
      reinterpret_cast<decltype(&PMPI_Type_get_contents_c)>(
          mpi_symbol("PMPI_Type_get_contents_c"))};
  return found.envelope != nullptr && found.contents != nullptr ? &found : nullptr;
}
#endif

// How many numbers and types the constructor was given, and which one it was.
struct Envelope {
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count large_counts = 0;
  MPI_Count types = 0;
  int combiner = MPI_COMBINER_NAMED;
};

Envelope envelope_of(MPI_Datatype type) {
  Envelope found;
#if MPI_VERSION >= 4
  if (const LargeQueries* large = large_queries()) {
    large->envelope(type, &found.integers, &found.addresses, &found.large_counts, &found.types,
                    &found.combiner);
    return found;
  }
#endif
  int integers = 0;
  int addresses = 0;
  int types = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &found.combiner);
  found.integers = integers;
  found.addresses = addresses;
  found.types = types;
  return found;
}

// What a constructor was given. `numbers` are its integers, then its addresses or, if it was a
// large-count one, its large counts: for all combiners but subarray and darray this is the order of
// the constructor's arguments in each of their forms. Owns the types.
class Contents {
 public:
  Contents() = default;
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {  // MPI gave references to derived types, which count
    for (MPI_Datatype& type : types) {
      if (!is_predefined(envelope_of(type).combiner)) PMPI_Type_free(&type);
    }
  }

  int combiner = MPI_COMBINER_NAMED;
  bool large = false;  // made by a large-count constructor
  std::vector<std::int64_t> numbers;
  std::vector<MPI_Datatype> types;
};

void read_contents(MPI_Datatype type, Contents& contents) {
  const Envelope envelope = envelope_of(type);
  contents.combiner = envelope.combiner;
  if (is_predefined(envelope.combiner)) return;
  contents.large = envelope.large_counts > 0;
  std::vector<int> integers(static_cast<std::size_t>(envelope.integers));
  std::vector<MPI_Aint> addresses(static_cast<std::size_t>(envelope.addresses));
  std::vector<MPI_Count> large(static_cast<std::size_t>(envelope.large_counts));
  contents.types.resize(static_cast<std::size_t>(envelope.types), type_null());
  if (!contents.large) {
    PMPI_Type_get_contents(type, static_cast<int>(envelope.integers),
                           static_cast<int>(envelope.addresses), static_cast<int>(envelope.types),
                           integers.data(), addresses.data(), contents.types.data());
  }
#if MPI_VERSION >= 4
  if (contents.large) {
    large_queries()->contents(type, envelope.integers, envelope.addresses, envelope.large_counts,
                              envelope.types, integers.data(), addresses.data(), large.data(),
                              contents.types.data());
  }
#endif
  std::vector<std::int64_t>& numbers = contents.numbers;
  numbers.assign(integers.begin(), integers.end());
  numbers.insert(numbers.end(), addresses.begin(), addresses.end());
  numbers.insert(numbers.end(), large.begin(), large.end());
}

// --- one constructor each ------------------------------------------------------------------------

// A view of a part of Contents::numbers.
using Numbers = const std::int64_t*;
using Maps = std::vector<const DatatypeMap*>;

// count, block length, stride; the stride is in `unit` bytes.
void add_vector(RunList& runs, const DatatypeMap& item, Numbers numbers, std::int64_t unit) {
  for (std::int64_t i = 0; i < numbers[0] && !runs.full(); ++i) {
    if (item.runs.empty()) return;
    runs.add_items(item, i * numbers[2] * unit, numbers[1]);
  }
}

// count, block lengths, displacements in `unit` bytes.
void add_indexed(RunList& runs, const DatatypeMap& item, Numbers numbers, std::int64_t unit) {
  const std::int64_t count = numbers[0];
  for (std::int64_t i = 0; i < count && !runs.full(); ++i) {
    runs.add_items(item, numbers[1 + count + i] * unit, numbers[1 + i]);
  }
}

// count, block length, displacements in `unit` bytes.
void add_indexed_block(RunList& runs, const DatatypeMap& item, Numbers numbers, std::int64_t unit) {
  for (std::int64_t i = 0; i < numbers[0] && !runs.full(); ++i) {
    runs.add_items(item, numbers[2 + i] * unit, numbers[1]);
  }
}

// count, block lengths, displacements in bytes.
void add_struct(RunList& runs, const Maps& items, Numbers numbers) {
  const std::int64_t count = numbers[0];
  for (std::int64_t i = 0; i < count && !runs.full(); ++i) {
    runs.add_items(*items[static_cast<std::size_t>(i)], numbers[1 + count + i], numbers[1 + i]);
  }
}

void add_ordered(RunList& runs, const DatatypeMap& item, std::vector<GridAxis> axes,
                 std::int64_t order) {
  if (order == MPI_ORDER_FORTRAN) std::ranges::reverse(axes);
  add_grid(runs, item, axes);
}

// dimensions, sizes, sizes of the part, where it starts, order; large: dimensions, order, sizes, …
void add_subarray(RunList& runs, const DatatypeMap& item, Numbers numbers, bool large) {
  const std::int64_t dimensions = numbers[0];
  const Numbers sizes = numbers + (large ? 2 : 1);
  const std::int64_t order = large ? numbers[1] : numbers[1 + 3 * dimensions];
  std::vector<GridAxis> axes;
  for (std::int64_t i = 0; i < dimensions; ++i) {
    const IndexRun part = {sizes[2 * dimensions + i], sizes[dimensions + i]};
    axes.push_back({sizes[i], {part}});
  }
  add_ordered(runs, item, std::move(axes), order);
}

Distribution distribution_of(std::int64_t word) {
  if (word == MPI_DISTRIBUTE_BLOCK) return Distribution::block;
  return word == MPI_DISTRIBUTE_CYCLIC ? Distribution::cyclic : Distribution::none;
}

// ranks, rank, dimensions, sizes, distributions, their arguments, ranks in each, order;
// large: the sizes come last.
void add_darray(RunList& runs, const DatatypeMap& item, Numbers numbers, bool large) {
  const std::int64_t dimensions = numbers[2];
  const Numbers words = numbers + 3 + (large ? 0 : dimensions);
  const Numbers sizes = large ? words + 3 * dimensions + 1 : numbers + 3;
  const Numbers places = words + 2 * dimensions;
  std::vector<GridAxis> axes(static_cast<std::size_t>(dimensions));
  std::int64_t rank = numbers[1];
  for (std::int64_t i = dimensions - 1; i >= 0; --i) {  // ranks are in C's order, always
    const std::int64_t argument = words[dimensions + i];
    const std::int64_t block_length = argument == MPI_DISTRIBUTE_DFLT_DARG ? 0 : argument;
    axes[static_cast<std::size_t>(i)] = {
        sizes[i],
        distribute(distribution_of(words[i]), sizes[i], block_length, places[i], rank % places[i])};
    rank /= places[i];
  }
  add_ordered(runs, item, std::move(axes), words[3 * dimensions]);
}

bool add_constructed(RunList& runs, const Contents& contents, const Maps& items) {
  const DatatypeMap empty;
  const DatatypeMap& item = items.empty() ? empty : *items.front();
  const Numbers numbers = contents.numbers.data();
  switch (contents.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return runs.add_items(item, 0, 1), true;
    case MPI_COMBINER_CONTIGUOUS:
      return runs.add_items(item, 0, numbers[0]), true;
    case MPI_COMBINER_VECTOR:
      return add_vector(runs, item, numbers, item.extent_bytes), true;
    case MPI_COMBINER_HVECTOR:
    case hvector_integer:
      return add_vector(runs, item, numbers, 1), true;
    case MPI_COMBINER_INDEXED:
      return add_indexed(runs, item, numbers, item.extent_bytes), true;
    case MPI_COMBINER_HINDEXED:
    case hindexed_integer:
      return add_indexed(runs, item, numbers, 1), true;
    case MPI_COMBINER_INDEXED_BLOCK:
      return add_indexed_block(runs, item, numbers, item.extent_bytes), true;
    case MPI_COMBINER_HINDEXED_BLOCK:
      return add_indexed_block(runs, item, numbers, 1), true;
    case MPI_COMBINER_STRUCT:
    case struct_integer:
      return add_struct(runs, items, numbers), true;
    case MPI_COMBINER_SUBARRAY:
      return add_subarray(runs, item, numbers, contents.large), true;
    case MPI_COMBINER_DARRAY:
      return add_darray(runs, item, numbers, contents.large), true;
    default:
      return false;
  }
}

Element common_element(const Maps& items) {
  Element common = Element::none;
  for (const DatatypeMap* item : items) {
    if (item->element == Element::none || item->element == common) continue;
    common = common == Element::none ? item->element : Element::other;
  }
  return common;
}

// A predefined type has a hole if it is one of MPI's pairs, and these are a value and an int, as a
// struct of C has them.
void add_predefined(RunList& runs, const DatatypeMap& sizes) {
  if (sizes.size_bytes == sizes.extent_bytes) return runs.add(0, sizes.size_bytes);
  constexpr std::int64_t whole = sizeof(int);
  const std::int64_t value_bytes = sizes.size_bytes - whole;
  runs.add(0, value_bytes);
  runs.add((value_bytes + whole - 1) / whole * whole, whole);
}

}  // namespace

Result<Flattened> flatten(MPI_Datatype type, const MapOf& map_of) {
  DatatypeMap map;
  MPI_Count size = 0;
  MPI_Count lower_bound = 0;
  MPI_Count extent = 0;
  PMPI_Type_size_x(type, &size);
  PMPI_Type_get_extent_x(type, &lower_bound, &extent);
  map.size_bytes = size;
  map.extent_bytes = extent;
  Contents contents;
  read_contents(type, contents);
  const bool predefined = is_predefined(contents.combiner);
  RunList runs;
  if (predefined) {
    add_predefined(runs, map);
    map.element = element_of(type);
  } else {
    Maps items;
    for (MPI_Datatype child : contents.types) {
      PERDURE_TRY_ASSIGN(const auto item, map_of(child));
      items.push_back(item);
    }
    map.element = common_element(items);
    if (!add_constructed(runs, contents, items)) {
      return Status(Code::unsupported, "an MPI datatype was made by the unknown combiner ",
                    contents.combiner);
    }
  }
  if (runs.full()) {
    return Status(Code::unsupported, "an MPI datatype of ", size, " bytes has more than ",
                  RunList::runs_max, " separate pieces; use a smaller type, more often");
  }
  map.runs = runs.take();
  measure_runs(map);
  return Flattened{std::move(map), predefined};
}

}  // namespace perdure
