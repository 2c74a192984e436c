// SPDX-License-Identifier: BSD-3-Clause
//
// perdure.hpp: perdure.h for C++20. Header only; link libperdure, or libperdure_mpi_<flavour>
// together with perdure_mpi.hpp.
//
//     std::uint64_t iteration = 0;
//     perdure::Pool pool("/mnt/pmem/heat");
//     auto u = pool.array<double>("u", {rows, columns}, perdure::Mode::twin);
//     pool.scalar("iteration", iteration);
//     pool.restart();                              // 0: nothing was committed yet
//     while (iteration < iterations) {
//       heat_step(u.consistent(), u.working(), ++iteration);
//       pool.commit();                             // the two copies swap roles
//     }
//
// Conventions
//   - What perdure.h says of each call (collective or local, threads, what survives) holds here.
//   - A failure throws perdure::Error. Destructors never throw: call Pool::close() to learn of one.
//   - Collective calls throw on all ranks or on none (commit_begin(): the others learn of it in
//     commit_wait()). Where a local call throws, end the job: other ranks would wait for this one.
//   - Sizes are in bytes, shapes and positions in elements, times in nanoseconds.
//
// See also perdure/perdure_mpi.hpp (pools of many ranks), perdure/windows.hpp and perdure/ipv.hpp.
#ifndef PERDURE_PERDURE_HPP
#define PERDURE_PERDURE_HPP

#if __cplusplus < 201709L  // what GCC 10 says of its C++20
#error "perdure.hpp needs C++20: compile with -std=c++20, or include perdure/perdure.h instead"
#else

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <locale>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/options.hpp"
#include "perdure/perdure.h"

namespace perdure {
// Keeps these classes apart, for the linker, from those inside the library.
inline namespace interface {

// The perdure_type of elements T; 0: there is none.
template <typename T>
constexpr int type_or_none() {
  using std::is_same_v;
  return is_same_v<T, std::byte> || is_same_v<T, unsigned char> ? PERDURE_BYTE
         : is_same_v<T, bool>                                   ? PERDURE_BOOL
         : is_same_v<T, std::int8_t>                            ? PERDURE_INT8
         : is_same_v<T, std::int16_t>                           ? PERDURE_INT16
         : is_same_v<T, std::uint16_t>                          ? PERDURE_UINT16
         : is_same_v<T, std::int32_t>                           ? PERDURE_INT32
         : is_same_v<T, std::uint32_t>                          ? PERDURE_UINT32
         : is_same_v<T, std::int64_t>                           ? PERDURE_INT64
         : is_same_v<T, std::uint64_t>                          ? PERDURE_UINT64
         : is_same_v<T, float>                                  ? PERDURE_FLOAT
         : is_same_v<T, double>                                 ? PERDURE_DOUBLE
         : is_same_v<T, std::complex<float> >                   ? PERDURE_COMPLEX_FLOAT
         : is_same_v<T, std::complex<double> >                  ? PERDURE_COMPLEX_DOUBLE
                                                                : 0;
}

// Of a scalar T, or of one of several T; 0: there is none.
template <typename T>
constexpr int scalar_type() {
  using E = std::remove_all_extents_t<T>;
  if (std::is_same_v<E, char>) return PERDURE_TEXT;
  if (type_or_none<E>() == PERDURE_BYTE) return 0;
  if (!std::is_integral_v<E> || sizeof(E) < 4) return type_or_none<E>();
  if (sizeof(E) == 4) return std::is_signed_v<E> ? PERDURE_INT32 : PERDURE_UINT32;
  if (sizeof(E) == 8) return std::is_signed_v<E> ? PERDURE_INT64 : PERDURE_UINT64;
  return 0;
}

// The same of elements of which an array can be made.
template <typename T>
constexpr perdure_type type_of() {
  constexpr int type = type_or_none<T>();
  static_assert(type != 0,
                "an array holds std::byte, bool, integers, float, double or std::complex of these; "
                "store other types as std::byte");
  return static_cast<perdure_type>(type);
}

// A member of a struct, and the name of the scalar that it is: Member{"x", &Position::x}.
template <typename Struct, typename T>
struct Member {
  Member(std::string its_name, T Struct::* its_place)
      : name(std::move(its_name)), place(its_place) {}
  std::string name;
  T Struct::* place;
};

// Elements of a shape.
inline std::uint64_t elements_of(const Shape& shape) noexcept {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape) elements *= extent;
  return elements;
}

// A named array of a pool. A handle: copies mean the same array, and it must not be used once the
// pool is closed. Spans of a twin array are of one copy, and all are of one size: ask again after
// each commit and resize().
template <typename T>
class Array {
 public:
  explicit Array(perdure_array* handle) : handle_(handle) {}

