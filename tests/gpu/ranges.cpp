// SPDX-License-Identifier: BSD-3-Clause
#include "ranges.hpp"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "address.hpp"
#include "driver.hpp"

namespace fake {
namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t page_begin(std::uint64_t at) {
  return at / page_bytes * page_bytes;
}
constexpr std::uint64_t page_end(std::uint64_t at) {
  return page_begin(at + page_bytes - 1);
}

// System calls of the driver's own: the program may have taken the names of the C library.
std::byte* map_anonymous(std::size_t size_bytes, int protection) {
  const long at = ::syscall(SYS_mmap, nullptr, size_bytes, protection,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
  return at == -1 ? nullptr : at_address(static_cast<std::uint64_t>(at));
}
void unmap(std::uint64_t at, std::size_t size_bytes) {
  ::syscall(SYS_munmap, at, size_bytes);
}

// Another mapping of the same pages.
std::byte* map_again(std::uint64_t at, std::size_t size_bytes, bool to_store) {
  const long again = ::syscall(SYS_mremap, at, 0L, size_bytes, MREMAP_MAYMOVE, 0L);
  if (again == -1) return nullptr;
  if (to_store) ::syscall(SYS_mprotect, again, size_bytes, PROT_READ | PROT_WRITE);
  return at_address(static_cast<std::uint64_t>(again));
}

// Whether the driver can pin what the mapping shows: memory, also of files of a file system that
// is memory, or of a DAX device, but nothing that lies on a disk.
bool is_memory(const Mapping& mapping) {
  if (mapping.inode == 0) return true;
  for (const char* const inside : {"/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage"}) {
    if (mapping.path.rfind(inside, 0) == 0) return true;
  }
  struct stat status{};
  struct statfs system{};
  const std::string path = mapping.path.substr(0, mapping.path.find(" (deleted)"));
  if (::stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode)) return true;
  // Of a file that has no name any more, its folder tells the file system.
  const std::string place = path.substr(0, path.find_last_of('/') + 1);
  if (!mapping.is_shared || ::statfs(place.c_str(), &system) != 0) return !mapping.is_shared;
  return system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC ||
         system.f_type == RAMFS_MAGIC;
}

bool cover(const std::vector<Mapping>& mappings, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t at = begin;
  for (const Mapping& mapping : mappings) {
    if (mapping.begin != at) return false;
    at = mapping.end;
  }
  return at == end;
}

bool is_still(const Mapping& then) {
  const std::vector<Mapping> now = mappings_of(then.begin, then.end);
  if (!cover(now, then.begin, then.end)) return false;
  return std::all_of(now.begin(), now.end(), [&](const Mapping& part) {
    return part.inode == then.inode && part.device == then.device &&
           (then.inode == 0 || part.offset == then.offset + (part.begin - then.begin));
  });
}

void unmap_aliases(const Range& range) {
  for (const auto& alias : range.aliases) {
    if (alias.at == nullptr) continue;
    unmap(page_begin(reinterpret_cast<std::uint64_t>(alias.at)),
          page_end(alias.end) - page_begin(alias.begin));
  }
}

}  // namespace

std::vector<Mapping> mappings_of(std::uint64_t begin, std::uint64_t end) {
  std::vector<Mapping> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping{};
    char access[8] = "";
    char device[16] = "";
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %15s %lu %n", &mapping.begin, &mapping.end,
                    access, &mapping.offset, device, &mapping.inode, &path) < 6) {
      continue;
    }
    if (mapping.end <= begin || mapping.begin >= end || access[0] != 'r') continue;
    const std::uint64_t from = std::max(begin, mapping.begin);
    mapping.offset += from - mapping.begin;
    mapping.begin = from;
    mapping.end = std::min(end, mapping.end);
    mapping.may_store = access[1] == 'w';
    mapping.is_shared = access[3] == 's';
    mapping.device = device;
    mapping.path = line.substr(static_cast<std::size_t>(path));
    // Linux 6.18 lists a mapping twice that grows meanwhile; the later line is how it is.
    while (!found.empty() && mapping.begin < found.back().end) found.pop_back();
    found.push_back(mapping);
  }
  return found;
}

int Ranges::allocate(Kind kind, std::size_t size_bytes, CudaContext* context, std::uint64_t* at) {
  if (size_bytes == 0) return CUDA_INVALID_VALUE;
  if (something_went()) return CUDA_ALREADY_MAPPED;
  if (kind == Kind::of_device && device_bytes(context->device) + size_bytes > settings().bytes) {
    return CUDA_OUT_OF_MEMORY;
  }
  // Small memory of a device begins anywhere that is a multiple of 256, as it does there.
  const std::uint64_t offset =
      kind == Kind::of_device && size_bytes < (1U << 20U) ? settings().draw() % 16 * 256 : 0;
  const std::size_t mapped_bytes = page_end(offset + size_bytes);
  std::byte* const alias = map_anonymous(mapped_bytes, PROT_READ | PROT_WRITE);
  std::byte* const seen = kind == Kind::of_device ? map_anonymous(mapped_bytes, PROT_NONE) : alias;
  if (alias == nullptr || seen == nullptr) return CUDA_OUT_OF_MEMORY;
  // What was there before is anything.
  if (kind == Kind::of_device) std::memset(alias, 0xD7, mapped_bytes);
  Range made{
      kind, reinterpret_cast<std::uint64_t>(seen) + offset, size_bytes, context, true, {}, {}, 0};
  made.aliases = {{made.begin, made.begin + size_bytes, alias + offset}};
  made.number = ++made_;
  *at = made.begin;
  ranges_[made.begin] = std::move(made);
  return CUDA_OK;
}

