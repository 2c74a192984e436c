// SPDX-License-Identifier: BSD-3-Clause
//
// Columns of a trace in csv: which one is what, and what a line says. Pure.
//
// Columns are separated by commas and named by the header, the first line: `op` and `address` must
// be there, `size` (bytes) may be; all others, `time` too, are passed over: the order of the lines
// counts. `op` is r, read, w or write in any case, or a SCSI command in hexadecimal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace perdure::trace {

struct CsvRequest {
  std::uint64_t address = 0;
  std::uint64_t bytes = 1;
  bool is_write = false;
};

class CsvColumns {
 public:
  // Code::invalid_argument names what the header lacks.
  static Result<CsvColumns> of_header(std::string_view header);

  // Nothing if the line has no such request.
  std::optional<CsvRequest> request(std::string_view line) const;

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  std::size_t op_ = none;
  std::size_t address_ = none;
  std::size_t size_ = none;
};

}  // namespace perdure::trace