  Shape shape() const {
    unsigned dimensions = 0;
    Shape shape(8);
    check(perdure_array_shape(handle_, &dimensions, shape.data()));
    shape.resize(dimensions);
    return shape;
  }
  std::size_t size() const { return elements_of(shape()); }  // in elements
  perdure_array* handle() const noexcept { return handle_; }

  // Where the application writes: the buffer (copy, log) or the working copy (twin), of size()
  // elements. Local. Error: STATE before restart.
  std::span<T> working() const {
    return {static_cast<T*>(restarted(perdure_working(handle_))), size()};
  }

  // The last committed copy (twin), or the buffer (copy, log). Local. Error: STATE before restart.
  std::span<const T> consistent() const {
    return {static_cast<const T*>(restarted(perdure_consistent(handle_))), size()};
  }

  // Other extents, as many, from the next version on. Elements stay in row-major order as far as
  // there is room, new ones are zero. `buffer`: where the application's own memory lies now, with
  // the contents; empty: Perdure's from now on. Local, after restart. Errors: NO_SPACE, INVALID,
  // STATE, UNSUPPORTED; all is as before then.
  void resize(const Shape& shape, std::span<T> buffer = {}) {
    if (shape.size() != this->shape().size()) {
      throw Error(PERDURE_E_SHAPE, "an array keeps its number of extents");
    }
    if (!buffer.empty() && buffer.size() < elements_of(shape)) {
      throw Error(PERDURE_E_INVALID, "the buffer is too small for the shape");
    }
    check(perdure_array_resize(handle_, shape.data(), buffer.data()));
  }

  // Log with marks: elements [first, first + count) were or will be changed before the next
  // commit. Local. Errors: INVALID beyond the end, STATE without marks.
  void mark(std::uint64_t first, std::uint64_t count) {
    check(perdure_mark(handle_, first, count));
  }

  // Twin: stores `elements` at element `first` of the working copy, past the cache, so that the
  // commit need not flush them. Local. Errors: INVALID beyond the end, STATE in other modes and
  // while the array is committed in the background.
  void write(std::uint64_t first, std::span<const T> elements) {
    check(perdure_write(handle_, first, elements.size(), elements.data()));
  }

  // Where this rank's array lies in one that all ranks have together; see perdure_array_box().
  // Local. Errors: INVALID if it reaches beyond, or other numbers of extents.
  void box(const Shape& global_shape, const Shape& first) {
    const std::size_t extents = shape().size();
    if (global_shape.size() != extents || first.size() != extents) {
      throw Error(PERDURE_E_INVALID, "the box of an array has as many extents as the array");
    }
    check(perdure_array_box(handle_, global_shape.data(), first.data()));
  }

  // After Pool::commit_begin(): returns when this array may be written to again. Local.
  void before_write() { check(perdure_before_write(handle_)); }

 private:
  template <typename Pointer>
  static Pointer restarted(Pointer address) {
    if (address != nullptr) return address;
    throw Error(PERDURE_E_STATE, "the contents of an array are defined after Pool::restart()");
  }

