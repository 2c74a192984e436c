// SPDX-License-Identifier: BSD-3-Clause
//
// Importers: traces of other tools, made into ours.
//
//   lackey          text of valgrind --tool=lackey --trace-mem=yes: " L addr,size", S, M; I is left
//   out din             text of Dinero: "label address", 0 read, 1 write; 2, an instruction, is
//   left out dramsim3        text: "0xADDRESS READ cycle" or WRITE ramulator       text: "LD
//   address", "ST address" or "0xADDRESS R", W oracle_general  binary of libCacheSim, 24 bytes a
//   request; an object is a page, all are reads
//
// Failure: Code::damaged with the line or the request that can't be read; nothing is skipped
// silently. An input without accesses is an error too.
#pragma once

#include <string>

#include "base/status.hpp"
#include "trace/byte_stream.hpp"
#include "trace/record.hpp"
#include "trace/writer.hpp"

namespace perdure::trace {

enum class ImportFormat { lackey, din, dramsim3, ramulator, oracle_general };

// The format called `name`, as above; Code::invalid_argument lists them.
Result<ImportFormat> import_format(const std::string& name);

// True where the format holds accesses that missed the caches: for these a header with any mode
// but none is Code::invalid_argument.
bool is_filtered(ImportFormat format);

struct Imported {
  std::uint64_t requests = 0;  // data accesses of the input
  std::uint64_t left_out = 0;  // instructions
};

// Appends all accesses of `source` to `writer`, through a cache as `header` says, which is the
// header that the writer was made with. Does not finish() it.
Result<Imported> import_accesses(ImportFormat format, ByteSource& source, const Header& header,
                                 Writer& writer);

}  // namespace perdure::trace
