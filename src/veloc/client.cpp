// SPDX-License-Identifier: BSD-3-Clause
#include "veloc/client.hpp"

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdio>
#include <filesystem>

#include "base/files.hpp"
#include "levels/pool_drain.hpp"
#include "perdure/veloc/veloc.h"

namespace perdure_veloc {
namespace {

static_assert(VELOC_CKPT_ALL == VELOC_RECOVER_ALL && VELOC_CKPT_SOME == VELOC_RECOVER_SOME &&
              VELOC_CKPT_REST == VELOC_RECOVER_REST);

constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 40U;
constexpr std::size_t file_name_bytes_max = 1000;

void check_name(const std::string& name) {
  const auto fine = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
  };
  if (!name.empty() && name.size() < 48 && std::ranges::all_of(name, fine)) return;
  throw Failure("'" + name + "' is no name of a checkpoint: 1 to 47 letters, digits, '_' or '-'");
}

// Which ids a mode and a list of them mean.
class Choice {
 public:
  Choice(int mode, const int* ids, int id_count) : mode_(mode) {
    if (mode < VELOC_RECOVER_ALL || mode > VELOC_RECOVER_REST) {
      throw Failure("the mode is " + std::to_string(mode) + ", not ALL, SOME or REST");
    }
    if (mode == VELOC_RECOVER_ALL || id_count <= 0) return;
    if (ids == nullptr) throw Failure("a list of ids is needed");
    ids_ = {ids, ids + id_count};
  }
  bool has(int id) const {
    return mode_ == VELOC_RECOVER_ALL || ids_.contains(id) == (mode_ == VELOC_RECOVER_SOME);
  }
  // Each id of SOME is in `known`.
  template <typename Known>
  void check(const Known& known, const char* where) const {
    if (mode_ != VELOC_RECOVER_SOME) return;
    for (const int id : ids_) {
      if (!known(id)) throw Failure("region " + std::to_string(id) + " is not " + where);
    }
  }

 private:
  int mode_;
  std::set<int> ids_;
};

}  // namespace

Client::Client(std::unique_ptr<Ranks> ranks, const Config& config)
    : ranks_(std::move(ranks)), config_(config) {
  if (rank() != 0) return;
  for (const std::string& note : config_.notes) {
    std::fprintf(stderr, "perdure veloc: %s\n", note.c_str());
  }
}

Client::~Client() {
  end_phase();
}

void Client::finish(bool drain) {
  std::vector<std::string> paths;
  for (const auto& [name, store] : stores_) paths.push_back(store->path());
  stores_.clear();
  if (!drain || !config_.drained) return;
  const bool first = ranks_->first_of_node();  // all have closed their files
  std::string wrong;
  for (const std::string& path : paths) {
    try {
      if (first) drain_pool(path);
    } catch (const Failure& failure) {
      wrong = failure.what();
    }
  }
  const bool any = ranks_->any(!wrong.empty());
  if (any) throw Failure(wrong.empty() ? "another process could not drain" : wrong);
}

void Client::drain_pool(const std::string& path) const {
  perdure::PoolDrainOptions options;
  options.keep = config_.persistent_versions;
  perdure_veloc::need(perdure::Directory::make(config_.persistent).status());
  const auto report = perdure_veloc::need(perdure::drain_pool(path, config_.persistent, options));
  for (const std::string& problem : report.problems) throw Failure(problem);
  for (const perdure::PoolDrainVersion& version : report.versions) {
    if (!version.problem.empty()) throw Failure(version.problem);
  }
}

// [collective] The first time.
Store& Client::store(const std::string& name) {
  const auto found = stores_.find(name);
  if (found != stores_.end()) return *found->second;
  auto made = std::make_unique<Store>(*ranks_, config_, name);
  return *stores_.emplace(name, std::move(made)).first->second;
}

bool Client::may_exist(const std::string& name) const {
  std::error_code ignored;
  const std::string own = "/" + name + ranks_->suffix();
  return std::filesystem::exists(config_.scratch + own, ignored) ||
         (config_.drained && std::filesystem::exists(config_.persistent + own, ignored));
}

void Client::protect(int id, void* memory, std::uint64_t bytes) {
  if (memory == nullptr && bytes != 0) throw Failure("a region needs an address");
  memory_[id] = {memory, bytes};
}

const Client::Memory& Client::memory_of(int id) const {
  const auto found = memory_.find(id);
  if (found == memory_.end()) {
    throw Failure("region " + std::to_string(id) + " is not protected: call VELOC_Mem_protect");
  }
  return found->second;
}

void Client::checkpoint_begin(const std::string& name, int version) {
  need(Phase::none, "VELOC_Checkpoint_begin in a phase: end that first");
  check_name(name);
  if (version < 0) throw Failure("version " + std::to_string(version) + " is negative");
  std::vector<std::uint64_t> sizes;
  for (const auto& [id, memory] : memory_) sizes.push_back(memory.bytes);
  current_ = &store(name);
  current_->begin(sizes);
  phase_ = Phase::checkpoint;
  name_ = name;
  version_ = version;
}

void Client::checkpoint_some(int mode, const int* ids, int id_count) {
  need(Phase::checkpoint, "regions are written between VELOC_Checkpoint_begin and _end");
  const Choice choice(mode, ids, id_count);
  choice.check([&](int id) { return memory_.contains(id); }, "protected");
  for (const int id : written_) {
    if (!choice.has(id) || !memory_.contains(id)) continue;
    throw Failure("region " + std::to_string(id) + " was written already in this checkpoint");
  }
  for (const auto& [id, memory] : memory_) {
    if (!choice.has(id)) continue;
    written_.insert(id);
    current_->write({.id = id, .bytes = memory.bytes}, memory.address);
  }
}