  perdure_array* handle_;
};

// What Pool::arrays() gives.
inline std::vector<perdure_array_info> arrays_of(const perdure_pool* pool, std::uint64_t version) {
  std::size_t count = 0;
  check(perdure_arrays(pool, version, nullptr, 0, &count));
  std::vector<perdure_array_info> arrays(count);
  check(perdure_arrays(pool, version, arrays.data(), count, &count));
  return arrays;
}

// First extent of the array `name` in a version, if it has one.
inline std::optional<std::uint64_t> size_in(const perdure_pool* pool, std::uint64_t version,
                                            const std::string& name) {
  for (const perdure_array_info& info : arrays_of(pool, version)) {
    if (name == info.name) return info.shape[0];
  }
  return std::nullopt;
}

// First extent that this rank gets of the array `name`, if the pool has it.
inline std::optional<std::uint64_t> stored_size(const perdure_pool* pool, const std::string& name,
                                                int ranks) {
  unsigned dimensions = 0;
  std::uint64_t shape[8];
  const int code = perdure_stored_shape(pool, name.c_str(), ranks, &dimensions, shape);
  if (code == PERDURE_E_NOT_FOUND || code == PERDURE_E_RANKS) return std::nullopt;
  check(code);
  return shape[0];
}

// Who is asked before a pool commits or restores, as it has memory that moves.
class Follower {
 public:
  Follower() = default;
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;
  virtual ~Follower() = default;
  virtual void before_restart() {}
  virtual void before_commit() = 0;
  // `elements`: of the version that is to be restored.
  virtual void before_restore(std::uint64_t elements) = 0;
  virtual void after_restore(bool done) = 0;
  virtual void after_restart() {}
  virtual const std::string& name() const = 0;
};

// A std::vector, and the array of a pool that has its elements: as large as the vector is at each
// commit, wherever its memory is then.
template <typename T>
class FollowedVector final : public Follower {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                "elements are saved byte by byte: no pointers, strings or containers");
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory");

 public:
  FollowedVector(perdure_pool* pool, std::string name, std::vector<T>& vector, Mode mode,
                 perdure_array_options options)
      : name_(std::move(name)), vector_(vector) {
    if (const auto held = stored_size(pool, name_, options.ranks)) vector_.resize(*held);
    options.buffer = vector_.data();
    // A vector's memory is never whole pages, which a tracker would need.
    if (mode == Mode::log && (options.flags & PERDURE_MARKS) == 0) options.flags |= PERDURE_COMPARE;
    const std::uint64_t shape[2] = {vector_.size(), sizeof(T)};
    check(perdure_array_open(pool, name_.c_str(), type, dimensions, shape,
                             static_cast<perdure_mode>(mode), &options, &handle_));
    note();
  }
  ~FollowedVector() override = default;

  Array<T> array() const { return Array<T>(handle_); }
  const std::string& name() const override { return name_; }
  void before_commit() override {
    if (vector_.data() != data_ || vector_.size() != size_) take(vector_.data());
  }
  void before_restore(std::uint64_t elements) override {
    before_commit();
    if (elements == size_) return;
    before_ = vector_;
    vector_.resize(elements);
    take(vector_.data());
  }
  void after_restore(bool done) override {
    if (before_ && !done) {
      vector_ = std::move(*before_);
      take(vector_.data());
    }
    before_.reset();
  }
  // The vector goes; the array keeps what it has.
  void let_go() {
    before_commit();
    take(nullptr);
  }

 private:
  static constexpr bool known = type_or_none<T>() != 0;
  static constexpr int type = known ? type_or_none<T>() : static_cast<int>(PERDURE_BYTE);
  static constexpr unsigned dimensions = known ? 1 : 2;
  void take(T* buffer) {
    const std::uint64_t shape[2] = {vector_.size(), sizeof(T)};
    check(perdure_array_resize(handle_, shape, buffer));
    note();
  }
  void note() {
    data_ = vector_.data();
    size_ = vector_.size();
  }

  std::string name_;
  std::vector<T>& vector_;
  perdure_array* handle_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::optional<std::vector<T> > before_;
};

