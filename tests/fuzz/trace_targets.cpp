#include "targets.hpp"

#include "base/assert.hpp"
#include "trace/import.hpp"
#include "trace/reader.hpp"
#include "trace/writer.hpp"

namespace perdure::trace {
namespace {

struct Read {
  bool accepted = false;
  std::uint64_t accesses = 0;
};

Read read_all(std::span<const std::byte> bytes, bool seekable) {
  Read read;
  auto reader = Reader::open(memory_source(bytes, seekable));
  if (!reader.ok()) return read;
  const bool has_totals = reader.value()->totals().ok();
  for (;;) {
    auto batch = reader.value()->next();
    if (!batch.ok()) return read;
    if (batch.value().kind == Batch::Kind::end) break;
    for (const Record& record : batch.value().records) {
      PERDURE_ASSERT(record.page < reader.value()->pages());
      read.accesses += std::uint64_t{record.reads} + record.writes;
    }
  }
  PERDURE_ASSERT(has_totals || !seekable);  // who reads to the end could have had them before
  PERDURE_ASSERT(reader.value()->totals().value()->accesses() == read.accesses);
  read.accepted = true;
  return read;
}

}  // namespace

bool fuzz_trace(std::span<const std::byte> bytes) {
  const Read file = read_all(bytes, true), pipe = read_all(bytes, false);
  PERDURE_ASSERT(file.accepted == pipe.accepted && file.accesses == pipe.accesses);
  return file.accepted;
}

bool fuzz_import(std::span<const std::byte> bytes) {
  if (bytes.empty()) return false;
  const auto format = static_cast<ImportFormat>(static_cast<unsigned>(bytes[0]) % 5);
  Header header;
  header.floor_pages = static_cast<unsigned>(bytes[0]) / 5 % 3;
  header.mode = is_filtered(format) ? FilterMode::none : FilterMode::modern;
  header.cache = {256, 64, 2};
  std::vector<std::byte> trace;
  auto writer = Writer::create(memory_sink(trace), header).take();
  auto source = memory_source(bytes.subspan(1), false);
  if (!import_accesses(format, *source, header, *writer).ok()) return false;
  PERDURE_ASSERT(writer->finish({}).ok());
  auto reader = Reader::open(memory_source(trace)).take();
  PERDURE_ASSERT(verify(*reader).ok());
  return true;
}

}  // namespace perdure::trace
