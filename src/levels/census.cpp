// SPDX-License-Identifier: BSD-3-Clause
#include "levels/census.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/agreement.hpp"
#include "pmem/file_device.hpp"
#include "pmem/region.hpp"
#include "pool/judgement.hpp"
#include "pool/slots.hpp"

namespace perdure {
namespace {

// What a node's directory holds.
struct NodeView {
  std::string host;
  bool record = false;
  JobRecord job;
  std::vector<PoolFileFact> files;
  std::vector<LevelFileFact> levels;
  std::vector<PartFileFact> parts;
  std::vector<DamagedFileFact> damaged;
};

// One list of fields for writing and reading: values one after the other, between ranks of one job
// on machines of one kind. Where a fact is, its reader knows.
template <typename Pass>
void pass_fields(Pass& pass, LevelFileFact& fact) {
  pass(fact.name, fact.job, fact.lineage, fact.ranks, fact.id, fact.payload_bytes,
       fact.guard.members, fact.guard.rows, fact.guard.coding, fact.guard.image_bytes,
       fact.guard.image_checksums);
}

template <typename Pass>
void pass_fields(Pass& pass, PartFileFact& fact) {
  PartFact& part = fact.part;
  pass(part.path, part.instance, part.node, part.nodes, part.pool_version, part.pool_incarnation,
       part.next_incarnation, part.noted, part.prepared, part.in_use);
}

template <typename Pass>
void pass_fields(Pass& pass, DamagedFileFact& fact) {
  pass(fact.rank, fact.problem);
}

template <typename Pass>
void pass_fields(Pass& pass, NodeView& view) {
  JobRecord& job = view.job;
  pass(view.host, view.record, job.job_id, job.job_name, job.ranks, job.created_ns, job.generation,
       view.files, view.levels, view.parts, view.damaged);
}

class Writer {
 public:
  template <typename... Values>
  void operator()(Values&... values) {
    (put(values), ...);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  template <typename T>
  void put(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
      bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    } else if constexpr (requires { value.size(); }) {
      std::uint64_t count = value.size();
      put(count);
      for (auto& each : value) put(each);
    } else {
      pass_fields(*this, value);
    }
  }

  std::vector<std::byte> bytes_;
};

// Zeros and empty lists follow the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }

 private:
  template <typename T>
  void get(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (bytes_.size() < sizeof value) return;
      std::memcpy(&value, bytes_.data(), sizeof value);
      bytes_ = bytes_.subspan(sizeof value);
    } else if constexpr (requires { value.size(); }) {
      std::uint64_t count = 0;
      get(count);
      value.resize(std::min<std::uint64_t>(count, bytes_.size()));
      for (auto& each : value) get(each);
    } else {
      pass_fields(*this, value);
    }
  }

  std::span<const std::byte> bytes_;
};

void set_place(NodeView& view, std::uint32_t at) {
  for (PoolFileFact& file : view.files) file.at = at;
  for (LevelFileFact& file : view.levels) file.at = at;
  for (PartFileFact& part : view.parts) part.at = at;
  for (DamagedFileFact& file : view.damaged) file.at = at;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "a node without a name";
  return name.data();
}

// A file that can't be opened counts as one that is not there; opening the pool says more of it.
void look_at_pool_file(const Directory& directory, const std::string& name, Trust trust,
                       NodeView& view) {
  const auto device = open_file_device(directory.path_of(name),
                                       {.read_only = true, .may_be_cut = true, .trust = trust});
  if (!device.ok()) return;
  const auto region = check_region(*device.value());
  if (region.status().code() == Code::damaged) {
    view.damaged.push_back({*rank_of_file(name), region.status().message(), 0});
  }
  if (!region.ok()) return;
  const RegionIdentity& identity = region.value().identity;
  if (rank_of_file(name) != identity.rank) return;
  const Judgement judged = judge_slots(Slots(*device.value(), region.value()).read_all());
  if (!judged.damage.empty()) {
    view.damaged.push_back({identity.rank, directory.path_of(name) + ": " + judged.damage, 0});
  }
  const Offer* const head = judged.find(judged.head);
  view.files.push_back({identity.rank,
                        identity.job_id,
                        identity.generation,
                        {head == nullptr ? 0 : head->incarnation, judged.head},
                        0,
                        identity.image_shares != 0 && identity.image_version == judged.head &&
                            judged.next() == judged.head + 1,
                        lineage_of(identity.job_id, identity.lineage),
                        identity.ranks,
                        judged.next() > judged.head + 1});
}