// A stream of the program's, which writes a file that versions note.
class FlushedStream final : public Follower {
 public:
  FlushedStream(std::string path, std::ostream& stream) : path_(std::move(path)), stream_(stream) {}
  const std::string& name() const override { return path_; }
  void before_commit() override {
    if (!stream_.flush()) {
      throw Error(PERDURE_E_IO, "the stream of '" + path_ + "' has failed, and lacks lines");
    }
  }
  void before_restart() override { before_commit(); }
  void before_restore(std::uint64_t) override { before_commit(); }
  void after_restore(bool) override {}

 private:
  std::string path_;
  std::ostream& stream_;
};

// Bytes of any length as a state of Python has them (docs/format.md): pool.state() of Python, and
// `perdure pool dump`, read them as bytes.
class BytesState {
 public:
  static std::vector<unsigned char> pack(const std::string& bytes) {
    std::vector<unsigned char> made(begin + padded(bytes.size()));
    const std::uint64_t counts[4] = {text_bytes, 1, bytes.size(), 0};
    std::memcpy(made.data(), magic, 8);
    std::memcpy(made.data() + 8, counts, 24);
    std::memcpy(made.data() + 32, text, text_bytes);
    if (!bytes.empty()) std::memcpy(made.data() + begin, bytes.data(), bytes.size());
    return made;
  }
  // Nothing: no state was stored there.
  static std::optional<std::string> unpack(const std::vector<unsigned char>& stored,
                                           const std::string& name) {
    if (std::all_of(stored.begin(), stored.end(), [](unsigned char each) { return each == 0; })) {
      return std::nullopt;
    }
    std::uint64_t size = 0;
    if (stored.size() >= begin) std::memcpy(&size, stored.data() + 24, 8);
    const bool fits = stored.size() >= begin && size <= stored.size() - begin;
    const auto* bytes = reinterpret_cast<const char*>(stored.data());
    if (!fits || pack(std::string(bytes + begin, size)) != stored) {
      throw Error(PERDURE_E_SHAPE,
                  "state '" + name + "' holds no bytes of C++; give it another name");
    }
    return std::string(bytes + begin, size);
  }

 private:
  static constexpr const char* magic = "PRDSTAT1";
  static constexpr const char* text = "{\"bytes\":0}";
  static constexpr std::size_t text_bytes = 11;
  static constexpr std::size_t begin = 32 + 16;
  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }
};

// What has a text: `get` makes it before each commit, `set` gets it back.
class FollowedState final : public Follower {
 public:
  FollowedState(perdure_pool* pool, const std::string& name, std::function<std::string()> get,
                std::function<void(const std::string&)> set, Ranks ranks)
      : name_(name),
        get_(std::move(get)),
        set_(std::move(set)),
        array_(pool, "perdure.state." + name, bytes_, Mode::log,
               {PERDURE_MARKS, nullptr, static_cast<int>(ranks), nullptr}) {
    after_restart();
  }
  const std::string& name() const override { return array_.name(); }
  void before_commit() override {
    std::vector<unsigned char> now = BytesState::pack(get_());
    if (now == bytes_) return;
    array_.array().before_write();  // a commit in the background may still read it
    if (now.size() == bytes_.size()) {
      std::copy(now.begin(), now.end(), bytes_.begin());
    } else {
      bytes_ = std::move(now);
    }
    array_.before_commit();
    array_.array().mark(0, bytes_.size());
  }
  void before_restore(std::uint64_t elements) override { array_.before_restore(elements); }
  void after_restore(bool done) override {
    array_.after_restore(done);
    if (done) after_restart();
  }
  void after_restart() override {
    if (const auto found = BytesState::unpack(bytes_, name_)) set_(*found);
  }

 private:
  std::string name_;
  std::function<std::string()> get_;
  std::function<void(const std::string&)> set_;
  std::vector<unsigned char> bytes_;
  FollowedVector<unsigned char> array_;
};

