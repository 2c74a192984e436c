// SPDX-License-Identifier: BSD-3-Clause
#include "base/loaded_code.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace perdure {
namespace {

#if defined(__x86_64__)
constexpr unsigned of_calls = R_X86_64_JUMP_SLOT;
constexpr unsigned of_addresses = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr unsigned of_calls = R_AARCH64_JUMP_SLOT;
constexpr unsigned of_addresses = R_AARCH64_GLOB_DAT;
#else
#error "which relocations are words of linkage tables?"
#endif

// One executable or library.
class Image {
 public:
  explicit Image(const dl_phdr_info& info) : info_(info) {
    for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info.dlpi_phdr[i];
      if (header.p_type == PT_DYNAMIC) read_dynamic(at<ElfW(Dyn)>(header.p_vaddr));
      if (header.p_type == PT_GNU_RELRO) relro_ = &header;
    }
  }

  bool holds(std::uintptr_t address) const {
    for (unsigned i = 0; i < info_.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info_.dlpi_phdr[i];
      const std::uintptr_t offset = address - info_.dlpi_addr - header.p_vaddr;
      if (header.p_type == PT_LOAD && offset < header.p_memsz) return true;
    }
    return false;
  }

  unsigned lead(const char* name, void* from, void* to) const {
    if (symbols_ == nullptr || names_ == nullptr) return 0;
    return lead_in(calls_, calls_bytes_, name, from, to) +
           lead_in(addresses_, addresses_bytes_, name, from, to);
  }

 private:
  template <typename T>
  const T* at(ElfW(Addr) offset) const {
    return reinterpret_cast<const T*>(info_.dlpi_addr + offset);
  }
  // The loader has made addresses of most of these; the kernel's own image is left as it was.
  template <typename T>
  const T* table(ElfW(Addr) value) const {
    return value < info_.dlpi_addr ? at<T>(value) : reinterpret_cast<const T*>(value);
  }

  void read_dynamic(const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = table<ElfW(Sym)>(entry->d_un.d_ptr);
          break;
        case DT_STRTAB:
          names_ = table<char>(entry->d_un.d_ptr);
          break;
        case DT_JMPREL:
          calls_ = table<ElfW(Rela)>(entry->d_un.d_ptr);
          break;
        case DT_PLTRELSZ:
          calls_bytes_ = entry->d_un.d_val;
          break;
        case DT_RELA:
          addresses_ = table<ElfW(Rela)>(entry->d_un.d_ptr);
          break;
        case DT_RELASZ:
          addresses_bytes_ = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
  }

  unsigned lead_in(const ElfW(Rela) * entries, std::size_t bytes, const char* name, void* from,
                   void* to) const {
    unsigned changed = 0;
    for (std::size_t i = 0; entries != nullptr && i < bytes / sizeof *entries; ++i) {
      const auto type = static_cast<unsigned>(ELF64_R_TYPE(entries[i].r_info));
      if (type != of_calls && type != of_addresses) continue;
      const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(entries[i].r_info)];
      if (std::strcmp(names_ + symbol.st_name, name) != 0) continue;
      auto** word = reinterpret_cast<void**>(info_.dlpi_addr + entries[i].r_offset);
      changed += change(word, symbol.st_shndx == SHN_UNDEF, from, to);
    }
    return changed;
  }

  // A word that was not used yet leads into its own image, to what will look the function up;
  // unless the image has such a function.
  unsigned change(void** word, bool is_elsewhere, void* from, void* to) const {
    void* now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    const bool unused = is_elsewhere && holds(reinterpret_cast<std::uintptr_t>(now));
    if (now != from && !unused) return 0;
    if (now == to || !protect(word, PROT_READ | PROT_WRITE)) return 0;
    __atomic_store_n(word, to, __ATOMIC_RELEASE);
    (void)protect(word, PROT_READ);
    return 1;
  }

  // If the word is in what the loader has made read-only.
  bool protect(void** word, int protection) const {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(word);
    if (relro_ == nullptr) return true;
    const std::uintptr_t begin = (info_.dlpi_addr + relro_->p_vaddr) / page * page;
    const std::uintptr_t end = (info_.dlpi_addr + relro_->p_vaddr + relro_->p_memsz) / page * page;
    if (address < begin || address >= end) return true;
    return ::mprotect(reinterpret_cast<void*>(address / page * page), page, protection) == 0;
  }

  const dl_phdr_info& info_;
  const ElfW(Phdr) * relro_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const ElfW(Rela) * calls_ = nullptr;
  const ElfW(Rela) * addresses_ = nullptr;
  std::size_t calls_bytes_ = 0;
  std::size_t addresses_bytes_ = 0;
};

struct Change {
  const char* name;
  void* from;
  void* to;
  unsigned count = 0;
};

int change_image(dl_phdr_info* info, std::size_t /*bytes*/, void* data) {
  auto& change = *static_cast<Change*>(data);
  const Image image(*info);
  // Of `from` and `to`, one is this library's and the other that which defines the function.
  const bool own = image.holds(reinterpret_cast<std::uintptr_t>(change.to)) ||
                   image.holds(reinterpret_cast<std::uintptr_t>(change.from));
  if (!own) change.count += image.lead(change.name, change.from, change.to);
  return 0;
}

int look_in_image(dl_phdr_info* info, std::size_t /*bytes*/, void* data) {
  return Image(*info).holds(*static_cast<const std::uintptr_t*>(data)) ? 1 : 0;
}

}  // namespace

bool is_in_loaded_code(std::uintptr_t address) {
  return ::dl_iterate_phdr(look_in_image, &address) != 0;
}

std::uint64_t libraries_loaded() {
  std::uint64_t loaded = 0;
  const auto read = [](dl_phdr_info* info, std::size_t, void* data) {
    *static_cast<std::uint64_t*>(data) = info->dlpi_adds;
    return 1;
  };
  (void)::dl_iterate_phdr(read, &loaded);
  return loaded;
}

void* function_named(const char* name) {
  return ::dlsym(RTLD_DEFAULT, name);
}

unsigned lead_calls(const char* name, void* from, void* to) {
  Change change{name, from, to};
  if (from != nullptr) (void)::dl_iterate_phdr(change_image, &change);
  return change.count;
}

}  // namespace perdure
