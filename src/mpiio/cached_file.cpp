// SPDX-License-Identifier: BSD-3-Clause
//
// Opening, in steps that succeed on all ranks or on none: every rank opens the cached file; the
// first rank of each node writes back what a crash left behind; rank 0 sees how large the file is
// and decides for all; the first ranks make the parts; the others join them; the first ranks serve
// them to other nodes, if there are any.
#include "mpiio/cached_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include "base/agreement.hpp"
#include "base/random.hpp"
#include "mpi/mpi_library.hpp"
#include "mpiio/file_pieces.hpp"

namespace perdure {
namespace {

using FileKey = std::pair<std::uint64_t, std::uint64_t>;  // device and inode

// The cached files of this process.
struct OpenFiles {
  std::mutex mutex;
  std::map<FileKey, std::shared_ptr<CachedFile>> by_key;
  std::map<const CachedFile*, FileKey> keys;
  std::vector<std::shared_ptr<CachedFile>> still_served;  // closed here, but not by all
};

OpenFiles& open_files() {
  static OpenFiles& files = *new OpenFiles;  // they end after all destructors
  return files;
}

std::shared_ptr<CachedFile> find_known(const FileKey& key) {
  OpenFiles& files = open_files();
  const std::lock_guard<std::mutex> lock(files.mutex);
  const auto found = files.by_key.find(key);
  return found == files.by_key.end() ? nullptr : found->second;
}

std::string directory_for(const CacheOptions& options, const NodeMap& map) {
  std::string directory = options.directory.empty() ? default_part_directory() : options.directory;
  const std::size_t place = directory.find("%n");
  if (place != std::string::npos) directory.replace(place, 2, std::to_string(map.node));
  if (!map.pretended.empty()) directory += "/node-" + map.pretended;
  return directory;
}

// What the pool has recovered to, or committed since.
std::optional<PoolVersion> version_of(const Pool* pool) {
  if (pool == nullptr) return std::nullopt;
  PoolVersion of;
  std::copy_n(pool->job_id().words, 2, of.job);
  of.version = pool->status().version;
  of.incarnation = pool->head_incarnation();
  of.next_incarnation = pool->incarnation();
  if (pool->is_at_image()) of.image_incarnation = pool->image_incarnation();
  return of;
}

// The pool that perdure_cache_pool names, which this process has open.
Result<Pool*> find_pool(const CacheOptions& options) {
  if (options.pool.empty()) return static_cast<Pool*>(nullptr);
  Pool* pool = Pool::find(options.pool);
  if (pool == nullptr) {
    return Status(Code::not_found, "perdure_cache_pool='", options.pool,
                  "': this process has no such pool open; open the pool, or make its first window, "
                  "before the file");
  }
  if (!pool->restarted()) {
    return Status(
        Code::wrong_state, "perdure_cache_pool='", options.pool,
        "': the pool has not restarted; call perdure_restart() before the file is opened");
  }
  return pool;
}

// Collective. Whether pretended nodes, which are on this machine, have the pool in one directory.
Result<bool> share_directory(MpiGroup& group, const NodeMap& map, const Pool& pool) {
  struct stat found{};
  if (map.one_machine && map.nodes > 1) (void)::stat(pool.directory().c_str(), &found);
  const std::array<std::uint64_t, 3> own = {map.node, found.st_dev, found.st_ino};
  std::vector<char> all;
  PERDURE_TRY(gather_all(group.comm(), own.data(), sizeof own, all));
  if (!map.one_machine || map.nodes == 1) return false;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> nodes;
  for (std::size_t at = 0; at < all.size(); at += sizeof own) {
    std::array<std::uint64_t, 3> other{};
    std::memcpy(other.data(), &all[at], sizeof other);
    if (nodes.emplace(std::pair(other[1], other[2]), other[0]).first->second != other[0])
      return true;
  }
  return false;
}

Status broadcast(MpiGroup& group, void* bytes, std::size_t count) {
  const int error = PMPI_Bcast(bytes, static_cast<int>(count), type_byte(), 0, group.comm());
  return error == MPI_SUCCESS ? Status::success() : mpi_status("MPI_Bcast", error);
}

}  // namespace

struct CachedFile::Founding {
  std::uint64_t file_bytes;
  std::uint64_t instance[2];
  std::uint64_t lock_owners;  // and the rank: its name as an owner of the lock
  ServiceToken token;
};

// What nobody else may choose nor guess.
Status CachedFile::draw(Founding& founding) {
  PERDURE_TRY(fill_random(founding.instance, sizeof founding.instance));
  for (std::uint64_t& word : founding.instance) word |= 1;
  PERDURE_TRY(fill_random(&founding.lock_owners, sizeof founding.lock_owners));
  founding.lock_owners = (founding.lock_owners >> 1) + 1;  // with a rank it is not 0
  auto token = new_token();
  if (token.ok()) founding.token = token.value();
  return token.status();
}

// Collective. Why levels of the pool can't keep the file with its versions; "".
Result<std::string> CachedFile::obstacle(MpiGroup& group, const NodeMap& map,
                                         const CacheOptions& options, const Pool& pool,
                                         bool known) {
  PERDURE_TRY_ASSIGN(const bool shared, share_directory(group, map, pool));
  std::uint64_t words[] = {known ? 1U : 0U};
  PERDURE_TRY(agree_max(group, Status::success(), words));
  if (group.ranks() != pool.ranks() || words[0] != 0) {
    return std::string("not all ranks of the pool open it together");
  }
  if (!options.directory.empty()) {
    return std::string(
        "its parts belong beside the pool, and perdure_cache_directory puts them elsewhere; leave "
        "that away");
  }
  if (shared) return std::string("nodes share the pool's directory");
  return std::string();
}

// Collective: releases what close() could not, because ranks that are in this group still had the
// file open.
Status CachedFile::release_served(MpiGroup& group, const std::string& path) {
  std::shared_ptr<CachedFile> old;
  OpenFiles& files = open_files();
  {
    const std::lock_guard<std::mutex> lock(files.mutex);
    const auto found = std::ranges::find_if(
        files.still_served, [&](const auto& file) { return file->backing_.path() == path; });
    if (found != files.still_served.end()) old = *found;
  }
  const bool whole = old != nullptr && old->openers_.are_all_of(group);
  const std::uint64_t instance = whole ? old->part().header().instance[0] : 0;
  std::array<std::uint64_t, 2> seen = {instance, ~instance};
  PERDURE_TRY(agree_max(group, Status::success(), seen));
  if (!whole || seen[0] != instance || seen[1] != ~instance) return Status::success();
  {
    const std::lock_guard<std::mutex> lock(files.mutex);
    std::erase(files.still_served, old);
  }
  PERDURE_TRY(agree(group, old->record_last_change()));
  return agree(group, old->tear_down(false));
}

Result<std::shared_ptr<CachedFile>> CachedFile::open(MpiGroup& group, const std::string& path,
                                                     const CacheOptions& options,
                                                     BackingFile::Access access) {
  auto backing = BackingFile::open(path, access);
  Status ready = backing.status();
  std::shared_ptr<CachedFile> known;
  if (ready.ok()) known = find_known({backing.value().device(), backing.value().inode()});
  if (known != nullptr) ready = known->become_cached();  // two handles of a file share its part
  PERDURE_TRY(agree(group, ready));
  const std::uint64_t instance = known ? known->part().header().instance[0] : 0;
  std::array<std::uint64_t, 4> seen = {known ? 1U : 0U, known ? 0U : 1U, instance, ~instance};
  PERDURE_TRY(agree_max(group, Status::success(), seen));
  const bool all_know = seen[1] == 0 && seen[2] == instance && seen[3] == ~instance;
  std::shared_ptr<CachedFile> file;
  // The handles before may have been for reading only.
  const Status access_taken =
      known ? known->backing_.take_access(backing.value()) : Status::success();
  PERDURE_TRY(agree(group, access_taken));
  if (all_know) {
    file = known;
  } else {
    if (seen[0] == 0) PERDURE_TRY(release_served(group, path));
    PERDURE_TRY_ASSIGN(file, make(group, backing.take(), known, options));
  }
  keep_open(file);
  return file;
}

void CachedFile::keep_open(const std::shared_ptr<CachedFile>& file) {
  const FileKey key(file->backing_.device(), file->backing_.inode());
  OpenFiles& files = open_files();
  const std::lock_guard<std::mutex> lock(files.mutex);
  ++file->handles_;
  files.by_key[key] = file;
  files.keys[file.get()] = key;
}

std::shared_ptr<CachedFile> CachedFile::open_aside(BackingFile backing, FileAside::Claim claim,
                                                   std::uint32_t rank, std::uint32_t ranks) {
  std::shared_ptr<CachedFile> file(new CachedFile(std::move(backing)));
  file->layout_ = claim.request.identity.layout;
  file->openers_ = {ranks, rank, ranks};
  file->lock_.set_owner(1);  // the process's number tells it from others of the node
  file->others_.begin(1, 0);
  file->aside_.emplace(std::move(claim));
  file->is_aside_.store(true, std::memory_order_release);
  keep_open(file);
  return file;
}

// A file that is committed with a pool may have been kept beside it, or not, in the life before.
Status CachedFile::recover(MpiGroup& group, const NodeMap& map, const BackingFile& backing,
                           const std::string& directory, Pool* pool) {
  GroupRecovery recovery;
  recovery.leads = map.leads();
  recovery.directories = {directory};
  if (pool == nullptr) return recover_group_file(group, backing, recovery);
  recovery.directories.insert(pool->directory());
  recovery.pool = pool->directory();
  recovery.version = *version_of(pool);
  recovery.brought_back = pool->of_image();
  const auto held = pool->held_share(backing.path());
  PERDURE_TRY(agree(group, held.status()));
  if (held.value()) recovery.image = ImageOfFile{held.value()->head, held.value()->bytes};
  return recover_group_file(group, backing, recovery);
}

Result<CachedFile::Founding> CachedFile::establish(MpiGroup& group, const NodeMap& map,
                                                   const BackingFile& backing,
                                                   const std::string& directory, Pool* pool) {
  PERDURE_TRY(recover(group, map, backing, directory, pool));
  Founding founding{};
  Status sized;
  if (group.rank() == 0) {
    auto bytes = backing.size_bytes();
    sized = bytes.status();
    if (bytes.ok()) founding.file_bytes = bytes.value();
    if (sized.ok()) sized = draw(founding);
  }
  PERDURE_TRY(agree(group, sized));
  PERDURE_TRY(broadcast(group, &founding, sizeof founding));
  return founding;
}

Status CachedFile::join_parts(MpiGroup& group, const NodeMap& map, const Founding& founding,
                              const std::string& directory, const Pool* pool) {
  Status status;
  if (map.leads() && part_.part == nullptr) {
    PartRequest request;
    request.directory = directory;
    request.identity.path = backing_.path();
    request.identity.file_device = backing_.device();
    request.identity.file_inode = backing_.inode();
    request.identity.node = map.node;
    request.identity.layout = layout_;
    std::copy_n(founding.instance, 2, request.identity.instance);
    request.file_bytes = founding.file_bytes;
    request.restored = version_of(pool);
    if (pool != nullptr) {
      std::copy_n(pool->job_id().words, 2, request.identity.pool_job);
      request.identity.pool = pool->directory();
      request.identity.pool_version = request.restored->version;
      request.identity.pool_incarnation = request.restored->incarnation;
      request.identity.next_incarnation = request.restored->next_incarnation;
    }
    auto made = make_part(request, backing_);
    status = made.status();
    if (made.ok()) part_ = made.take();
  }
  PERDURE_TRY(agree(group, status));
  if (part_.part == nullptr) {
    auto joined = join_part(directory, backing_.path());
    status = joined.status();
    if (joined.ok()) part_ = joined.take();
  }
  if (part_.part != nullptr) own_.emplace(*part_.part);
  return agree(group, status);
}

// Each rank of a node fills every so-many-th block of its part, and finds the others filled. What
// does not fit is left to those who ask for it.
Status CachedFile::prefetch(MpiGroup& group, const NodeMap& map) {
  const std::uint64_t block = layout_.block_bytes;
  const std::uint64_t bytes = part().size_bytes();
  Status status;
  std::uint64_t turn = 0;
  for (std::uint64_t at = 0; at < bytes && status.ok(); at += block) {
    if (place_of(layout_, at).node != others_.own()) continue;
    if (turn++ % map.local_ranks != map.local_rank) continue;
    const auto here = part().fill(at, 1);
    status = here.status();
    if (status.ok() && !here.value()) break;
  }
  return agree(group, status);
}

Result<std::shared_ptr<CachedFile>> CachedFile::make(MpiGroup& group, BackingFile backing,
                                                     std::shared_ptr<CachedFile> known,
                                                     const CacheOptions& options) {
  auto map = map_nodes(group.comm());
  PERDURE_TRY(agree(group, map.status()));
  std::string directory = directory_for(options, map.value());
  auto pool = find_pool(options);
  PERDURE_TRY(agree(group, pool.status()));
  bool kept = false;
  if (pool.value() != nullptr) {
    PERDURE_TRY_ASSIGN(
        kept, admit(group, map.value(), options, *pool.value(), known != nullptr, backing.path()));
    if (kept) directory = pool.value()->directory();
  }
  PERDURE_TRY_ASSIGN(auto founding,
                     establish(group, map.value(), backing, directory, pool.value()));
  std::shared_ptr<CachedFile> file = known;
  if (file == nullptr) file.reset(new CachedFile(std::move(backing)));
  const Layout layout =
      make_layout(options.layout, map.value().nodes, options.block_bytes, founding.file_bytes);
  Status fits;
  if (known && (known->layout_.nodes != 1 || layout.nodes != 1)) {
    fits = Status(Code::busy, known->path(),
                  " is open on some ranks of the communicator only, and cached on several nodes; "
                  "close it there first");
  }
  PERDURE_TRY(agree(group, fits));
  if (known == nullptr) file->layout_ = layout;
  const Status joined = file->join_parts(group, map.value(), founding, directory, pool.value());
  if (!joined.ok()) {
    if (known == nullptr) (void)file->tear_down(false);  // report the first failure
    return joined;
  }
  if (known) return file;
  file->layout_ = file->part().layout();  // of the part that was joined
  file->others_.begin(file->layout_.nodes, file->part().node());
  file->openers_ = {group.ranks(), map.value().local_rank, map.value().local_ranks};
  file->part().set_backing(&file->backing_);
  file->part().set_evicting(terms_of(options));
  file->part().set_teller(
      [](const std::string& what) { std::fprintf(stderr, "perdure: %s\n", what.c_str()); });
  file->lock_.set_owner(founding.lock_owners + group.rank());
  Status ready;
  if (file->layout_.nodes > 1) {
    ready = file->others_.serve(group, map.value(), file->part(), file->backing_, founding.token);
  }
  if (ready.ok()) ready = file->join_pool(group, pool.value(), founding.file_bytes, kept);
  if (ready.ok() && options.fetch == FetchTime::open) ready = file->prefetch(group, map.value());
  if (ready.ok()) return file;
  (void)file->tear_down(false);
  return ready;
}

bool CachedFile::is_any_known() {
  OpenFiles& files = open_files();
  const std::lock_guard<std::mutex> lock(files.mutex);
  return !files.by_key.empty();
}

bool CachedFile::is_known(std::uint64_t device, std::uint64_t inode) {
  return find_known({device, inode}) != nullptr;
}

bool CachedFile::is_path_taken(const std::string& path, std::uint64_t device, std::uint64_t inode) {
  OpenFiles& files = open_files();
  const std::lock_guard<std::mutex> lock(files.mutex);
  return std::ranges::any_of(files.by_key, [&](const auto& known) {
    return known.first != FileKey{device, inode} && known.second->path() == path;
  });
}

CachedFile::~CachedFile() {
  base_.leave(*this);
  delete spare_pieces_.load();
}

// Whether levels keep the file with the pool's versions.
Result<bool> CachedFile::admit(MpiGroup& group, const NodeMap& map, const CacheOptions& options,
                               Pool& pool, bool known, const std::string& path) {
  PERDURE_TRY_ASSIGN(const std::string why, obstacle(group, map, options, pool, known));
  const auto admitted = pool.admit_companion("file " + path, why);
  std::uint64_t words[] = {admitted.ok() && admitted.value() ? 1U : 0U};
  PERDURE_TRY(agree_max(group, admitted.status(), words));
  return words[0] != 0;
}

// parts.F1 of part_facts.hpp: all nodes have made their parts, and nobody can write yet.
Status CachedFile::join_pool(MpiGroup& group, Pool* pool, std::uint64_t file_bytes, bool kept) {
  if (pool == nullptr) return agree(group, Status::success());
  Status joined = base_.join(*pool, *this, file_bytes, kept);
  PERDURE_TRY(agree(group, joined));
  if (openers_.lead_node() && (kept || part().fact().fresh)) joined = part().set_in_use(kept);
  return agree(group, joined);
}

// parts.F1 of part_facts.hpp: the file has all, and no node has removed its part.
Status CachedFile::release_part(MpiGroup& group) {
  return agree(group, openers_.lead_node() ? part().set_in_use(false) : Status::success());
}

// The blocks of this node's part are dealt to the ranks that it had when they opened the file.
CompanionShare CachedFile::share() {
  const PartShare share = openers_.share_of(part(), base_.bytes());
  return {path(), share.head(), share.bytes()};
}

// Of any thread; what it reads here is set by committed(), before that thread begins.
Status CachedFile::read_share(std::uint64_t version, std::uint64_t offset,
                              std::span<std::byte> out) {
  PERDURE_TRY(base_.failure());
  const PartShare share = openers_.share_of(part(), base_.bytes());
  return share.read(part(), version, offset, out);
}

// What this rank wrote, and others of the nodes it wrote to, is durable there.
Status CachedFile::prepare(std::uint64_t version) {
  PERDURE_TRY(base_.failure());
  PERDURE_TRY(sync(SyncTarget::nvm));
  return part().set_prepared(version);
}

// Node 0 says how large the file was; a part that is recovered must know, or what was handed to the
// file beyond the end of its own bytes would stay there (cache.P9).
Status CachedFile::set_base_version(std::uint64_t version) {
  base_.begin(version);
  PERDURE_TRY_ASSIGN(auto first, at(0));
  PERDURE_TRY(base_.ask(*first));
  for (std::uint32_t node = 1; node < nodes(); ++node) {
    if (node != others_.own() && others_.connected(node) == nullptr) continue;
    PERDURE_TRY_ASSIGN(auto there, at(node));
    PERDURE_TRY(base_.tell(*there));
  }
  return Status::success();
}

Status CachedFile::tear_down(bool keep) {
  end_early_write_back();
  others_.end();
  if (part_.part == nullptr) return Status::success();
  return leave_part(std::move(part_), keep);
}

// cache.C5: no process has to find out whether those that still hold the part are dying (cache.C4).
Status CachedFile::tear_down_together(MpiGroup& group, bool gives_up, bool keep) {
  gives_up = gives_up && part_.part != nullptr;  // else it still stands aside here
  if (gives_up) end_early_write_back();
  const std::array<std::uint64_t, 2> own = {others_.own(), gives_up ? 1U : 0U};
  std::vector<char> all;
  Status status = gather_all(group.comm(), own.data(), sizeof own, all);
  bool first = true;
  for (std::uint32_t rank = 0; status.ok() && rank < group.rank(); ++rank) {
    if (std::memcmp(&all[rank * sizeof own], own.data(), sizeof own) == 0) first = false;
  }
  if (gives_up && !first) {
    others_.end();
    drop_part(std::move(part_));
  }
  status = agree(group, status);
  const Status left = gives_up && first ? tear_down(keep) : Status::success();
  return status.ok() ? left : status;
}

Status CachedFile::write_back_own(bool sync) {
  const std::uint64_t blocks = part_blocks_for(layout_, others_.own(), part().size_bytes());
  PERDURE_TRY_ASSIGN(auto tally, part().write_back(openers_.first_block(blocks), sync));
  tally_.written_back_bytes += tally.bytes;
  return Status::success();
}

// What nothing here would keep through a power failure need not be durable in the file either: a
// program without the cache does not wait for its disk at a close. The death of processes cannot
// take it from the file any more. The loss of this node could, and of a file that levels keep the
// next version's image says nothing.
bool CachedFile::syncs_file() {
  return base_.is_kept() ||
         part().device().describe().persistence == PersistenceClass::power_failure;
}

Status CachedFile::hand_over_own() {
  if (is_aside()) return Status::success();  // what a server could not keep the MPI's close reports
  if (syncs_file()) return write_back_own(true);
  PERDURE_TRY(part().changes().begin());
  Status handed = write_back_own(false);
  if (handed.ok()) handed = backing_.hand_over();
  const Status ended = part().changes().end();
  return handed.ok() ? ended : handed;
}

// cache.P14 of change_record.hpp: all nodes have handed over, and none has removed its part. One
// that outlives the others by a crash must know what they did to the file last.
Status CachedFile::record_last_change() {
  PERDURE_TRY(part().changes().begin());
  return part().changes().end();
}

Status CachedFile::close(std::shared_ptr<CachedFile> file, MpiGroup& group, bool discard) {
  file->end_early_write_back();  // this rank writes the rest itself
  Status status = file->others_.drain();
  // What another rank sends to this node is there when all have drained.
  if (file->nodes() > 1) status = agree(group, status);
  // Ranks that are not in the group do not write back now what this one sent to their nodes.
  const bool whole = file->nodes() == 1 || file->openers_.are_all_of(group);
  const bool has_part = !file->is_aside();
  if (status.ok() && !discard) {
    status = whole ? file->hand_over_own() : file->sync(SyncTarget::file);
  }
  file->tally_.aside = !has_part;
  if (has_part) {
    file->tally_.filled_bytes = file->part().filled_bytes();
    file->tally_.passed_bytes = file->part().passed_bytes();
    file->tally_.evicted_bytes = file->part().evicted_bytes();
  }
  OpenFiles& files = open_files();
  bool last = false;
  {
    const std::lock_guard<std::mutex> lock(files.mutex);
    last = --file->handles_ == 0;
    if (last) {
      file->base_.leave(*file);
      files.by_key.erase(files.keys[file.get()]);
      files.keys.erase(file.get());
    }
  }
  std::array<std::uint64_t, 2> others = {last ? 0U : 1U, has_part ? 1U : 0U};
  status = agree_max(group, status, others);
  if (others[1] == 0) return status;  // it stood aside to its end
  if (status.ok() && file->nodes() > 1) status = agree(group, file->record_last_change());
  if (status.ok() && file->base_.is_kept() && file->openers_.are_all_of(group) && others[0] == 0) {
    status = file->release_part(group);
  }
  const bool keep = !status.ok() && !discard;
  // A rank that still has it open, in the group or not, needs what this node keeps.
  const bool serves = file->nodes() > 1 && (others[0] != 0 || !whole);
  const Status left = file->tear_down_together(group, last && !serves, keep);
  if (last && serves) {
    const std::lock_guard<std::mutex> lock(files.mutex);
    files.still_served.push_back(std::move(file));
  }
  return status.ok() ? left : status;
}

bool CachedFile::is_any_served() {
  OpenFiles& files = open_files();
  const std::lock_guard<std::mutex> lock(files.mutex);
  return !files.still_served.empty();
}

void CachedFile::end_served(std::uint32_t wait_ms) {
  std::vector<std::shared_ptr<CachedFile>> served;
  {
    OpenFiles& files = open_files();
    const std::lock_guard<std::mutex> lock(files.mutex);
    served.swap(files.still_served);
  }
  for (const auto& file : served) (void)file->end_connections();
  for (const auto& file : served) {
    file->others_.end_service(wait_ms);
    const Status handed = file->hand_over_own();  // what others have sent since the close here
    (void)file->tear_down(!handed.ok());
  }
}

Result<PartAccess*> CachedFile::at(std::uint32_t node) {
  if (node == others_.own()) return static_cast<PartAccess*>(&*own_);
  PartClient* there = others_.connected(node);
  if (there == nullptr) {
    PERDURE_TRY_ASSIGN(there, others_.connect(node, [this](PartClient& client) {
      return part().with_pool() ? base_.tell(client) : Status::success();
    }));
  }
  return static_cast<PartAccess*>(there);
}

Status CachedFile::read(std::uint64_t offset, void* to, std::uint64_t bytes) {
  if (is_aside()) {
    PERDURE_TRY_ASSIGN(const auto got, read_aside(offset, to, bytes));
    if (got) {
      std::memset(static_cast<char*>(to) + *got, 0, bytes - *got);
      return Status::success();
    }
  }
  if (layout_.nodes == 1) return part().read(offset, to, bytes);
  auto* place = static_cast<char*>(to);
  while (bytes != 0) {
    const std::uint64_t run = run_on_node(layout_, offset, bytes);
    const std::uint32_t node = place_of(layout_, offset).node;
    PERDURE_TRY_ASSIGN(auto part_there, at(node));
    PERDURE_TRY(part_there->read(offset, place, run));
    if (node != others_.own()) tally_.remote_bytes.fetch_add(run, std::memory_order_relaxed);
    place += run;
    offset += run;
    bytes -= run;
  }
  return Status::success();
}

Status CachedFile::write(std::uint64_t offset, const void* from, std::uint64_t bytes,
                         Acknowledge when) {
  PERDURE_TRY(base_.failure());  // what it would change could not be undone
  if (is_aside()) {
    PERDURE_TRY_ASSIGN(const bool done, write_aside(offset, from, bytes));
    if (done) return Status::success();
  }
  if (layout_.nodes == 1) return part().write(offset, from, bytes, when);
  const std::uint64_t end = offset + bytes;
  const auto* place = static_cast<const char*>(from);
  while (bytes != 0) {
    const std::uint64_t run = run_on_node(layout_, offset, bytes);
    const std::uint32_t node = place_of(layout_, offset).node;
    PERDURE_TRY_ASSIGN(auto part_there, at(node));
    PERDURE_TRY(part_there->write(offset, place, run, when));
    if (node != others_.own()) tally_.remote_bytes.fetch_add(run, std::memory_order_relaxed);
    place += run;
    offset += run;
    bytes -= run;
  }
  return end <= known_size_.load(std::memory_order_relaxed) ? Status::success() : grow_size(end);
}

Result<std::uint64_t> CachedFile::size_bytes(std::uint64_t enough) {
  std::uint64_t aside = 0;
  PERDURE_TRY_ASSIGN(const bool done, do_aside([&](const BackingFile& file) -> Status {
                       PERDURE_TRY_ASSIGN(aside, file.size_bytes());
                       return Status::success();
                     }));
  if (done) return aside;
  if (layout_.nodes == 1) return part().size_bytes();
  const std::uint64_t known = known_size_.load(std::memory_order_relaxed);
  if (known >= enough && enough != 0) return known;
  PERDURE_TRY_ASSIGN(auto first, at(0));
  PERDURE_TRY_ASSIGN(auto size, first->size());
  known_size_.store(size, std::memory_order_relaxed);
  return size;
}

// Node 0 says how large the file is.
Status CachedFile::grow_size(std::uint64_t bytes) {
  PERDURE_TRY_ASSIGN(auto first, at(0));
  PERDURE_TRY(first->grow_size(bytes));
  std::uint64_t known = known_size_.load(std::memory_order_relaxed);
  while (known < bytes && !known_size_.compare_exchange_weak(known, bytes)) {
  }
  return Status::success();
}

Status CachedFile::sync(SyncTarget request) {
  if (is_aside()) {
    PERDURE_TRY(backing_.sync());
    return aside_->entry().table().check();
  }
  known_size_.store(0, std::memory_order_relaxed);
  Status status = others_.drain();
  if (status.ok()) {
    status = request == SyncTarget::file ? write_back_own(true) : part().persist();
  }
  // What was written is in the file by now; what is written next could not be recovered.
  if (status.ok()) status = part().device().check();
  if (!status.ok()) return status;
  return others_.for_each_connected([request](PartClient& there) {
    return request == SyncTarget::file ? there.write_back(0, true).status() : there.persist();
  });
}

Result<int> CachedFile::take_pointer() {
  PERDURE_TRY_ASSIGN(auto first, at(0));
  PERDURE_TRY_ASSIGN(auto slot, first->take_pointer());
  if (slot >= 0) return slot;
  return Status(Code::no_space, path(), " is open ", shared_pointers_max,
                " times already; close some handles of it");
}

Status CachedFile::give_pointer(int slot) {
  if (FileAside::is_pointer_slot(slot)) return Status::success();
  PERDURE_TRY_ASSIGN(auto first, at(0));
  return first->give_pointer(slot);
}

Result<std::uint64_t> CachedFile::add_to_pointer(int slot, std::int64_t bytes) {
  if (FileAside::is_pointer_slot(slot)) {
    return aside_->pointer(slot).fetch_add(static_cast<std::uint64_t>(bytes));
  }
  PERDURE_TRY_ASSIGN(auto first, at(0));
  return first->add_to_pointer(slot, bytes);
}

Status CachedFile::store_pointer(int slot, std::uint64_t bytes) {
  if (FileAside::is_pointer_slot(slot)) {
    aside_->pointer(slot).store(bytes);
    return Status::success();
  }
  PERDURE_TRY_ASSIGN(auto first, at(0));
  return first->store_pointer(slot, bytes);
}

Result<std::uint64_t> CachedFile::load_pointer(int slot) {
  if (FileAside::is_pointer_slot(slot)) return aside_->pointer(slot).load();
  PERDURE_TRY_ASSIGN(auto first, at(0));
  return first->load_pointer(slot);
}

Status CachedFile::lock() {
  PERDURE_TRY(become_cached());
  PERDURE_TRY_ASSIGN(auto first, at(0));
  return lock_.lock(*first);
}

Status CachedFile::unlock() {
  return lock_.unlock(at(0));
}

}  // namespace perdure
