// SPDX-License-Identifier: BSD-3-Clause
//
// Four threads, each with its own 2 MB, and threads that end before the next begins: threads WHICH
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr long lines = 32768, line = 64;

void touch(char* p) {
  for (long i = 0; i < lines; ++i) *static_cast<volatile char*>(p + i * line) = 1;
}

}  // namespace

int main(int, char** words) {
  constexpr int threads = 4;
  char* p = static_cast<char*>(std::aligned_alloc(4096, threads * lines * line));
  if (std::strcmp(words[1], "openmp") == 0) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int i = 0; i < threads; ++i) touch(p + i * lines * line);
    return 0;
  }
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back(touch, p + i * lines * line);
    if (std::strcmp(words[1], "turns") == 0) running.back().join();
  }
  for (std::thread& thread : running) {
    if (thread.joinable()) thread.join();
  }
  return 0;
}