void look_at_level_file(const Directory& directory, const LevelFileName& name, Trust trust,
                        NodeView& view) {
  const auto file = LevelFile::open(directory, name, trust, true);
  if (!file.ok() || !file.value().whole()) return;
  const SealedHeader& header = file.value().header();
  if (header.rank != name.rank || header.kind != name.kind) return;
  LevelFileFact fact{name, header.job.job_id,      header.id,       header.payload_bytes, 0,
                     {},   lineage_of(header.job), header.job.ranks};
  if (name.kind == SealedKind::guard) {
    auto contents = guard_contents(file.value());
    if (!contents.ok()) return;
    fact.guard = contents.take();
  }
  view.levels.push_back(std::move(fact));
}

Result<NodeView> look(const std::string& path, Trust trust) {
  NodeView view;
  view.host = host_name();
  const auto directory = Directory::open(path, trust);
  if (directory.status().code() == Code::not_found) return view;
  if (!directory.ok()) return directory.status();
  auto record = read_job_record(directory.value());
  view.record = record.ok();
  if (!record.ok() && record.status().code() != Code::not_found) return record.status();
  if (record.ok()) view.job = record.take();
  PERDURE_TRY_ASSIGN(const auto names, directory.value().names());
  for (const std::string& name : names) {
    if (rank_of_file(name)) look_at_pool_file(directory.value(), name, trust, view);
    const auto level = parse_level_file_name(name);
    if (level) look_at_level_file(directory.value(), *level, trust, view);
  }
  if (!view.record) return view;
  for (PartFact& part : find_group_parts(directory.value(), view.job.job_id.words, trust)) {
    view.parts.push_back({std::move(part), 0});
  }
  return view;
}

// The lowest rank of this rank's node.
std::uint32_t leader_of(const std::vector<std::uint32_t>& nodes, std::uint32_t rank) {
  const auto found = std::ranges::find(nodes, nodes[rank]);
  return static_cast<std::uint32_t>(found - nodes.begin());
}

}  // namespace

std::uint64_t youngest_age(const Directory& directory, const JobId& job, Trust trust) {
  std::uint64_t youngest = 0;
  const auto names = directory.names();
  NodeView view;
  for (const std::string& name : names.ok() ? names.value() : std::vector<std::string>()) {
    if (rank_of_file(name)) look_at_pool_file(directory, name, trust, view);
  }
  for (const PoolFileFact& file : view.files) {
    if (file.job == job) youngest = std::max(youngest, file.age());
  }
  return youngest;
}

std::vector<const PoolFileFact*> Census::files_in_use() const {
  std::vector<const PoolFileFact*> in_use(job.ranks, nullptr);
  const JobId newest = lineage();
  for (const PoolFileFact& file : files) {
    if (file.rank >= job.ranks || file.lineage != newest) continue;
    const PoolFileFact*& best = in_use[file.rank];
    const bool better = best == nullptr || file.age() > best->age() ||
                        (file.age() == best->age() && near(file.at, file.rank));
    if (better) best = &file;
  }
  return in_use;
}

JobId Census::lineage() const {
  std::uint64_t youngest = 0;
  JobId lineage = job.job_id;
  const auto look = [&](std::uint64_t age, const JobId& its) {
    if (age >= youngest) lineage = its;
    youngest = std::max(youngest, age);
  };
  for (const LevelFileFact& file : levels) look(file.id.incarnation, file.lineage);
  for (const PoolFileFact& file : files) look(file.age(), file.lineage);
  return lineage;
}

std::vector<JobId> Census::lineages() const {
  std::vector<JobId> found;
  const auto look = [&found](const auto& fact) {
    if (std::ranges::find(found, fact.lineage) == found.end()) found.push_back(fact.lineage);
  };
  std::ranges::for_each(files, look);
  std::ranges::for_each(levels, look);
  return found;
}

Census Census::without(const std::set<std::uint32_t>& lost) const {
  Census left = *this;
  const auto is_lost = [&](const auto& fact) { return lost.contains(nodes[fact.at]); };
  std::erase_if(left.files, is_lost);
  std::erase_if(left.levels, is_lost);
  std::erase_if(left.parts, is_lost);
  std::erase_if(left.damaged, is_lost);
  return left;
}

