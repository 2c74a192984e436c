// SPDX-License-Identifier: BSD-3-Clause
//
// What Linux 6.7 and later have to find written pages, and 6.11 to look up mappings, as their
// headers define it: linux/userfaultfd.h and linux/fs.h of the distributions that we build on are
// older. Whether the running kernel has it is found out by asking it.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace perdure::kernel {

// Features of UFFDIO_API.
constexpr std::uint64_t wp_hugetlbfs_shmem = 1U << 12U;
constexpr std::uint64_t wp_unpopulated = 1U << 13U;
constexpr std::uint64_t wp_async = 1U << 15U;

// PAGEMAP_SCAN, of /proc/PID/pagemap.
struct PageRegion {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
struct ScanArgument {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;  // out: where it stopped
  std::uint64_t vec;       // PageRegion[vec_len], or 0
  std::uint64_t vec_len;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
static_assert(sizeof(ScanArgument) == 96);
constexpr std::uint64_t page_is_written = 1U << 1U;
constexpr std::uint64_t scan_protect_matching = 1U << 0U;
constexpr std::uint64_t scan_check_async = 1U << 1U;
constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanArgument);

// PROCMAP_QUERY, of /proc/PID/maps.
struct MappingQuery {
  std::uint64_t size;
  std::uint64_t query_flags;
  std::uint64_t query_addr;
  std::uint64_t vma_start;
  std::uint64_t vma_end;
  std::uint64_t vma_flags;
  std::uint64_t vma_page_size;
  std::uint64_t vma_offset;
  std::uint64_t inode;
  std::uint32_t dev_major;
  std::uint32_t dev_minor;
  std::uint32_t vma_name_size;
  std::uint32_t build_id_size;
  std::uint64_t vma_name_addr;
  std::uint64_t build_id_addr;
};
static_assert(sizeof(MappingQuery) == 104);
constexpr std::uint64_t vma_readable = 0x01;
constexpr std::uint64_t vma_writable = 0x02;
constexpr std::uint64_t vma_shared = 0x08;
constexpr unsigned long procmap_query = _IOWR('f', 17, MappingQuery);

}  // namespace perdure::kernel
