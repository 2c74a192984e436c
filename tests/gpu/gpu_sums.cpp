// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels on whatever driver there is, against the processor:
//
//     gpu_sums BLOCKS
//
// Prints a fact for the checksums of so many random blocks of 64 KiB and of 16 pages in each, one
// for what is listed as changed, and one for what is stored. Exits with 1 if anything differs, with
// 3 and a sentence where there is no GPU.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/data_checksum.hpp"
#include "cuda_driver.h"
#include "source_tree.hpp"
#include "test_seed.hpp"

namespace {

constexpr std::size_t block = 65536;
constexpr std::size_t page = 4096;
constexpr std::size_t words = block / 8;

void check(int code, const char* what) {
  if (code == CUDA_OK) return;
  const char* sentence = "";
  cuGetErrorString(code, &sentence);
  std::fprintf(stderr, "gpu_sums: %s: %s (%d)\n", what, sentence, code);
  std::exit(1);
}

struct Gpu {
  CudaFunctionHandle block_sums = nullptr;
  CudaFunctionHandle page_sums = nullptr;
  CudaFunctionHandle list_changed = nullptr;
  CudaFunctionHandle store = nullptr;
  CudaStreamHandle stream = nullptr;
};

template <typename... Arguments>
void launch(const Gpu& gpu, CudaFunctionHandle kernel, unsigned blocks, Arguments... arguments) {
  void* places[] = {&arguments...};
  check(cuLaunchKernel(kernel, blocks, 1, 1, 256, 1, 1, 0, gpu.stream, places, nullptr),
        "cuLaunchKernel");
}

CudaPointer allocated(std::size_t bytes) {
  CudaPointer at = 0;
  check(cuMemAlloc_v2(&at, bytes), "cuMemAlloc");
  return at;
}

template <typename T>
std::vector<T> read(const Gpu& gpu, CudaPointer from, std::size_t count) {
  std::vector<T> to(count);
  check(cuMemcpyDtoHAsync_v2(to.data(), from, count * sizeof(T), gpu.stream), "cuMemcpyDtoH");
  check(cuStreamSynchronize(gpu.stream), "cuStreamSynchronize");
  return to;
}

Gpu open_gpu() {
  Gpu gpu;
  CudaContextHandle context = nullptr;
  CudaModuleHandle module = nullptr;
  if (cuInit(0) != CUDA_OK) {
    std::fprintf(stderr, "gpu_sums: there is no GPU here\n");
    std::exit(3);
  }
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  std::ifstream file(perdure::source_file("src/device/kernels.ptx"));
  std::stringstream text;
  text << file.rdbuf();
  check(cuModuleLoadData(&module, text.str().c_str()), "cuModuleLoadData");
  check(cuModuleGetFunction(&gpu.block_sums, module, "perdure_block_sums"), "block_sums");
  check(cuModuleGetFunction(&gpu.page_sums, module, "perdure_page_sums"), "page_sums");
  check(cuModuleGetFunction(&gpu.list_changed, module, "perdure_list_changed"), "list_changed");
  check(cuModuleGetFunction(&gpu.store, module, "perdure_store"), "store");
  check(cuStreamCreate(&gpu.stream, CUDA_STREAM_NON_BLOCKING), "cuStreamCreate");
  return gpu;
}

struct Counts {
  std::size_t blocks = 0, wrong_blocks = 0, pages = 0, wrong_pages = 0;
  std::size_t listed = 0, wrong_listed = 0, wrong_stored = 0;
};

std::size_t wrong_sums(const std::vector<std::uint64_t>& sums,
                       const std::vector<std::uint64_t>& data, std::size_t unit_bytes) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); i++) {
    const std::uint64_t right = perdure::data_checksum(
        perdure::DataChecksum::xxh3, data.data() + i * unit_bytes / 8, unit_bytes);
    if (sums[i] != right) wrong++;
  }
  return wrong;
}

class Batch {
 public:
  Batch(const Gpu& gpu, std::size_t blocks)
      : gpu_(gpu),
        blocks_(blocks),
        data_(allocated(blocks * block)),
        other_(allocated(blocks * block)),
        sums_(allocated(blocks * 16 * 8)),
        table_(allocated(blocks * 8)),
        list_(allocated(blocks * 4)),
        count_(allocated(4)) {}

