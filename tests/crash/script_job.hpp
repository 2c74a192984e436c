// SPDX-License-Identifier: BSD-3-Clause
//
// Script job: a rank that performs the lines of a script and keeps the ledger, and the same pool as
// recovery finds it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ledger.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/pool.hpp"
#include "script.hpp"

namespace perdure {

class ScriptJob {
 public:
  // Formats the device if it is empty.
  ScriptJob(std::unique_ptr<CrashDevice> device, Group& group, const ScriptOptions& options);

  Status start();  // opens all arrays but the third; restarts
  Status perform(const Line& line);

  // Every return of a call.
  std::function<void()> on_return;
  CrashDevice& medium() { return *medium_; }
  Knowledge knowledge();
  std::uint64_t performed() const { return performed_; }

 private:
  Status open(const std::string& name);
  Status change_arrays(const Line& line);
  Status resize(std::uint64_t words);
  Status commit(const Line& line);
  Status restore(std::uint64_t version);
  void compute(bool all);
  void scribble();
  void show();
  VersionedArray* find(const std::string& name) const;

  struct Opened {
    std::string name;
    VersionedArray* array;
  };
  const ScriptOptions& options_;
  std::uint32_t rank_;
  CrashDevice* medium_;
  std::unique_ptr<Pool> pool_;
  Status attached_;
  std::vector<Opened> opened_;
  Contents now_;         // what the application means its arrays to hold
  bool erased_ = false;  // c, since the newest version: one that is opened anew is another array
  std::uint64_t iteration_ = 0;
  std::uint64_t stamp_ = 0;
  std::uint64_t performed_ = 0;
  std::mutex mutex_;  // images of a saver's fence are made in its thread
  Ledger ledger_;
};

// What comes back from an image: the newest version, every other one that can be restored, and
// whether the job can go on from there.
struct Found {
  Status status;
  std::uint64_t version = 0;
  Contents newest;
  std::map<std::uint64_t, Contents> others;
  std::vector<std::uint64_t> flushed;
  std::vector<std::uint32_t> working_copies;
};
Found recover_script(const ScriptOptions& options, Group& group, std::span<const std::byte> image);

// Empty, or what is wrong with it.
std::string complaint(const Found& found, const Knowledge& knowledge);

std::unique_ptr<CrashDevice> script_device(const ScriptOptions& options);

}  // namespace perdure
