// SPDX-License-Identifier: BSD-3-Clause
//
// ISA-L, loaded when it is first needed, so that programs run where it is not installed: CRC-64 is
// computed from a table then, and Reed-Solomon is refused.
//
// Threads: any. Failure: isal() is null if there is no libisal.so.2, or PERDURE_ISAL=off.
#pragma once

#include <isa-l/crc64.h>
#include <isa-l/erasure_code.h>

namespace perdure {

struct Isal {
  decltype(&crc64_ecma_refl) crc64 = nullptr;
  decltype(&ec_init_tables) init_tables = nullptr;
  decltype(&ec_encode_data_update) encode_update = nullptr;
};

const Isal* isal();
// Whether it was needed before: loading it takes longer than a checksum of some hundred bytes from
// the table.
bool isal_is_loaded();

}  // namespace perdure