// The engines of <random> whose text can be checked before it is read: the library believes the
// place in the stream that a mersenne twister's text ends with.
template <typename Engine>
struct EngineText {
  static constexpr bool known = false;
};
template <typename UInt, UInt a, UInt c, UInt m>
struct EngineText<std::linear_congruential_engine<UInt, a, c, m> > {
  static constexpr bool known = true;
  static bool fits(const std::string&) { return true; }
};
template <typename UInt, std::size_t w, std::size_t n, std::size_t m, std::size_t r, UInt a,
          std::size_t u, UInt d, std::size_t s, UInt b, std::size_t t, UInt c, std::size_t l,
          UInt f>
struct EngineText<std::mersenne_twister_engine<UInt, w, n, m, r, a, u, d, s, b, t, c, l, f> > {
  static constexpr bool known = true;
  static bool fits(const std::string& text) {
    std::istringstream words(text);
    std::string last, word;
    std::size_t count = 0;
    for (; words >> word; ++count) last = word;
    return count == n + 1 && last.size() <= 4 && !last.empty() &&
           last.find_first_not_of("0123456789") == std::string::npos && std::stoul(last) <= n;
  }
};

// The arrays and scalars of a job. Move-only; the destructor closes it and drops the outcome.
class Pool {
 public:
  // As perdure_open(): a pool of one rank. See open_mpi() in perdure_mpi.hpp for more.
  // Errors: BUSY, FOREIGN, RANKS, DAMAGED, NEWER_FORMAT, NO_SPACE, IO, UNSUPPORTED.
  explicit Pool(const std::string& path, const Options& options = {}) {
    const perdure_options c_options = options.to_c();
    check(perdure_open(path.c_str(), &c_options, &handle_));
  }
  explicit Pool(perdure_pool* handle) noexcept : handle_(handle) {}  // opened through perdure.h
  // Of what somebody else closes, and which must not be used after that.
  static Pool borrowed(perdure_pool* handle) noexcept {
    Pool pool(handle);
    pool.owned_ = false;
    return pool;
  }
  ~Pool() { release(); }
  Pool(Pool&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        owned_(other.owned_),
        followers_(std::move(other.followers_)) {}
  Pool& operator=(Pool&& other) noexcept {
    release();
    handle_ = std::exchange(other.handle_, nullptr);
    owned_ = other.owned_;
    followers_ = std::move(other.followers_);
    return *this;
  }

  // Waits for an unfinished commit, whose failure it throws, and releases the pool in any case.
  // Collective; while an exception unwinds, a rank leaves without waiting for the others. What was
  // not committed is not kept. A pool that has objects of in-place versioning cannot be closed
  // (STATE): end those first.
  void close() { check(release()); }

  // Finds or makes the array `name` (UTF-8, 1 to 255 bytes) of this rank and allocates all its
  // space. Local: ranks may have other arrays, or of other shapes. Errors: SHAPE if this rank's
  // part of the pool holds the name with another type, shape or mode; NO_SPACE, INVALID.
  template <typename T>
  Array<T> array(const std::string& name, const Shape& shape, Mode mode,
                 const ArrayOptions<T>& options = {}) {
    if (shape.empty()) throw Error(PERDURE_E_INVALID, "an array has 1 to 8 dimensions");
    const perdure_array_options c_options = to_c(options);
    if (!options.buffer.empty() && options.buffer.size() < elements_of(shape)) {
      throw Error(PERDURE_E_INVALID,
                  "the buffer of array '" + name + "' is too small for its shape");
    }
    perdure_array* handle = nullptr;
    check(perdure_array_open(handle_, name.c_str(), type_of<T>(),
                             static_cast<unsigned>(shape.size()), shape.data(),
                             static_cast<perdure_mode>(mode), &c_options, &handle));
    return Array<T>(handle);
  }

  // The array `name` with the shape that the pool has. Local. NOT_FOUND if it has none.
  template <typename T>
  Array<T> array(const std::string& name, Mode mode, const ArrayOptions<T>& options = {}) {
    const perdure_array_options c_options = to_c(options);
    perdure_array* handle = nullptr;
    check(perdure_array_open(handle_, name.c_str(), type_of<T>(), 0, nullptr,
                             static_cast<perdure_mode>(mode), &c_options, &handle));
    return Array<T>(handle);
  }

  // The array `name` has what is in `vector`, of any trivially copyable type: as many elements as
  // that has at each commit, wherever they are. If the pool has the array, `vector` takes its size
  // here, and its contents in restart(). The vector must outlive the pool, or be let go by
  // perdure::vector. Do not change its size between this and restart(). Copy mode, or log, which
  // compares it with what was committed, unless it is marked. Local.
  template <typename T>
  Array<T> array(const std::string& name, std::vector<T>& vector, Mode mode = Mode::copy,
                 const ArrayOptions<T>& options = {}) {
    auto follower =
        std::make_unique<FollowedVector<T> >(handle_, name, vector, mode, to_c(options));
    const Array<T> array = follower->array();
    add(std::move(follower));
    return array;
  }

  // Drops the array from the next version on; handles to it must not be used any more. Local.
  template <typename T>
  void remove(const Array<T>& array) {
    check(perdure_array_remove(array.handle()));
  }

  // The arrays that this rank has in one of versions(); of 0, in the next one, or before restart()
  // those that it will bring back. Local. Error: NOT_FOUND.
  std::vector<perdure_array_info> arrays(std::uint64_t version = 0) const {
    return arrays_of(handle_, version);
  }

  // The arrays that an old rank has in the version that is gone on from, if another number of ranks
  // made the pool (status().old_ranks); and elements of one, from `first` on. Until the first
  // commit, else STATE. Local. Errors: NOT_FOUND, DAMAGED; SHAPE if its elements are no T.
  std::vector<perdure_array_info> old_arrays(unsigned old_rank) const {
    std::size_t count = 0;
    check(perdure_old_arrays(handle_, old_rank, nullptr, 0, &count));
    std::vector<perdure_array_info> arrays(count);
    check(perdure_old_arrays(handle_, old_rank, arrays.data(), count, &count));
    return arrays;
  }
  template <typename T>
  void read(const std::string& name, unsigned old_rank, std::uint64_t first,
            std::span<T> elements) const {
    for (const perdure_array_info& info : old_arrays(old_rank)) {
      if (name != info.name || info.type == type_of<T>()) continue;
      throw Error(PERDURE_E_SHAPE, "array '" + name + "' of an old rank has other elements");
    }
    check(perdure_read(handle_, name.c_str(), old_rank, first, elements.size(), elements.data()));
  }

  // Ties `value` to the scalar `name`: every commit saves it, restart() writes it. `value` must
  // stay where it is until the pool is closed. Local. Errors: SHAPE, NO_SPACE, INVALID.
  template <typename T>
  void scalar(const std::string& name, T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_const_v<T>,
                  "a scalar is saved byte by byte: no pointers, strings or containers");
    static_assert(sizeof(T) <= 16384, "a scalar has at most 16384 bytes; use an array");
    constexpr int type = scalar_type<T>();
    check(type == 0 ? perdure_scalar(handle_, name.c_str(), &value, sizeof value)
                    : perdure_scalar_typed(handle_, name.c_str(), type, &value, sizeof value));
  }

