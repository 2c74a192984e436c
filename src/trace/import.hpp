// SPDX-License-Identifier: BSD-3-Clause
//
// Importers: traces of other tools, made into ours.
//
//   lackey          text of valgrind --tool=lackey --trace-mem=yes: " L addr,size", S, M;
//                   I is left out
//   din             text of Dinero: "label address", 0 read, 1 write; 2, an instruction, is left
//                   out
//   dramsim3        text: "0xADDRESS READ cycle" or WRITE
//   ramulator       text: "LD address", "ST address" or "0xADDRESS R", W
//   oracle_general  binary of libCacheSim, 24 bytes a request; an object is a page, all are reads
//   csv             text with named columns (csv_columns.hpp); each page of a request is an access
//
// Failure: Code::damaged with the line or the request that can't be read; nothing is skipped
// silently. An input without accesses is an error too, and one that is compressed says so.
#pragma once

#include <string>

#include "base/status.hpp"
#include "trace/byte_stream.hpp"
#include "trace/record.hpp"
#include "trace/writer.hpp"

namespace perdure::trace {

enum class ImportFormat { lackey, din, dramsim3, ramulator, oracle_general, csv };

// The format called `name`, as above; Code::invalid_argument lists them.
Result<ImportFormat> import_format(const std::string& name);

// True where the format holds accesses that missed the caches: for these a header with any mode
// but none is Code::invalid_argument.
bool is_filtered(ImportFormat format);

struct Imported {
  std::uint64_t requests = 0;  // data accesses of the input
  std::uint64_t left_out = 0;  // instructions
  // oracle_general: requests of more than a page, which are taken as one, and the largest one's
  // bytes.
  std::uint64_t cut_requests = 0;
  std::uint64_t largest_bytes = 0;
};

// How csv is read. With `columns`, the first line is a request and no header.
struct CsvOptions {
  std::string columns;
  std::uint64_t unit_bytes = 1;  // of addresses
};

// Appends all accesses of `source` to `writer`, through a cache as `header` says, which is the
// header that the writer was made with. Does not finish() it.
Result<Imported> import_accesses(ImportFormat format, ByteSource& source, const Header& header,
                                 Writer& writer, const CsvOptions& csv = {});

}  // namespace perdure::trace
