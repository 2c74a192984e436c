// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>

#include "core.hpp"
#include "status_error.hpp"
#include "trace/import.hpp"
#include "trace/reader.hpp"
#include "trace/recorder/options.hpp"

namespace nb = nanobind;

namespace perdure::python {
namespace {

using namespace perdure::trace;

// What a trace says of itself, once it was read to its end.
struct TraceSummary {
  Header header;
  Totals totals;
  std::vector<std::string> regions;
};

TraceSummary summarise(const std::string& path) {
  nb::gil_scoped_release unlocked;
  auto reader = value_or_raise(Reader::open(path));
  TraceSummary summary;
  for (;;) {
    const Batch batch = value_or_raise(reader->next());
    if (batch.kind == Batch::Kind::end) break;
    if (batch.kind == Batch::Kind::region_begin) summary.regions.push_back(batch.region);
  }
  summary.header = reader->header();
  summary.totals = *value_or_raise(reader->totals());
  return summary;
}

// Counts what an importer has read, for another thread to look at.
class CountingSource final : public ByteSource {
 public:
  CountingSource(std::unique_ptr<ByteSource> source, std::atomic<std::uint64_t>& bytes)
      : source_(std::move(source)), bytes_(bytes) {}
  const std::string& name() const override { return source_->name(); }
  std::optional<std::uint64_t> size_bytes() const override { return source_->size_bytes(); }
  Status seek(std::uint64_t offset) override { return source_->seek(offset); }
  Result<std::size_t> read(std::span<std::byte> to) override {
    // Small pieces of a pipe, so that progress is seen while a slow program fills it.
    auto count = source_->read(to);
    if (count.ok()) bytes_ += count.value();
    return count;
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::atomic<std::uint64_t>& bytes_;
};

class TraceImport {
 public:
  TraceImport(const std::string& format, std::string source, const std::string& request,
              const std::string& command, std::string columns, std::uint64_t unit_bytes)
      : format_(value_or_raise(import_format(format))),
        source_(std::move(source)),
        options_(value_or_raise(parse_recorder_options(request))),
        csv_{std::move(columns), unit_bytes} {
    options_.header.command = command;
    if (!options_.times) options_.header.created_ns = 1;
    if (is_filtered(format_)) options_.header.mode = FilterMode::none;
  }

  // Requests of the input, and how many of them are instructions, which are left out.
  std::pair<std::uint64_t, std::uint64_t> run() {
    nb::gil_scoped_release unlocked;
    CountingSource source(value_or_raise(open_source(source_)), bytes_);
    auto writer = value_or_raise(Writer::create(options_.path, options_.header));
    const Imported imported =
        value_or_raise(import_accesses(format_, source, options_.header, *writer, csv_));
    cut_requests_ = imported.cut_requests;
    largest_bytes_ = imported.largest_bytes;
    Ending ending;
    ending.program_accesses = is_filtered(format_) ? 0 : imported.requests;
    ending.compute_ns = options_.compute_ns;
    raise_on_failure(writer->finish(ending));
    return {imported.requests, imported.left_out};
  }

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t cut_requests() const { return cut_requests_; }
  std::uint64_t largest_bytes() const { return largest_bytes_; }

 private:
  ImportFormat format_;
  std::string source_;
  RecorderOptions options_;
  CsvOptions csv_;
  std::uint64_t cut_requests_ = 0;
  std::uint64_t largest_bytes_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace

void bind_traces(nb::module_& core) {
  nb::class_<TraceSummary>(core, "TraceSummary", "What a memory trace says of itself.")
      .def_prop_ro("command", [](const TraceSummary& of) { return of.header.command; })
      .def_prop_ro("rank", [](const TraceSummary& of) { return of.header.rank; })
      .def_prop_ro("ranks", [](const TraceSummary& of) { return of.header.ranks; })
      .def_prop_ro("created_ns", [](const TraceSummary& of) { return of.header.created_ns; })
      .def_prop_ro("page_bytes", [](const TraceSummary& of) { return of.header.page_bytes; })
      .def_prop_ro("floor_pages", [](const TraceSummary& of) { return of.header.floor_pages; })
      .def_prop_ro("mode", [](const TraceSummary& of) { return filter_mode_name(of.header.mode); })
      .def_prop_ro("cache_bytes", [](const TraceSummary& of) { return of.header.cache.size_bytes; })
      .def_prop_ro("line_bytes", [](const TraceSummary& of) { return of.header.cache.line_bytes; })
      .def_prop_ro("ways", [](const TraceSummary& of) { return of.header.cache.ways; })
      .def_prop_ro("records", [](const TraceSummary& of) { return of.totals.records; })
      .def_prop_ro("reads", [](const TraceSummary& of) { return of.totals.reads; })
      .def_prop_ro("writes", [](const TraceSummary& of) { return of.totals.writes; })
      .def_prop_ro("pages", [](const TraceSummary& of) { return of.totals.pages.size(); })
      .def_prop_ro("program_accesses",
                   [](const TraceSummary& of) { return of.totals.ending.program_accesses; })
      .def_prop_ro("elapsed_ns", [](const TraceSummary& of) { return of.totals.ending.elapsed_ns; })
      .def_prop_ro("compute_ns", [](const TraceSummary& of) { return of.totals.ending.compute_ns; })
      .def_prop_ro("streams",
                   [](const TraceSummary& of) {
                     std::vector<std::pair<std::uint64_t, std::uint64_t>> streams;
                     for (const StreamTotals& stream : of.totals.streams) {
                       streams.emplace_back(stream.reads, stream.writes);
                     }
                     return streams;
                   })
      .def_ro("regions", &TraceSummary::regions);
  core.def("summarise_trace", &summarise, nb::arg("path"),
           "Reads a memory trace to its end. Raises Error where it is not a whole one.");
  nb::class_<TraceImport>(core, "TraceImport", "The import of another tool's trace.")
      .def(nb::init<const std::string&, std::string, const std::string&, const std::string&,
                    std::string, std::uint64_t>(),
           nb::arg("format"), nb::arg("source"), nb::arg("request"), nb::arg("command"),
           nb::arg("columns") = "", nb::arg("unit_bytes") = 1,
           "`request` is what PERDURE_TRACE would say: FILE[,key=value…].")
      .def("run", &TraceImport::run,
           "Once. The data accesses of the input, and what was left out; other threads go on.")
      .def_prop_ro("cut_requests", &TraceImport::cut_requests,
                   "Of more than a page, which were taken as one access of a page.")
      .def_prop_ro("largest_bytes", &TraceImport::largest_bytes, "Of such a request.")
      .def_prop_ro("bytes", &TraceImport::bytes, "Read so far.");
}

}  // namespace perdure::python