  // Ties a text of any length to the pool: every commit saves it, restart() and restore() write it.
  // It stays as it is where the version lacks it. `text` must outlive the pool. Local.
  // `ranks`: what happens to it on another number of ranks, same or by_hand (as a new one).
  void state(const std::string& name, std::string& text, Ranks ranks = Ranks::none) {
    follow_state(
        name, [&text] { return text; }, [&text](const std::string& found) { text = found; }, ranks);
  }
  // The same of an engine of <random>: std::mt19937, std::mt19937_64, std::minstd_rand. DAMAGED if
  // what the pool has is no text of such an engine. A distribution has a state too: reset() it in
  // each step.
  template <typename Engine>
  void state(const std::string& name, Engine& engine, Ranks ranks = Ranks::none) {
    static_assert(EngineText<Engine>::known,
                  "a state is a std::string, a mersenne twister or a linear congruential engine; "
                  "keep another engine as the std::string that it writes with <<");
    follow_state(
        name,
        [&engine] {
          std::ostringstream text;
          text.imbue(std::locale::classic());  // the program's may group digits
          text << engine;
          return text.str();
        },
        [&engine, name](const std::string& found) {
          Engine read;
          std::istringstream text(found);
          text.imbue(std::locale::classic());
          if (!EngineText<Engine>::fits(found) || !(text >> read)) {
            throw Error(PERDURE_E_DAMAGED, "state '" + name + "' is no engine of this type");
          }
          engine = read;
        },
        ranks);
  }

