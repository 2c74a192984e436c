// SPDX-License-Identifier: BSD-3-Clause
//
// A pool directory that all ranks share, and windows made with info keys. Every rank runs every
// test; assertions are per rank.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mpi_test.hpp"
#include "perdure/perdure_mpi.h"

namespace perdure_test {

using Keys = std::map<std::string, std::string>;

inline MPI_Info make_info(const Keys& keys) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  for (const auto& [key, value] : keys) MPI_Info_set(info, key.c_str(), value.c_str());
  return info;
}

class Windows : public DirectoryOfRanks {
 protected:
  void SetUp() override {
    DirectoryOfRanks::SetUp();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }

  std::string pool(const std::string& name = "pool") const { return directory_ + "/" + name; }

  // MPI_Win_allocate of `cells` 64-bit numbers, in pool() unless the keys say otherwise.
  int allocate(Keys keys, std::size_t cells, MPI_Win* win, std::int64_t** base = nullptr) {
    keys.try_emplace("perdure_pool", pool());
    MPI_Info info = make_info(keys);
    std::int64_t* memory = nullptr;
    const int error =
        MPI_Win_allocate(static_cast<MPI_Aint>(cells * 8), 8, info, MPI_COMM_WORLD, &memory, win);
    MPI_Info_free(&info);
    if (error == MPI_SUCCESS) MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN);
    if (base != nullptr) *base = memory;
    return error;
  }
  static std::int64_t* base_of(MPI_Win win) {
    std::int64_t* base = nullptr;
    int flag = 0;
    MPI_Win_get_attr(win, MPI_WIN_BASE, static_cast<void*>(&base), &flag);
    return base;
  }
  static void put(std::int64_t value, int target, MPI_Aint at, MPI_Win win) {
    MPI_Put(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win);
    MPI_Win_flush_local(target, win);
  }
  static std::uint64_t restored(MPI_Win win) {
    std::uint64_t version = 0;
    EXPECT_EQ(perdure_win_restart(win, &version), PERDURE_OK) << perdure_last_error();
    return version;
  }
  static std::string text_of(int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    return text;
  }
};

}  // namespace perdure_test
