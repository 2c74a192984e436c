// SPDX-License-Identifier: BSD-3-Clause
//
// One run of a program on one file: its handles, what is known of the file, and the log of all that
// a rank could observe.
//
// Races are avoided by construction. In a view that all ranks share, chunks of positions belong to
// ranks in turn; between two settles (sync, barrier, sync) a rank writes its own chunks only and,
// once anything was written, reads only these. Whatever else touches the file settles first.
#ifndef PERDURE_TESTS_MPIIO_ORACLE_SESSION_HPP
#define PERDURE_TESTS_MPIIO_ORACLE_SESSION_HPP

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "../random_type.hpp"
#include "program.hpp"
#include "transfer.hpp"

namespace oracle {

using mpiio_test::Draw;
using mpiio_test::DrawnType;

constexpr std::int64_t file_bytes_max = 300000;

struct View {
  MPI_Offset displacement = 0;
  DrawnType etype;     // null types: bytes
  DrawnType filetype;  //
  int etype_bytes = 1;
  int filetype_bytes = 1;
  MPI_Aint filetype_extent = 1;
  bool contiguous = true;
  bool own = false;  // ranks see different bytes, so all positions are a rank's own
};

struct Handle {
  MPI_File file = MPI_FILE_NULL;
  int mode = 0;
  bool alone = false;               // opened on MPI_COMM_SELF
  bool atomic = false;              // mode of access
  bool has_shared_pointer = false;  // that can be relied on
  View view;

  bool readable() const { return (mode & MPI_MODE_WRONLY) == 0; }
  bool writable() const { return (mode & MPI_MODE_RDONLY) == 0; }
};

class Session {
 public:
  // `planted`: what is read first is logged wrong, to see that it is noticed.
  Session(std::string path, const Program& program, Hints hints, bool planted);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Makes the file, runs every step, closes what is open. Collective.
  void run();

  struct Line {
    std::size_t step;
    std::string text;
    std::string said;  // of an error; libraries may say it in other words
    bool operator==(const Line& other) const { return step == other.step && text == other.text; }
  };
  const std::vector<Line>& log() const { return log_; }

  // Successful opens of this rank, in all sessions.
  static int& opened() {
    static int count = 0;
    return count;
  }

 private:
  // session.cpp
  void make_file();
  void run_step(const Step& step);
  void settle();
  void before_write();
  void note(const std::string& text);
  void note(const std::string& call, int code);  // with MPI's class of its result
  Draw draw_own(const Step& step) const;         // differs between ranks
  Handle& handle() { return handles_[chosen_]; }
  bool atomic() { return handle().atomic; }
  // Whether the shared pointer is used: MPI requires all ranks to have the same view then.
  bool shares_pointer();
  MPI_Comm comm_of(const Handle& handle) const;
  std::string own_from() const;
  MPI_Info make_hints() const;
  void free_view(Handle& handle);

  // steps.cpp
  void open(Draw draw);
  void close(std::size_t slot);
  void choose();
  void set_view(Draw draw);
  void seek(Draw draw, Draw own);
  void seek_shared(Draw draw);
  void note_shared_position();
  void query(Draw draw, Draw own);
  void query_view();
  void set_size(Draw draw);
  void preallocate(Draw draw);
  void atomicity(Draw draw);
  void set_hints(Draw draw);
  void wrong(Draw draw);
  void reread();

  // access.cpp
  struct Memory;
  struct Span;
  struct Asked;
  void access(Draw draw, Draw own);
  void access_explicit(Draw& draw, Draw& own, Transfer transfer);
  void access_individual(Draw& own, Transfer transfer);
  void access_shared(Draw draw, Draw own);
  void access_ordered(Draw draw, Draw own);
  // The most that one access of this program moves; the same for all ranks.
  std::int64_t access_bytes_max() const { return program_.seed % 3 == 0 ? 20000 : 2000; }
  Span draw_span(Draw& draw, bool write, std::int64_t turn);
  bool is_inside(const Span& span);
  bool is_shared_inside();
  Memory draw_memory(Draw& draw, const Span& span, bool may_scatter);
  Form draw_form(Draw& draw, bool write, bool allowed);
  Asked ask(Draw& own, const Transfer& like, Span span, bool inside);
  Asked ask_shared(Draw& draw, Draw& own, Form one, Form other);
  void begin(Asked& asked);
  void end(Asked& asked);
  void note_moved(Asked& asked);

  std::string path_;
  const Program& program_;
  Hints hints_;
  bool planted_;
  int rank_ = 0;
  int ranks_ = 1;
  std::size_t step_ = 0;
  std::vector<Line> log_;

  std::array<Handle, 2> handles_;
  std::size_t chosen_ = 0;
  std::int64_t size_ = 0;  // of the file at the last settle
  bool dirty_ = false;     // something was written since
  bool looked_ = false;    // a rank may still be looking at what isn't its own
};

// The class of a code: what is the same in every MPI.
int class_of(int code);
std::uint32_t checksum(const void* bytes, std::size_t count);
std::vector<char> read_whole(const std::string& path, bool& exists);

}  // namespace oracle
#endif
