// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/info.hpp"

#include <array>
#include <string>

#include "mpi/mpi_library.hpp"

namespace perdure {

KeyValues read_info(MPI_Info info) {
  KeyValues keys;
  if (info == info_null()) return keys;
  int count = 0;
  PMPI_Info_get_nkeys(info, &count);
  for (int i = 0; i < count; ++i) {
    std::array<char, MPI_MAX_INFO_KEY + 1> key{};
    PMPI_Info_get_nthkey(info, i, key.data());
    int length = 0;
    int exists = 0;
    PMPI_Info_get_valuelen(info, key.data(), &length, &exists);
    if (exists == 0) continue;
    std::string value(static_cast<std::size_t>(length) + 1, '\0');
    PMPI_Info_get(info, key.data(), length, value.data(), &exists);
    value.resize(static_cast<std::size_t>(length));
    keys[key.data()] = value;
  }
  return keys;
}

}  // namespace perdure
