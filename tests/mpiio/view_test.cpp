// SPDX-License-Identifier: BSD-3-Clause
//
// Views of files, and plans of accesses, against what the MPI library itself does with a file.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "mpi/datatype_map.hpp"
#include "mpiio/access_plan.hpp"
#include "mpiio/file_view.hpp"
#include "random_type.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

using mpiio_test::Draw;
using mpiio_test::DrawnType;

std::vector<char> contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<char> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(bytes.data(), std::ssize(bytes));
  return bytes;
}

void expect_same(const std::vector<char>& wanted, const std::vector<char>& found) {
  EXPECT_EQ(wanted.size(), found.size());
  const std::size_t both = std::min(wanted.size(), found.size());
  for (std::size_t i = 0; i < both; ++i) {
    ASSERT_EQ(wanted[i], found[i]) << "the first byte that differs is at " << i;
  }
}

// A file that is seen through a random view.
class Viewed {
 public:
  Viewed(Draw& draw, const std::string& path)
      : path_(path),
        etype_(mpiio_test::draw_etype(draw)),
        filetype_(mpiio_test::draw_filetype(draw, etype_, draw.between(0, 3))) {
    MPI_File_open(MPI_COMM_SELF, path.c_str(),
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    int etype_bytes = 0;
    MPI_Type_size(etype_.type, &etype_bytes);
    const MPI_Offset displacement = draw.between(0, 1) * draw.between(0, 50);
    MPI_File_set_view(file, displacement, etype_.type, filetype_.type, "native", MPI_INFO_NULL);
    view = make_view(displacement, etype_bytes, *map_of(filetype_.type).value());
    text = std::to_string(displacement) + " " + etype_.text + " " + filetype_.text;
  }
  ~Viewed() {
    MPI_File_close(&file);
    MPI_Type_free(&etype_.type);
    MPI_Type_free(&filetype_.type);
  }
  Viewed(const Viewed&) = delete;
  Viewed& operator=(const Viewed&) = delete;

  // Whether an access ends within the file that the tests compare.
  bool fits(std::int64_t at, std::int64_t bytes) const {
    return view.file_offset(at + bytes) <= size_bytes;
  }
  MPI_Datatype etype() const { return etype_.type; }
  // Zeros. Without them ROMIO, which writes gaps along with what lies around them, leaves whatever
  // was in its buffer in gaps past the end of the file.
  std::vector<char> filled() const {
    MPI_File_set_size(file, size_bytes);
    return std::vector<char>(size_bytes);
  }
  std::vector<char> contents() const {
    MPI_File_sync(file);
    return contents_of(path_);
  }

  MPI_File file = MPI_FILE_NULL;
  FileView view;
  std::string text;

 private:
  static constexpr int size_bytes = 1 << 18;
  std::string path_;
  DrawnType etype_;
  DrawnType filetype_;
};

class RandomViews : public testing::Test {
 protected:
  template <typename Check>
  void with_random_views(int rounds, Check&& check) {
    const std::uint64_t seed = test_seed();
    Draw draw(seed);
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
      Viewed viewed(draw, directory_ / "file");
      SCOPED_TRACE("PERDURE_TEST_SEED=" + std::to_string(seed) + " round " + std::to_string(round) +
                   ": " + viewed.text);
      check(draw, viewed);
    }
  }

  perdure_test::TemporaryDirectory directory_;
};

TEST_F(RandomViews, mpi_finds_each_etype_where_the_view_does) {
  with_random_views(100, [](Draw&, const Viewed& viewed) {
    for (MPI_Offset at = 0; at < 200; ++at) {
      MPI_Offset theirs = -1;
      MPI_File_get_byte_offset(viewed.file, at, &theirs);
      ASSERT_EQ(viewed.view.file_offset(at * viewed.view.etype_bytes), theirs) << "etype " << at;
    }
  });
}

// Open MPI 4.1 seeks to another place as soon as an etype is longer than a byte, and back from the
// end if a view has gaps.
#ifndef OPEN_MPI
TEST_F(RandomViews, the_end_of_the_file_is_where_mpi_seeks_it) {
  with_random_views(100, [](Draw& draw, const Viewed& viewed) {
    for (int i = 0; i < 20 && !HasFailure(); ++i) {
      const MPI_Offset size = viewed.view.displacement + draw.between(0, 3000);
      MPI_File_set_size(viewed.file, size);
      MPI_File_seek(viewed.file, 0, MPI_SEEK_END);
      MPI_Offset theirs = -1;
      MPI_File_get_position(viewed.file, &theirs);
      const std::int64_t unit = viewed.view.etype_bytes;
      EXPECT_EQ((viewed.view.data_bytes_before(size) + unit - 1) / unit, theirs) << "size " << size;
    }
  });
}

#endif

TEST_F(RandomViews, contiguous_memory_is_written_where_the_view_says) {
  with_random_views(100, [](Draw& draw, const Viewed& viewed) {
    const int count = draw.between(0, 300);
    const MPI_Offset at = draw.between(0, 100);
    const std::int64_t unit = viewed.view.etype_bytes;
    if (!viewed.fits(at * unit, count * unit)) return;
    std::vector<char> memory(static_cast<std::size_t>(count * unit));
    for (char& byte : memory) byte = static_cast<char>(draw.between(1, 127));
    std::vector<char> wanted = viewed.filled();
    MPI_Status status;
    MPI_File_write_at(viewed.file, at, memory.data(), count, viewed.etype(), &status);
    const char* from = memory.data();
    viewed.view.for_each_piece(at * unit, count * unit,
                               [&](std::int64_t offset, std::int64_t bytes) {
                                 std::copy_n(from, bytes, wanted.begin() + offset);
                                 from += bytes;
                                 return true;
                               });
    expect_same(wanted, viewed.contents());
  });
}

// Memory of types that ROMIO of MPICH 4.0 can move: it does not come back from some whose offsets
// are negative, decrease, or belong to parts that are empty.
TEST_F(RandomViews, scattered_memory_is_written_where_the_plan_says) {
  with_random_views(100, [](Draw& draw, const Viewed& viewed) {
    DrawnType inner = mpiio_test::draw_etype(draw);
    DrawnType drawn = mpiio_test::draw_filetype(draw, inner, draw.between(0, 3));
    const DatatypeMap& items = *map_of(drawn.type).value();
    const std::int64_t unit = viewed.view.etype_bytes;
    const int count = static_cast<int>(unit) * draw.between(0, 2);
    std::vector<char> memory(1 << 16);
    if (count * items.extent_bytes > std::ssize(memory)) return;
    for (char& byte : memory) byte = static_cast<char>(draw.between(1, 127));
    char* const base = memory.data();
    const MPI_Offset at = draw.between(0, 100);
    if (!viewed.fits(at * unit, count * items.size_bytes)) return;
    std::vector<char> wanted = viewed.filled();
    MPI_Status status;
    MPI_File_write_at(viewed.file, at, base, count, drawn.type, &status);
    for_each_pair(items, base, viewed.view, at * unit, count * items.size_bytes,
                  [&](std::int64_t offset, const char* from, std::int64_t bytes) {
                    std::copy_n(from, bytes, wanted.begin() + offset);
                  });
    SCOPED_TRACE(std::to_string(count) + " of " + drawn.text);
    expect_same(wanted, viewed.contents());
    MPI_Type_free(&drawn.type);
    MPI_Type_free(&inner.type);
  });
}

}  // namespace
}  // namespace perdure