// What the program wrote to the files that it was given.
std::vector<std::string> Client::read_files() const {
  std::vector<std::string> contents;
  for (const RoutedFile& routed : files_) {
    const perdure::FileHandle file = perdure_veloc::need(perdure::open_input(routed.path));
    contents.push_back(perdure_veloc::need(perdure::read_rest(file, routed.path, file_bytes_max)));
  }
  return contents;
}

// Files become regions with a name. Every rank takes part in each of the collective steps.
bool Client::checkpoint_end(bool success) {
  need(Phase::checkpoint, "VELOC_Checkpoint_end without VELOC_Checkpoint_begin");
  std::vector<std::string> contents;
  try {
    if (success) contents = read_files();
  } catch (const Failure& failure) {
    std::fprintf(stderr, "perdure veloc: rank %d: %s\n", rank(), failure.what());
    success = false;
  }
  success = !ranks_->any(!success);
  const PhaseEnd end(*this);
  if (success) {
    std::vector<std::uint64_t> sizes;
    for (const std::string& content : contents) sizes.push_back(content.size());
    current_->reserve(sizes);
    for (std::size_t i = 0; i < contents.size(); ++i) {
      current_->write({.file = files_[i].original, .bytes = contents[i].size()},
                      contents[i].data());
    }
    current_->commit(version_);
    if (config_.waits) current_->wait();
  }
  return success;
}

bool Client::has_finished() const {
  return std::ranges::all_of(stores_,
                             [](const auto& entry) { return entry.second->has_arrived(); });
}

int Client::restart_test(const std::string& name, int limit) {
  need(Phase::none, "VELOC_Restart_test in a phase: end that first");
  check_name(name);
  if (!stores_.contains(name) && !ranks_->any(may_exist(name))) return -1;
  return store(name).newest_below(limit).value_or(-1);
}

void Client::restart_begin(const std::string& name, int version) {
  need(Phase::none, "VELOC_Restart_begin in a phase: end that first");
  check_name(name);
  if (!stores_.contains(name) && !ranks_->any(may_exist(name))) {
    throw Failure("there are no checkpoints '" + name + "' in " + config_.scratch);
  }
  Store& from = store(name);
  from.go_to(version);
  current_ = &from;
  phase_ = Phase::restart;
  name_ = name;
  version_ = version;
}

const Region* Client::saved(int id) const {
  for (const Region& region : current_->regions()) {
    if (region.file.empty() && region.id == id) return &region;
  }
  return nullptr;
}

int Client::recover_size(int id) const {
  need(Phase::restart, "sizes are known between VELOC_Restart_begin and _end");
  const Region* const region = saved(id);
  if (region == nullptr) return -1;
  if (region->bytes > INT_MAX) {
    throw Failure("region " + std::to_string(id) + " has " + std::to_string(region->bytes) +
                  " bytes, more than an int holds");
  }
  return static_cast<int>(region->bytes);
}

void Client::recover_some(int mode, const int* ids, int id_count) {
  need(Phase::restart, "regions are read between VELOC_Restart_begin and _end");
  const Choice choice(mode, ids, id_count);
  choice.check([&](int id) { return saved(id) != nullptr; }, "in the checkpoint");
  for (const Region& region : current_->regions()) {
    if (!region.file.empty() || !choice.has(region.id)) continue;
    const Memory& memory = memory_of(region.id);
    if (memory.bytes < region.bytes) {
      throw Failure(perdure::sentence("region ", region.id, " has ", memory.bytes,
                                      " bytes here and ", region.bytes,
                                      " in the checkpoint: protect one as large"));
    }
    current_->read(region, memory.address);
  }
}

bool Client::restart_end(bool success) {
  need(Phase::restart, "VELOC_Restart_end without VELOC_Restart_begin");
  end_phase();
  return !ranks_->any(!success);
}

// A file that lies in scratch for the length of a phase. Its contents are part of the version.
std::string Client::route(const std::string& original) {
  if (phase_ == Phase::none) throw Failure("VELOC_Route_file is for the length of a phase");
  if (original.empty() || original.size() > file_name_bytes_max) {
    throw Failure("a file's name has 1 to " + std::to_string(file_name_bytes_max) + " bytes");
  }
  const auto directory = perdure_veloc::need(perdure::Directory::make(files_directory()));
  const std::string name = std::to_string(files_.size());
  const std::string path = directory.path_of(name);
  if (path.size() >= VELOC_MAX_NAME) throw Failure(path + " is longer than VELOC_MAX_NAME");
  perdure_veloc::need(directory.remove_file(name));  // of a process that was killed
  if (phase_ == Phase::restart) {
    const Region& region = saved_file(original);
    std::string content(region.bytes, '\0');
    current_->read(region, content.data());
    const perdure::FileHandle file = perdure_veloc::need(directory.create_file(name));
    perdure_veloc::need(perdure::write_all(file, path, content));
  }
  files_.push_back({original, path});
  return path;
}

const Region& Client::saved_file(const std::string& original) const {
  for (const Region& region : current_->regions()) {
    if (region.file == original) return region;
  }
  throw Failure(
      perdure::sentence("version ", version_, " of ", name_, " has no file '", original, "'"));
}

void Client::end_phase() {
  for (const RoutedFile& file : files_) (void)perdure::remove_file(file.path);
  if (!files_.empty()) (void)perdure::remove_directory(files_directory());
  files_.clear();
  written_.clear();
  phase_ = Phase::none;
  current_ = nullptr;
}

}  // namespace perdure_veloc
