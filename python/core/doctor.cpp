// SPDX-License-Identifier: BSD-3-Clause
//
// What `perdure doctor` asks of the library itself: the same functions by which a pool decides.
#include <linux/quota.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/files.hpp"
#include "core.hpp"
#include "energy/meters.hpp"
#include "energy/sysfs.hpp"
#include "mpi/process_mpi.hpp"
#include "pmem/file_device.hpp"
#include "pmem/flush.hpp"
#include "pool/page_tracker.hpp"
#include "pool/written_tracker.hpp"
#include "status_error.hpp"

namespace nb = nanobind;

namespace perdure::python {
namespace {

constexpr std::uint64_t tried_bytes = std::uint64_t{64} * 1024;

// What a file of a pool in `directory` would be: one is made there as a pool's are, with a lock,
// and removed.
DeviceDescription try_medium(const std::string& directory, Trust trust) {
  const auto place = value_or_raise(Directory::open(directory, trust));
  const std::string path = place.path_of(".perdure-doctor-" + std::to_string(::getpid()));
  (void)remove_file(path, trust);  // of a process of this number that was killed
  DeviceDescription found;
  {
    auto device =
        value_or_raise(open_file_device(path, {.create = true, .lock_wait_ms = 0, .trust = trust}));
    const Status grown = device->resize(tried_bytes);
    found = device->describe();
    raise_on_failure(remove_file(path, trust));
    raise_on_failure(grown);
  }
  const std::size_t end = found.name.rfind("file ");
  found.name = end == 0 ? "file" : found.name.substr(0, end - 1);
  return found;
}

nb::dict medium_dict(const std::string& directory, bool any_owner) {
  DeviceDescription found;
  {
    const nb::gil_scoped_release released;
    found = try_medium(directory, trust_unless(any_owner));
  }
  nb::dict row;
  row["kind"] = found.name;  // DAX, tmpfs, file
  row["survives_power_failure"] = found.persistence == PersistenceClass::power_failure;
  row["granule_bytes"] = found.granule_bytes;
  return row;
}

nb::dict tracker_dict() {
  const TrackerKind kind = value_or_raise(PageTracker::chosen_kind());
  nb::dict row;
  row["kind"] = kind == TrackerKind::kernel ? "kernel" : "faults";
  row["asked"] = !environment("PERDURE_TRACKER").empty();
  row["kernel_lacks"] = as_utf8(WrittenTracker::available().message());
  return row;
}

// (bytes used, limit) of this user where the path's file system has a quota; 0: no limit.
std::optional<std::pair<std::uint64_t, std::uint64_t>> user_quota(const std::string& path) {
#ifdef SYS_quotactl_fd
  const auto place = Directory::open(path, Trust::anyone);
  if (!place.ok()) return std::nullopt;
  if_dqblk quota{};
  if (::syscall(SYS_quotactl_fd, place.value().fd(), QCMD(Q_GETQUOTA, USRQUOTA), ::geteuid(),
                &quota) != 0) {
    return std::nullopt;
  }
  return std::pair<std::uint64_t, std::uint64_t>{quota.dqb_curspace, quota.dqb_bhardlimit * 1024};
#else
  (void)path;
  return std::nullopt;
#endif
}

const char* abi_name(MpiAbi abi) {
  switch (abi) {
    case MpiAbi::mpich:
      return "mpich";
    case MpiAbi::openmpi:
      return "openmpi";
    case MpiAbi::standard:
      return "abi";
    case MpiAbi::none:
    case MpiAbi::other:
      break;
  }
  return "other";
}

nb::dict mpi_dict(const std::string& version_text, int standard_major) {
  const ProcessMpi mpi = describe_mpi(version_text, standard_major);
  nb::dict row;
  row["interface"] = abi_name(mpi.abi);
  row["name"] = as_utf8(mpi.name);
  row["library"] = loaded_library_for(mpi.abi);
  return row;
}

}  // namespace

void bind_doctor(nb::module_& core) {
  core.def("try_medium", &medium_dict, nb::arg("directory"), nb::arg("any_owner") = false,
           "What a pool's file there would lie on; makes one of 64 KiB, and removes it.");
  core.def(
      "flush_names",
      [] {
        const FlushPrimitives& chosen = flush_primitives();
        return nb::make_tuple(chosen.flush_name, chosen.copy_name);
      },
      "(instruction that flushes, kind of stores that copy) of this processor.");
  core.def("page_tracker", &tracker_dict, "How log mode finds the pages that changed.");
  core.def("user_quota", &user_quota, nb::arg("path"),
           "(bytes used, limit in bytes or 0) of this user there; None without quotas.");
  core.def(
      "mpi_of_text", &mpi_dict, nb::arg("version_text"), nb::arg("standard_major"),
      "What the library to preload makes of an MPI library's texts, and what it loads for it.");
  core.def(
      "list_meters",
      [] {
        nb::list rows;
        for (const auto& meter :
             energy::list_meters(energy::machine(), energy::kernel_perf_events())) {
          nb::dict row;
          row["interface"] = meter.interface;
          row["name"] = as_utf8(meter.name);
          row["readable"] = meter.readable;
          row["reason"] = as_utf8(meter.reason);
          row["remedy"] = as_utf8(meter.remedy);
          rows.append(row);
        }
        return rows;
      },
      "The meters of this node; each is read once, which does not tell whether it is alive.");
  core.def(
      "is_known_variable", [](const std::string& name) { return is_known_variable(name); },
      nb::arg("name"), "Whether Perdure reads a variable of that name.");
  core.def(
      "variable_like", [](const std::string& name) { return std::string(variable_like(name)); },
      nb::arg("name"), "The variable of Perdure that is the most like `name`, or an empty text.");
}

}  // namespace perdure::python
