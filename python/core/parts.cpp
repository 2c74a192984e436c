// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cache/part_directory.hpp"
#include "core.hpp"
#include "status_error.hpp"

namespace nb = nanobind;

namespace perdure::python {

void bind_parts(nb::module_& core) {
  nb::class_<FoundPart>(core, "FoundPart", "A part of a cached file that a node holds.")
      .def_ro("file", &FoundPart::file)
      .def_ro("path", &FoundPart::path)
      .def_ro("pool", &FoundPart::pool)
      .def_ro("node", &FoundPart::node)
      .def_ro("nodes", &FoundPart::nodes)
      .def_ro("size_bytes", &FoundPart::size_bytes)
      .def_ro("unsaved_bytes", &FoundPart::unsaved_bytes)
      .def_ro("through_bytes", &FoundPart::through_bytes)
      .def_ro("evicted_bytes", &FoundPart::evicted_bytes)
      .def_ro("created_ns", &FoundPart::created_ns)
      .def_ro("instance", &FoundPart::instance)
      .def_ro("in_use", &FoundPart::in_use)
      .def_ro("same_boot", &FoundPart::same_boot)
      .def_ro("file_changed", &FoundPart::file_changed)
      .def_prop_ro("fault", [](const FoundPart& part) { return part.fault.message(); });
  core.def(
      "list_parts",
      [](const std::string& directory) { return value_or_raise(list_parts(directory)); },
      nb::arg("directory"), "The parts in a directory.");
  core.def(
      "recover_parts",
      [](const std::vector<std::pair<std::string, std::string>>& places,
         std::optional<std::uint64_t> version, bool overwrite, const std::string& to) {
        nb::gil_scoped_release unlocked;
        std::vector<PartPlace> parts;
        for (const auto& [directory, file] : places) parts.push_back({directory, file});
        RecoverOptions options;
        options.version = version;
        options.overwrite = overwrite;
        options.to = to;
        return value_or_raise(recover_parts(parts, options)).bytes;
      },
      nb::arg("places"), nb::arg("version") = nb::none(), nb::arg("overwrite") = false,
      nb::arg("to") = "",
      "Writes what a crash left behind in the parts of one file, each a directory and a file in "
      "it, to the cached file or another, removes the parts, and returns how many bytes were "
      "written.");
  core.def(
      "discard_part",
      [](const std::string& directory, const std::string& file) {
        raise_on_failure(discard_part(directory, file));
      },
      nb::arg("directory"), nb::arg("file"), "Removes a part as it is.");
  core.def("default_part_directory", &default_part_directory,
           "Where a node keeps its parts if the user says nothing.");
}

}  // namespace perdure::python