// By way of rank 0, in one message to each rank.
Result<std::vector<std::vector<std::byte>>> gather_everywhere(Group& group,
                                                              std::span<const std::byte> own) {
  std::vector<std::uint64_t> lengths(group.ranks(), 0);
  lengths[group.rank()] = own.size();
  PERDURE_TRY(group.all_max(lengths));
  std::vector<std::vector<std::byte>> all;
  all.reserve(lengths.size());
  for (const std::uint64_t length : lengths) all.emplace_back(length);
  all[group.rank()].assign(own.begin(), own.end());
  if (group.rank() != 0) PERDURE_TRY(group.send(0, own));
  for (std::uint32_t rank = 1; group.rank() == 0 && rank < group.ranks(); ++rank) {
    PERDURE_TRY(group.receive(rank, all[rank]));
  }
  std::vector<std::byte> joined;
  for (const auto& bytes : all) joined.insert(joined.end(), bytes.begin(), bytes.end());
  for (std::uint32_t to = 1; group.rank() == 0 && to < group.ranks(); ++to) {
    PERDURE_TRY(group.send(to, joined));
  }
  if (group.rank() == 0) return all;
  PERDURE_TRY(group.receive(0, joined));
  std::size_t at = 0;
  for (auto& bytes : all) {
    std::copy_n(joined.begin() + static_cast<std::ptrdiff_t>(at), bytes.size(), bytes.begin());
    at += bytes.size();
  }
  return all;
}

namespace {

// Adds what one node has of the job. A job that was killed while its pool was made has no record on
// some nodes, and all its files (pool_directory.hpp, pool.F1). Code::foreign if another job's pool
// is in the way.
Status add_view(const NodeView& view, const std::string& directory, Census& census) {
  const auto foreign = [&](const JobId& job) {
    return Status(Code::foreign, "the ranks' parts of ", directory,
                  " belong to different jobs: on ", view.host, " is job ", job_id_text(job),
                  ", elsewhere ", job_id_text(census.job.job_id),
                  "; move away the pool that is not this job's");
  };
  if (view.record && view.job.job_id != census.job.job_id) return foreign(view.job.job_id);
  for (const PoolFileFact& file : view.files) {
    if (file.job == census.job.job_id) {
      const bool counts =
          file.ranks == census.job.ranks && file.generation >= census.job.generation;
      if (counts) census.files.push_back(file);
    } else if (!view.record && file.head.version > 0) {
      return foreign(file.job);
    }
  }
  for (const LevelFileFact& file : view.levels) {
    const bool counts = file.job == census.job.job_id && file.ranks == census.job.ranks;
    if (counts) census.levels.push_back(file);
  }
  census.parts.insert(census.parts.end(), view.parts.begin(), view.parts.end());
  census.damaged.insert(census.damaged.end(), view.damaged.begin(), view.damaged.end());
  return Status::success();
}

// Code::not_found if no node has a record.
Status add_views(const std::vector<NodeView>& views, const std::string& directory, Census& census) {
  const auto with_record = std::ranges::find_if(views, &NodeView::record);
  if (with_record == views.end()) {
    return Status(Code::not_found, directory, " holds no pool on any node of this job");
  }
  census.job = with_record->job;
  for (const NodeView& view : views) PERDURE_TRY(add_view(view, directory, census));
  return Status::success();
}

}  // namespace

Result<Census> take_census(Group& group, const std::string& directory, Trust trust) {
  Census census;
  PERDURE_TRY_ASSIGN(census.nodes, group.nodes());
  const bool leads = leader_of(census.nodes, group.rank()) == group.rank();
  auto seen = leads ? look(directory, trust) : Result<NodeView>(NodeView{});
  PERDURE_TRY(agree(group, seen.status()));
  Writer writer;
  if (leads) writer(seen.value());
  PERDURE_TRY_ASSIGN(const auto all, gather_everywhere(group, writer.take()));
  std::vector<NodeView> views;
  census.hosts.resize(group.ranks());
  for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
    const std::uint32_t leader = leader_of(census.nodes, rank);
    if (leader != rank) {
      census.hosts[rank] = census.hosts[leader];
      continue;
    }
    Reader reader(all[rank]);
    reader(views.emplace_back());
    set_place(views.back(), rank);
    census.hosts[rank] = views.back().host;
  }
  PERDURE_TRY(add_views(views, directory, census));
  return census;
}

Result<Census> census_of(const std::vector<std::string>& directories, Trust trust) {
  Census census;
  std::vector<NodeView> views;
  for (std::uint32_t i = 0; i < directories.size(); ++i) {
    census.nodes.push_back(i);
    census.hosts.push_back(directories[i]);
    PERDURE_TRY_ASSIGN(auto view, look(directories[i], trust));
    view.host = directories[i];
    set_place(view, i);
    views.push_back(std::move(view));
  }
  PERDURE_TRY(add_views(views, directories.empty() ? "no directory" : directories.front(), census));
  return census;
}

}  // namespace perdure
