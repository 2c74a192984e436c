// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cache/part_note.hpp"
#include "core.hpp"
#include "levels/drained_pool.hpp"
#include "levels/leased_drains.hpp"
#include "levels/level_file.hpp"
#include "pool/box_note.hpp"
#include "pool/file_note.hpp"
#include "pool/inspect.hpp"
#include "pool/unopened_note.hpp"
#include "status_error.hpp"

namespace nb = nanobind;

namespace perdure::python {
namespace {

nb::bytes to_bytes(const std::vector<std::byte>& bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

struct NamedBox {
  std::string name;
  std::uint32_t part;
  GlobalBox box;
};

// A path as Python has it: its bytes need not be UTF-8.
nb::object path_of(const std::string& path) {
  return nb::steal(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

void bind_contents(nb::module_& core) {
  nb::class_<FileNote>(core, "FileNote", "How long a file of the program's own was at a version.")
      .def_prop_ro("path", [](const FileNote& note) { return path_of(note.path); })
      .def_prop_ro("full_path", [](const FileNote& note) { return path_of(note.full_path()); })
      .def_ro("bytes", &FileNote::bytes);
  nb::class_<NamedBox>(core, "NamedBox", "Where an array lies in one that all ranks have.")
      .def_ro("name", &NamedBox::name)
      .def_ro("part", &NamedBox::part)
      .def_prop_ro("global_shape", [](const NamedBox& each) { return each.box.global_shape; })
      .def_prop_ro("first", [](const NamedBox& each) { return each.box.first; });
  nb::class_<ArrayEntry>(core, "ArrayEntry", "An array of a version.")
      .def_ro("name", &ArrayEntry::name)
      .def_ro("part", &ArrayEntry::part)
      .def_ro("size_bytes", &ArrayEntry::size_bytes)
      .def_ro("copies", &ArrayEntry::copies)
      .def_ro("stride_bytes", &ArrayEntry::stride_bytes)
      .def_prop_ro("type", [](const ArrayEntry& entry) { return type_name(entry.shape.type); })
      .def_prop_ro("mode", [](const ArrayEntry& entry) { return mode_name(entry.shape.mode); })
      .def_prop_ro("checksums", [](const ArrayEntry& entry) { return entry.shape.checksums; })
      .def_prop_ro("extents", [](const ArrayEntry& entry) { return entry.shape.extents; });
  nb::class_<ScalarEntry>(core, "ScalarEntry", "A scalar of a version.")
      .def_ro("name", &ScalarEntry::name)
      .def_prop_ro("type", [](const ScalarEntry& entry) { return type_name(entry.type); })
      .def_prop_ro("bytes", [](const ScalarEntry& entry) { return to_bytes(entry.bytes); });
  nb::class_<Catalogue>(core, "Catalogue", "The arrays and scalars of a version of one rank.")
      .def_ro("version", &Catalogue::version)
      .def_ro("parent", &Catalogue::parent)
      .def_ro("incarnation", &Catalogue::incarnation)
      .def_ro("committed_ns", &Catalogue::committed_ns)
      .def_prop_ro("arrays",
                   [](const Catalogue& catalogue) {
                     return std::vector<ArrayEntry>(catalogue.arrays.begin(),
                                                    catalogue.arrays.end());
                   })
      .def_prop_ro("scalars",
                   [](const Catalogue& catalogue) {
                     auto scalars = catalogue.scalars;
                     std::erase_if(scalars, [](const ScalarEntry& each) {
                       return is_file_note_name(each.name) || is_box_note_name(each.name) ||
                              is_unopened_note_name(each.name);
                     });
                     return scalars;
                   })
      .def_prop_ro("files", [](const Catalogue& catalogue) { return file_notes_of(catalogue); })
      .def_prop_ro("unopened",
                   [](const Catalogue& catalogue) {
                     const auto unopened = unopened_of(catalogue);
                     return std::vector<ArrayKey>(unopened.begin(), unopened.end());
                   })
      .def_prop_ro("boxes", [](const Catalogue& catalogue) {
        std::vector<NamedBox> named;
        for (const auto& [array, box] : boxes_of(catalogue)) {
          named.push_back({array.first, array.second, box});
        }
        return named;
      });
}

// Memory that is filled.
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// An array's bytes, and where they are in a file.
struct ArrayPlace {
  nb::bytes bytes;
  std::string file;
  std::uint64_t offset;
};

// Of a pool, or of what a drain has of one.
Result<PoolReport> inspect(const std::string& directory, bool verify_data) {
  const InspectOptions options{.verify_data = verify_data};
  return is_drained_pool(directory) ? inspect_drained_pool(directory, options)
                                    : inspect_pool(directory, options);
}

Result<DumpedArray> dump(const std::string& directory, std::uint32_t rank, const std::string& name,
                         std::optional<std::uint64_t> wanted) {
  if (!is_drained_pool(directory)) return dump_array(directory, rank, name, wanted);
  PERDURE_TRY_ASSIGN(const auto report, inspect_drained_pool(directory, {}));
  PERDURE_TRY_ASSIGN(const std::uint64_t version, version_to_read(report, rank, wanted));
  return read_drained_array(directory, rank, name, 0, version);
}

std::optional<ArrayPlace> read(const std::string& directory, std::uint32_t rank,
                               const std::string& name, std::uint32_t part, std::uint64_t version) {
  auto array = [&] {
    const nb::gil_scoped_release released;
    return is_drained_pool(directory) ? read_drained_array(directory, rank, name, part, version)
                                      : read_array(directory, rank, name, part, version);
  }();
  if (array.status().code() == Code::busy) return std::nullopt;
  const DumpedArray found = value_or_raise(std::move(array));
  return ArrayPlace{to_bytes(found.bytes), found.file, found.file_offset};
}

void bind_reports(nb::module_& core) {
  nb::class_<ArrayPlace>(core, "ArrayPlace", "What read_array() gives.")
      .def_ro("bytes", &ArrayPlace::bytes)
      .def_ro("file", &ArrayPlace::file)
      .def_ro("offset", &ArrayPlace::offset);
  nb::class_<ArrayReader>(core, "ArrayReader", "An array of a version, read in pieces.")
      .def_prop_ro("size_bytes", &ArrayReader::size_bytes)
      .def(
          "read_into",
          [](ArrayReader& array, std::uint64_t first, const Bytes& to) {
            const nb::gil_scoped_release released;
            const Status read =
                array.read(first, to.size(), reinterpret_cast<std::byte*>(to.data()));
            if (read.code() == Code::busy) return false;
            raise_on_failure(read);
            return true;
          },
          nb::arg("first"), nb::arg("to"),
          "Fills `to` from byte `first` on; False: a job has stored over the version meanwhile.");
  nb::enum_<Severity>(core, "Severity", nb::is_arithmetic())
      .value("fine", Severity::fine)
      .value("crash", Severity::crash)
      .value("damage", Severity::damage);
  nb::class_<Finding>(core, "Finding")
      .def_ro("severity", &Finding::severity)
      .def_ro("text", &Finding::text);
  nb::class_<RankReport>(core, "RankReport", "What the file of one rank holds.")
      .def_ro("rank", &RankReport::rank)
      .def_ro("path", &RankReport::path)
      .def_ro("file_bytes", &RankReport::file_bytes)
      .def_ro("usable", &RankReport::usable)
      .def_ro("newest", &RankReport::newest)
      .def_ro("complete_versions", &RankReport::complete_versions)
      .def_ro("catalogue", &RankReport::catalogue)
      .def(
          "held",
          [](const RankReport& rank, std::uint64_t version) {
            const Catalogue* const found = catalogue_of(rank, version);
            return found == nullptr ? std::optional<Catalogue>() : *found;
          },
          nb::arg("version"), "What the rank has in a version; None: nothing.")
      .def_ro("findings", &RankReport::findings);
  nb::class_<VersionInfo>(core, "VersionInfo", "A version that can be restored.")
      .def_ro("version", &VersionInfo::version)
      .def_ro("parent", &VersionInfo::parent)
      .def_ro("committed_ns", &VersionInfo::committed_ns)
      .def_ro("abandoned", &VersionInfo::abandoned);
  nb::class_<PoolReport>(core, "PoolReport", "What a pool holds.")
      .def_ro("directory", &PoolReport::directory)
      .def_prop_ro("job_name", [](const PoolReport& pool) { return pool.job.job_name; })
      .def_prop_ro("job_id", [](const PoolReport& pool) { return job_id_text(pool.job.job_id); })
      .def_ro("moved", &PoolReport::moved)
      .def_ro("owner", &PoolReport::owner)
      .def_prop_ro("created_ns", [](const PoolReport& pool) { return pool.job.created_ns; })
      .def_prop_ro("rank_count", [](const PoolReport& pool) { return pool.job.ranks; })
      .def_ro("ranks", &PoolReport::ranks)
      .def_ro("keep", &PoolReport::keep)
      .def_ro("version", &PoolReport::version)
      .def_ro("versions", &PoolReport::versions)
      .def_ro("findings", &PoolReport::findings)
      .def_prop_ro("worst", &PoolReport::worst);
}

}  // namespace

void bind_pools(nb::module_& core) {
  bind_contents(core);
  bind_reports(core);
  core.def(
      "inspect_pool",
      [](const std::string& directory, bool verify_data) {
        const nb::gil_scoped_release released;
        return value_or_raise(inspect(directory, verify_data));
      },
      nb::arg("directory"), nb::arg("verify_data") = false,
      "Reads a pool, or what was drained of one, without changing or locking it; verify_data reads "
      "all data as well.");
  core.def("is_drained_pool", &is_drained_pool, nb::arg("directory"),
           "Whether runs of a job drain versions of a pool to the directory.");
  core.def("job_record_path", &job_record_path, nb::arg("directory"),
           "The file that makes a directory a pool.");
  core.def(
      "dump_array",
      [](const std::string& directory, std::uint32_t rank, const std::string& name,
         std::optional<std::uint64_t> version) {
        const DumpedArray array = value_or_raise(dump(directory, rank, name, version));
        return nb::make_tuple(type_name(array.shape.type), array.shape.extents,
                              to_bytes(array.bytes));
      },
      nb::arg("directory"), nb::arg("rank"), nb::arg("name"), nb::arg("version") = nb::none(),
      "(type name, extents, bytes) of an array, by default in the version that a restart would "
      "give back.");
  core.def("read_array", &read, nb::arg("directory"), nb::arg("rank"), nb::arg("name"),
           nb::arg("part"), nb::arg("version"),
           "An array in a version that a report lists; None: a job has stored over it meanwhile.");
  core.def(
      "open_array",
      [](const std::string& directory, std::uint32_t rank, const std::string& name,
         std::uint64_t version) -> std::optional<ArrayReader> {
        auto opened = ArrayReader::open(directory, rank, name, version);
        if (opened.status().code() == Code::busy) return std::nullopt;
        return value_or_raise(std::move(opened));
      },
      nb::arg("directory"), nb::arg("rank"), nb::arg("name"), nb::arg("version"),
      "An array in a version that a report lists, to be read in pieces; None: a job has stored "
      "over it meanwhile.");
  core.def(
      "remove_pool",
      [](const std::string& directory, bool any_owner) {
        const auto belongs = [](const std::string& name) {
          return parse_level_file_name(name).has_value() || is_drain_note(name) ||
                 name.find(part_note_ending) != std::string::npos;
        };
        raise_on_failure(remove_pool(directory, trust_unless(any_owner), belongs));
      },
      nb::arg("directory"), nb::arg("any_owner") = false,
      "Removes the pool's files; raises Error if it is in use, or somebody else's.");
  core.def(
      "adopt_pool",
      [](const std::string& directory, bool any_owner) {
        raise_on_failure(adopt_pool(directory, trust_unless(any_owner)));
      },
      nb::arg("directory"), nb::arg("any_owner") = false,
      "Notes the directory as the place of the pool, after it was moved or copied.");
  core.def("user_text", &user_text, nb::arg("uid"), "Who that is: \"user alice (1000)\".");
}

}  // namespace perdure::python