int Ranges::release(std::uint64_t at, bool of_gpu) {
  const auto found = ranges_.find(at);
  if (found == ranges_.end()) return CUDA_INVALID_VALUE;
  const Range& range = found->second;
  if (range.kind == Kind::registered || range.is_of_gpu() != of_gpu) return CUDA_INVALID_VALUE;
  unmap_aliases(range);
  if (range.kind == Kind::of_device) {
    unmap(page_begin(at), page_end(at + range.size_bytes) - page_begin(at));
  }
  ranges_.erase(found);
  return CUDA_OK;
}

int Ranges::add_registered(std::uint64_t at, std::size_t size_bytes, bool read_only,
                           CudaContext* context) {
  if (at == 0 || size_bytes == 0 || settings().no_registering) return CUDA_INVALID_VALUE;
  if (something_went()) return CUDA_ALREADY_MAPPED;
  const std::uint64_t begin = page_begin(at);
  const std::uint64_t end = page_end(at + size_bytes);
  for (const auto& [other, range] : ranges_) {
    // Pages are pinned, so two registrations cannot share one.
    if (page_begin(other) < end && page_end(other + range.size_bytes) > begin) {
      return CUDA_ALREADY_REGISTERED;
    }
  }
  Range made{Kind::registered, at, size_bytes, context, !read_only, {}, mappings_of(begin, end), 0};
  if (!cover(made.mappings, begin, end)) return CUDA_INVALID_VALUE;
  for (const Mapping& mapping : made.mappings) {
    if (!is_memory(mapping) || (!mapping.may_store && !read_only)) return CUDA_INVALID_VALUE;
  }
  for (const Mapping& mapping : made.mappings) {
    const std::uint64_t first = std::max(mapping.begin, at);
    const std::uint64_t last = std::min(mapping.end, at + size_bytes);
    std::byte* const again = mapping.is_shared
                                 ? map_again(mapping.begin, mapping.end - mapping.begin, !read_only)
                                 : nullptr;
    if (mapping.is_shared && again == nullptr) return CUDA_INVALID_VALUE;
    made.aliases.push_back(
        {first, last, again == nullptr ? nullptr : again + (first - mapping.begin)});
  }
  made.number = ++made_;
  ranges_[at] = std::move(made);
  return CUDA_OK;
}

int Ranges::remove_registered(std::uint64_t at) {
  const auto found = ranges_.find(at);
  if (found == ranges_.end() || found->second.kind != Kind::registered) return CUDA_NOT_REGISTERED;
  unmap_aliases(found->second);
  ranges_.erase(found);
  return CUDA_OK;
}

void Ranges::release_all_of(const CudaContext* context) {
  for (auto each = ranges_.begin(); each != ranges_.end();) {
    const std::uint64_t at = each->first;
    const Range& range = each->second;
    const bool is_its_own = range.context == context;
    const bool is_registered = range.kind == Kind::registered;
    const bool of_gpu = range.is_of_gpu();
    ++each;
    if (!is_its_own) continue;
    if (is_registered) {
      remove_registered(at);
    } else {
      release(at, of_gpu);
    }
  }
}

const Range* Ranges::find(std::uint64_t at) const {
  auto after = ranges_.upper_bound(at);
  if (after == ranges_.begin()) return nullptr;
  --after;
  return at - after->first < after->second.size_bytes ? &after->second : nullptr;
}

bool Ranges::something_went() const {
  return std::any_of(ranges_.begin(), ranges_.end(), [](const auto& each) {
    const auto& mappings = each.second.mappings;
    return !std::all_of(mappings.begin(), mappings.end(), is_still);
  });
}

std::uint64_t Ranges::device_bytes(int device) const {
  std::uint64_t sum = 0;
  for (const auto& [at, range] : ranges_) {
    if (range.kind == Kind::of_device && (device < 0 || range.context->device == device)) {
      sum += range.size_bytes;
    }
  }
  return sum;
}

std::uint64_t Ranges::count(Kind kind) const {
  return static_cast<std::uint64_t>(std::count_if(
      ranges_.begin(), ranges_.end(), [&](const auto& each) { return each.second.kind == kind; }));
}

std::uint64_t Ranges::registered_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [at, range] : ranges_) {
    if (range.kind == Kind::registered) bytes += range.size_bytes;
  }
  return bytes;
}

std::byte* Ranges::look(const Range& range, std::uint64_t at, std::size_t* follow) {
  for (const auto& alias : range.aliases) {
    if (at < alias.begin || at >= alias.end) continue;
    *follow = alias.end - at;
    return alias.at == nullptr ? nullptr : alias.at + (at - alias.begin);
  }
  *follow = 0;
  return nullptr;
}

}  // namespace fake