  void run(std::mt19937_64& random, Counts& counts) {
    std::vector<std::uint64_t> bytes(blocks_ * words);
    std::generate(bytes.begin(), bytes.end(), std::ref(random));
    send(data_, bytes);
    check(cuMemsetD8Async(other_, 0, blocks_ * block, gpu_.stream), "cuMemsetD8");
    launch(gpu_, gpu_.page_sums, 128, data_, sums_, std::uint64_t{blocks_ * 16});
    counts.wrong_pages += wrong_sums(read<std::uint64_t>(gpu_, sums_, blocks_ * 16), bytes, page);
    counts.pages += blocks_ * 16;
    launch(gpu_, gpu_.block_sums, 128, data_, sums_, std::uint64_t{blocks_});
    std::vector<std::uint64_t> sums = read<std::uint64_t>(gpu_, sums_, blocks_);
    counts.wrong_blocks += wrong_sums(sums, bytes, block);
    counts.blocks += blocks_;
    store_changed(random, sums, bytes, counts);
  }

 private:
  void send(CudaPointer to, const std::vector<std::uint64_t>& from) const {
    check(cuMemcpyHtoDAsync_v2(to, from.data(), from.size() * 8, gpu_.stream), "cuMemcpyHtoD");
    check(cuStreamSynchronize(gpu_.stream), "cuStreamSynchronize");
  }

  // A tenth of the blocks differs from the table: these are listed, and stored elsewhere.
  void store_changed(std::mt19937_64& random, std::vector<std::uint64_t> table,
                     const std::vector<std::uint64_t>& bytes, Counts& counts) const {
    std::vector<std::uint32_t> changed;
    for (std::size_t i = 0; i < blocks_; i++) {
      if (random() % 10 != 0) continue;
      table[i]++;
      changed.push_back(static_cast<std::uint32_t>(i));
    }
    send(table_, table);
    check(cuMemsetD8Async(count_, 0, 4, gpu_.stream), "cuMemsetD8");
    launch(gpu_, gpu_.list_changed, 128, sums_, table_, list_, count_, std::uint64_t{blocks_});
    launch(gpu_, gpu_.store, 2, data_, other_, list_, count_, std::uint64_t{block});
    auto list = read<std::uint32_t>(gpu_, list_, blocks_);
    list.resize(std::min<std::size_t>(blocks_, read<std::uint32_t>(gpu_, count_, 1)[0]));
    std::sort(list.begin(), list.end());
    counts.listed += changed.size();
    if (list != changed) counts.wrong_listed++;
    const auto stored = read<std::uint64_t>(gpu_, other_, blocks_ * words);
    for (std::size_t i = 0; i < blocks_; i++) {
      const bool is_listed = std::binary_search(changed.begin(), changed.end(), i);
      for (std::size_t word = i * words; word < (i + 1) * words; word++) {
        if (stored[word] != (is_listed ? bytes[word] : 0)) counts.wrong_stored++;
      }
    }
  }

  const Gpu& gpu_;
  std::size_t blocks_;
  CudaPointer data_, other_, sums_, table_, list_, count_;
};

void report(const char* what, std::size_t count, std::size_t wrong) {
  std::printf(R"({"bench": "gpu_check", "case": "%s", "metric": "wrong", "value": %zu, )"
              R"("unit": "of %zu", "target": 0, "holds": %s})"
              "\n",
              what, wrong, count, wrong == 0 ? "true" : "false");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::size_t wanted = std::strtoull(argv[1], nullptr, 10);
  const Gpu gpu = open_gpu();
  std::mt19937_64 random(perdure::test_seed());
  Counts counts;
  const std::size_t at_once = std::clamp<std::size_t>(wanted, 1, 4096);
  Batch batch(gpu, at_once);
  while (counts.blocks < wanted) batch.run(random, counts);
  report("sums of blocks", counts.blocks, counts.wrong_blocks);
  report("sums of pages", counts.pages, counts.wrong_pages);
  report("blocks listed as changed", counts.listed, counts.wrong_listed);
  report("blocks stored", counts.listed, counts.wrong_stored);
  return counts.wrong_blocks + counts.wrong_pages + counts.wrong_listed + counts.wrong_stored == 0
             ? 0
             : 1;
}
