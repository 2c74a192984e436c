// SPDX-License-Identifier: BSD-3-Clause
//
// Fake tree: a folder of files that behave as the kernel's do, for tests without hardware.
//
// Values are in plain files below a root, whose layout is that of real machines
// (fake_machines.cpp). What a plain file would accept and a kernel would not is refused here:
// governors that are not offered, min above max, numbers that are none, files that can only be
// read. Counters of energy advance with time and wrap. What goes wrong on real machines is asked
// for by the file ROOT/behaviour, one line each: PATTERN MODE [ARGUMENT].
//
//   writes   eacces | ebusy N (the first N writes) | ignore (accepted, and nothing happens) |
//            round KHZ (down, to a multiple) | vanish N (the folder, before write N) |
//            uncapped (the limit is stored, and the clock does not follow)
//   reads    eacces | power W | dead | lag MS (moves only each MS) | mirror PATH |
//            back S (5 J less from second S on)
//
// Threads and processes: any; writes to one file are not atomic among them, as nothing tests that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "energy/sysfs.hpp"

namespace perdure::energy::fake {

class FakeTree {
 public:
  explicit FakeTree(std::string root) : root_(std::move(root)) {}

  // What write(2) would come to: 0 or an errno; the file has the new value.
  int write(const std::string& path, const std::string& text);
  // What read(2) would give; nothing: as the plain file.
  std::optional<SysfsText> read(const std::string& path);
  bool writable(const std::string& path);
  const std::string& root() const { return root_; }

  void set(const std::string& path, const std::string& text) const;  // makes folders
  std::string get(const std::string& path) const;
  void behave(const std::string& line) const;  // adds to ROOT/behaviour

 private:
  struct Rule {
    std::string pattern, mode, argument;
  };
  std::vector<Rule> rules(const std::string& path) const;
  std::optional<std::string> rule(const std::string& path, const std::string& mode) const;
  std::uint64_t count(const std::string& what) const;
  int write_frequency(const std::string& path, const std::string& text);
  std::string counter(const std::string& path) const;
  std::string root_;
};

// The tree of a machine: "intel_pstate", "intel_cpufreq" (passive), "acpi-cpufreq",
// "amd-pstate-epp"; with 2 policies, and meters as such machines have them. False: no such kind.
bool make_machine(const FakeTree& tree, const std::string& kind);

// The seam, on a fake tree in this process.
class FakeSysfs final : public Sysfs {
 public:
  explicit FakeSysfs(const std::string& root) : Sysfs(root), tree_(root) {}
  SysfsText read(const std::string& path) override;
  int write(const std::string& path, const std::string& text) override;
  bool writable(const std::string& path) override { return tree_.writable(path); }
  FakeTree& tree() { return tree_; }

 private:
  FakeTree tree_;
};

}  // namespace perdure::energy::fake
