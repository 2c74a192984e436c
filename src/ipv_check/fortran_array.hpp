// SPDX-License-Identifier: BSD-3-Clause
//
// FortranArray: the elements of an array by its descriptor, as Flang 19 lays it out
// (ISO_Fortran_binding.h). Pure. A descriptor without an array has no elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace perdure::ipv_check {

struct FortranDimension {
  std::ptrdiff_t lower_bound;
  std::ptrdiff_t extent;
  std::ptrdiff_t stride_bytes;
};

struct FortranArray {
  static constexpr unsigned dimensions_max = 15;

  std::uintptr_t first;
  std::size_t element_bytes;
  std::int32_t version;
  std::uint8_t dimensions;
  std::int8_t type;
  std::uint8_t attribute;
  std::uint8_t extra;
  std::array<FortranDimension, dimensions_max> of;  // as many as there are dimensions

  // Calls use(address, bytes) for each run of consecutive elements.
  template <typename Use>
  void for_runs(Use use) const {
    if (first == 0 || element_bytes == 0 || dimensions > dimensions_max) return;
    const bool is_dense =
        dimensions > 0 && of[0].stride_bytes == static_cast<std::ptrdiff_t>(element_bytes);
    const std::ptrdiff_t count = is_dense ? of[0].extent : 1;
    if (count <= 0) return;
    runs_of(dimensions, is_dense ? 1 : 0, first, static_cast<std::size_t>(count) * element_bytes,
            use);
  }

 private:
  template <typename Use>
  void runs_of(unsigned above, unsigned least, std::uintptr_t at, std::size_t bytes,
               Use& use) const {
    if (above == least) {
      use(at, bytes);
      return;
    }
    const FortranDimension& dimension = of[above - 1];
    for (std::ptrdiff_t i = 0; i < dimension.extent; ++i) {
      runs_of(above - 1, least, at + static_cast<std::uintptr_t>(i * dimension.stride_bytes), bytes,
              use);
    }
  }
};
static_assert(offsetof(FortranArray, dimensions) == 20 && offsetof(FortranArray, of) == 24);

}  // namespace perdure::ipv_check
