#include "levels/encode.hpp"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace perdure {
namespace {

// The rows of a stripe's elements in terms of its blocks of data: the identity, then parity.
std::vector<std::uint8_t> matrix(std::uint32_t data, std::uint32_t losses) {
  std::vector<std::uint8_t> rows(std::size_t{data + losses} * data);
  gf_gen_cauchy1_matrix(rows.data(), static_cast<int>(data + losses), static_cast<int>(data));
  if (losses == 1) std::fill_n(rows.begin() + std::ptrdiff_t{data} * data, data, std::uint8_t{1});
  return rows;
}

}  // namespace

Combination::Combination(std::span<const std::uint8_t> coefficients)
    : data_(static_cast<std::uint32_t>(coefficients.size())),
      copy_(coefficients.size() == 1 && coefficients[0] == 1),
      tables_(32 * coefficients.size()) {
  std::vector<std::uint8_t> own(coefficients.begin(), coefficients.end());
  ec_init_tables(static_cast<int>(data_), 1, own.data(), tables_.data());
}

Combination Combination::of_parity(std::uint32_t data, std::uint32_t losses, std::uint32_t row) {
  const auto rows = matrix(data, losses);
  return Combination(std::span(rows).subspan(std::size_t{data + row} * data, data));
}

Combination Combination::of_left(std::uint32_t data, std::uint32_t losses,
                                 std::span<const std::uint32_t> left, std::uint32_t wanted) {
  PERDURE_ASSERT(left.size() == data);
  const auto rows = matrix(data, losses);
  std::vector<std::uint8_t> of_left;
  for (const std::uint32_t element : left) {
    const auto row = std::span(rows).subspan(std::size_t{element} * data, data);
    of_left.insert(of_left.end(), row.begin(), row.end());
  }
  std::vector<std::uint8_t> inverse(of_left.size());
  const int singular = gf_invert_matrix(of_left.data(), inverse.data(), static_cast<int>(data));
  PERDURE_ASSERT(singular == 0);
  return Combination(std::span(inverse).subspan(std::size_t{wanted} * data, data));
}

void Combination::apply(std::span<const std::byte* const> inputs,
                        std::span<std::byte> output) const {
  PERDURE_ASSERT(inputs.size() == data_);
  if (output.empty()) return;
  if (copy_) {
    std::memcpy(output.data(), inputs[0], output.size());
    return;
  }
  std::vector<std::uint8_t*> sources;
  for (const std::byte* input : inputs) {
    sources.push_back(reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(input)));
  }
  std::uint8_t* const target = reinterpret_cast<std::uint8_t*>(output.data());
  std::uint8_t* targets[] = {target};
  auto* const tables = const_cast<std::uint8_t*>(tables_.data());
  ec_encode_data(static_cast<int>(output.size()), static_cast<int>(data_), 1, tables,
                 sources.data(), targets);
}

}  // namespace perdure