  // Each member that is named becomes a scalar of its own, so that a later program may add members,
  // or leave some out:
  //     pool.members(state, Member{"iteration", &State::iteration}, Member{"dt", &State::dt});
  // As scalar(). Local.
  template <typename Struct, typename... Ts>
  void members(Struct& object, const Member<Struct, Ts>&... named) {
    (scalar(named.name, object.*named.place), ...);
  }

  // Names a text file, or another that only grows, which this rank writes: restart() and restore()
  // cut it back to the length that the version notes, as perdure.h says of perdure_file(). Call it
  // before restart(), in every run, and open the file with std::ios::app. Commits flush `stream`,
  // which must outlive the pool; or, without one, all streams of C. Local.
  void file(const std::string& path, std::ostream& stream) {
    auto follower = std::make_unique<FlushedStream>(path, stream);
    follower->before_commit();
    file(path);
    add(std::move(follower));
  }
  void file(const std::string& path) { check(perdure_file(handle_, path.c_str(), nullptr)); }

  // Gives all arrays and scalars the newest version that all ranks hold and returns its number; 0:
  // a new pool, arrays are zero, the application's own buffers and scalars as they were.
  // Collective; once, before the first commit.
  std::uint64_t restart() {
    for_followers([](Follower& each) { each.before_restart(); });
    const std::uint64_t version = version_by(perdure_restart);
    for_followers([](Follower& each) { each.after_restart(); });
    return version;
  }

  // The versions that restore() accepts, newest first. Local.
  std::vector<perdure_version_info> versions() const {
    std::size_t count = 0;
    check(perdure_versions(handle_, nullptr, 0, &count));
    std::vector<perdure_version_info> versions(count);
    check(perdure_versions(handle_, versions.data(), count, &count));
    return versions;
  }
  // Gives all arrays and scalars the contents of `version`, in place of restart() or after it. The
  // next commit goes on from there. Collective. Errors: NOT_FOUND, SHAPE, DAMAGED.
  void restore(std::uint64_t version) {
    for_followers([&](Follower& each) {
      each.before_restore(size_in(handle_, version, each.name()).value_or(0));
    });
    const int code = perdure_restore(handle_, version);
    const std::string sentence = perdure_last_error();
    for_followers([code](Follower& each) { each.after_restore(code == PERDURE_OK); });
    if (code != PERDURE_OK) throw Error(code, sentence);
  }
  // Frees the space of a version that is not the newest. Collective. Errors: NOT_FOUND, STATE.
  void delete_version(std::uint64_t version) { check(perdure_delete_version(handle_, version)); }

  // Makes the contents of all arrays and scalars durable as one version, on all ranks, and returns
  // its number. Collective. If it throws, the version before stays the newest.
  std::uint64_t commit() {
    follow();
    return version_by(perdure_commit);
  }

  // A commit in two steps, both collective; in between, Array::before_write() before writing.
  void commit_begin() {
    follow();
    check(perdure_commit_begin(handle_));
  }
  std::uint64_t commit_wait() { return version_by(perdure_commit_wait); }
  // Names the stream of a GPU whose work commits take, and that goes on when they have it. Local.
  void stream(perdure_stream_kind kind, void* stream) {
    check(perdure_stream(handle_, kind, stream));
  }

