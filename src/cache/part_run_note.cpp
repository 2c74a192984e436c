// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_run_note.hpp"

#include <unistd.h>

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/checksum.hpp"
#include "base/environment.hpp"
#include "base/files.hpp"
#include "base/process_place.hpp"

namespace perdure {
namespace {

std::string node_name() {
  char host[HOST_NAME_MAX + 1] = "";
  (void)::gethostname(host, sizeof host - 1);
  return host;
}

// The same when the part is gone.
std::string full_path(const std::string& part_file) {
  const std::filesystem::path path(part_file);
  char folder[PATH_MAX];
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  if (::realpath(parent.c_str(), folder) == nullptr) return part_file;
  return std::filesystem::path(folder) / path.filename();
}

std::string note_name(const std::string& full) {
  char hash[24];
  std::snprintf(hash, sizeof hash, "%016" PRIx64, crc64(full.data(), full.size()));
  return std::string("part-") + hash + "-" + node_name();
}

template <typename Act>
void in_run_directories(const Act& act) {
  for (const char* variable : {"PERDURE_RUN_DIR", "PERDURE_RUN_SHARED"}) {
    const std::string path = environment(variable);
    if (path.empty()) continue;
    const auto directory = Directory::open(path, trust_unless(false));
    if (directory.ok()) act(directory.value());
  }
}

}  // namespace

void note_part_for_run(const std::string& part_file, const std::string& path) {
  in_run_directories([&](const Directory& directory) {
    const std::string full = full_path(part_file);
    const std::string name = note_name(full);
    if (directory.holds(name)) return;
    std::string text = node_name();
    for (const std::string& item : {full, path}) text += '\0' + item;
    text += '\0';
    (void)directory.replace_file(name, text, std::to_string(::getpid()));
  });
}

void forget_part_for_run(const std::string& part_file) {
  in_run_directories([&](const Directory& directory) {
    (void)directory.remove_file(note_name(full_path(part_file)));
  });
}

}  // namespace perdure
