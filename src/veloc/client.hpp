// SPDX-License-Identifier: BSD-3-Clause
//
// Client: the phases of the VELOC interface over stores. One for a process, from Init to Finalize.
//
// Threads: one. Failure: as store.hpp; a call that is out of place is a Failure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "veloc/config.hpp"
#include "veloc/failure.hpp"
#include "veloc/ranks.hpp"
#include "veloc/store.hpp"

namespace perdure_veloc {

class Client {
 public:
  Client(std::unique_ptr<Ranks> ranks, const Config& config);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void protect(int id, void* memory, std::uint64_t bytes);
  void unprotect(int id) {
    if (memory_.erase(id) == 0) throw Failure("region " + std::to_string(id) + " is not protected");
  }
  void clear() { memory_.clear(); }
  std::string route(const std::string& original);

  void checkpoint_begin(const std::string& name, int version);
  void checkpoint_some(int mode, const int* ids, int id_count);
  // False: some process said that it did not succeed, and there is no version.
  bool checkpoint_end(bool success);

  // [collective] Waits until what is on its way from scratch has arrived, as far as patience goes.
  void wait() {
    for (const auto& [name, store] : stores_) store->wait();
  }
  // Whether nothing is on its way, as far as this process knows.
  bool has_finished() const;

  // -1: there is none.
  int restart_test(const std::string& name, int limit);
  void restart_begin(const std::string& name, int version);
  // -1: the checkpoint has no such region.
  int recover_size(int id) const;
  void recover_some(int mode, const int* ids, int id_count);
  bool restart_end(bool success);

  // [collective] Closes the pools. `drain`: their newest versions are then in the persistent
  // directory, also those that came while the one before was on its way there.
  void finish(bool drain);

  int rank() const { return ranks_->rank(); }

 private:
  enum class Phase { none, checkpoint, restart };
  struct Memory {
    void* address;
    std::uint64_t bytes;
  };
  struct PhaseEnd {  // also when something is thrown
    explicit PhaseEnd(Client& its_client) : client(its_client) {}
    ~PhaseEnd() { client.end_phase(); }
    PhaseEnd(const PhaseEnd&) = delete;
    PhaseEnd& operator=(const PhaseEnd&) = delete;
    Client& client;
  };
  struct RoutedFile {
    std::string original;
    std::string path;
  };

  void need(Phase phase, const char* what) const {
    if (phase_ != phase) throw Failure(what);
  }
  void drain_pool(const std::string& path) const;
  Store& store(const std::string& name);
  bool may_exist(const std::string& name) const;
  const Memory& memory_of(int id) const;
  const Region* saved(int id) const;  // null: the checkpoint has no such region
  std::vector<std::string> read_files() const;
  std::string files_directory() const {
    return config_.scratch + "/" + name_ + ranks_->suffix() + ".files." + std::to_string(rank());
  }
  const Region& saved_file(const std::string& original) const;
  void end_phase();

  std::unique_ptr<Ranks> ranks_;
  Config config_;
  std::map<int, Memory> memory_;
  std::map<std::string, std::unique_ptr<Store>> stores_;
  Phase phase_ = Phase::none;
  Store* current_ = nullptr;
  std::string name_;  // of the phase
  int version_ = 0;
  std::set<int> written_;
  std::vector<RoutedFile> files_;
};

}  // namespace perdure_veloc