  // Whether a version is due: PERDURE_NOT_DUE, PERDURE_DUE, or PERDURE_DUE_LAST where the program
  // should end after it. Collective.
  perdure_due commit_due() {
    int due = PERDURE_NOT_DUE;
    check(perdure_commit_due(handle_, &due));
    return static_cast<perdure_due>(due);
  }

  // Waits until what is on its way to other levels has arrived; the newest version that has come to
  // all of them since the pool was opened, 0 if none has. Collective. Errors: BUSY, of a level.
  std::uint64_t levels_wait() { return version_by(perdure_levels_wait); }

  // Counters since the pool was opened, and what it survives. Local.
  perdure_pool_status status() const {
    perdure_pool_status status{};
    check(perdure_status(handle_, &status));
    return status;
  }
  perdure_pool* handle() const noexcept { return handle_; }  // for calls of perdure.h

 private:
  std::uint64_t version_by(int (*call)(perdure_pool*, std::uint64_t*)) {
    std::uint64_t version = 0;
    check(call(handle_, &version));
    return version;
  }

  int release() noexcept {
    perdure_pool* const handle = std::exchange(handle_, nullptr);
    followers_.reset();
    return owned_ ? perdure_close(handle) : PERDURE_OK;
  }

  template <typename T>
  static perdure_array_options to_c(const ArrayOptions<T>& options) {
    perdure_array_options c_options{};
    if (options.marks) c_options.flags |= PERDURE_MARKS;
    if (options.compare) c_options.flags |= PERDURE_COMPARE;
    if (options.checksums == true) c_options.flags |= PERDURE_CHECKSUM;
    if (options.checksums == false) c_options.flags |= PERDURE_NO_CHECKSUM;
    c_options.buffer = options.buffer.data();
    c_options.ranks = static_cast<int>(options.ranks);
    c_options.device = options.device;
    return c_options;
  }
  void add(std::unique_ptr<Follower> follower) {
    if (!followers_) followers_ = std::make_shared<Followers>();
    followers_->push_back(std::move(follower));
  }
  template <typename Call>
  void for_followers(const Call& call) const {
    if (!followers_) return;
    for (const auto& each : *followers_) call(*each);
  }
  void follow_state(const std::string& name, std::function<std::string()> get,
                    std::function<void(const std::string&)> set, Ranks ranks) {
    add(std::make_unique<FollowedState>(handle_, name, std::move(get), std::move(set), ranks));
  }
  void follow() const {
    for_followers([](Follower& each) { each.before_commit(); });
  }

  template <typename T>
  friend class vector;
  using Followers = std::vector<std::unique_ptr<Follower> >;

  perdure_pool* handle_ = nullptr;
  bool owned_ = true;
  std::shared_ptr<Followers> followers_;  // null: there are none
};

// A std::vector whose elements are in the versions of a pool, as Pool::array(name, vector) says;
// before restart() it has the size that it will get. When it goes before the pool is closed, the
// versions keep the elements that it had.
template <typename T>
class vector : public std::vector<T> {
 public:
  vector(Pool& pool, const std::string& name, Mode mode = Mode::copy,
         const ArrayOptions<T>& options = {})
      : followers_(pool.followers_) {
    pool.array(name, static_cast<std::vector<T>&>(*this), mode, options);
    follower_ = static_cast<FollowedVector<T>*>(pool.followers_->back().get());
  }
  vector(const vector&) = delete;
  vector& operator=(const vector&) = delete;
  ~vector() {
    const auto followers = followers_.lock();
    if (!followers) return;  // the pool is closed
    try {
      follower_->let_go();
    } catch (const Error&) {  // the next commit says that the memory is gone
    }
    std::erase_if(*followers, [this](const auto& each) { return each.get() == follower_; });
  }

  using std::vector<T>::operator=;  // other elements, in the same array
  Array<T> array() const { return follower_->array(); }

 private:
  std::weak_ptr<typename Pool::Followers> followers_;
  FollowedVector<T>* follower_;
};

}  // namespace interface
}  // namespace perdure
#endif  // C++20
#endif
