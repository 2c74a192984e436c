// SPDX-License-Identifier: BSD-3-Clause
#include "base/xxh3_here.hpp"

namespace perdure {

const Xxh3 xxh3_by_avx2 = xxh3_here;

}  // namespace perdure
