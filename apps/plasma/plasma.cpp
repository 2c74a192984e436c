// SPDX-License-Identifier: BSD-3-Clause
#include "plasma.hpp"

#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "job/collective.hpp"

namespace plasma {
namespace {

constexpr int sweeps = 4;               // of Jacobi's method, in each step
constexpr double density_scale = 0.02;  // of a charge in its cell
constexpr double time_step = 0.1;
constexpr unsigned rare = 256;  // one particle of so many divides in a step, and one ends

// The same random number everywhere (the finaliser of SplitMix64).
std::uint64_t mixed(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15U;
  word = (word ^ word >> 30U) * 0xbf58476d1ce4e5b9U;
  word = (word ^ word >> 27U) * 0x94d049bb133111ebU;
  return word ^ word >> 31U;
}

double unit_interval(std::uint64_t word) {
  return static_cast<double>(mixed(word) >> 11U) * 0x1p-53;
}

double wrapped(double place, int cells) {
  const double length = cells;
  const double inside = place - length * std::floor(place / length);
  return inside < length ? inside : 0;
}

}  // namespace

int Rows::owner_of(int row) const {
  int owner = static_cast<int>((static_cast<std::int64_t>(row) + 1) * ranks - 1) / cells;
  while (owner > 0 && row < first(owner)) --owner;
  while (row >= first(owner + 1)) ++owner;
  return owner;
}

Plasma::Plasma(const Rows& rows, std::vector<Particle>& particles, std::span<double> potential)
    : rows_(rows),
      particles_(particles),
      potential_(potential),
      with_halo_(rows.cell_count() + 2 * row_length()),
      relaxed_(rows.cell_count()),
      charges_(rows.cell_count()) {}

void Plasma::begin(std::uint64_t count) {
  std::fill(potential_.begin(), potential_.end(), 0.0);
  particles_.clear();
  for (std::uint64_t i = 0; i < count; ++i) {
    const Particle particle{.x = unit_interval(5 * i) * rows_.cells,
                            .y = unit_interval(5 * i + 1) * rows_.cells,
                            .vx = unit_interval(5 * i + 2) - 0.5,
                            .vy = unit_interval(5 * i + 3) - 0.5,
                            .number = mixed(5 * i + 4)};
    if (rows_.owner_of(static_cast<int>(particle.y)) == rows_.rank) particles_.push_back(particle);
  }
}

void Plasma::step(std::uint64_t number) {
  count_charges();
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    exchange_halo();
    relax();
  }
  exchange_halo();
  push();
  divide_and_end(number);
  migrate();
}

void Plasma::count_charges() {
  std::fill(charges_.begin(), charges_.end(), 0);
  for (const Particle& particle : particles_) {
    const auto row = static_cast<std::size_t>(static_cast<int>(particle.y) - rows_.first());
    ++charges_[row * row_length() + static_cast<std::size_t>(particle.x)];
  }
}

void Plasma::exchange_halo() {
  const int length = rows_.cells;
  const int before = (rows_.rank + rows_.ranks - 1) % rows_.ranks;
  const int after = (rows_.rank + 1) % rows_.ranks;
  std::copy(potential_.begin(), potential_.end(), with_halo_.begin() + length);
  double* const first = with_halo_.data() + length;
  double* const beyond = first + potential_.size();
  MPI_Sendrecv(first, length, MPI_DOUBLE, before, 0, beyond, length, MPI_DOUBLE, after, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(beyond - length, length, MPI_DOUBLE, after, 1, with_halo_.data(), length, MPI_DOUBLE,
               before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// A sweep of Jacobi's method for the potential of the charges.
void Plasma::relax() {
  const std::size_t length = row_length();
  for (std::size_t cell = 0; cell < relaxed_.size(); ++cell) {
    const std::size_t column = cell % length;
    const double* const row = with_halo_.data() + length + cell - column;
    const double left = row[column == 0 ? length - 1 : column - 1];
    const double right = row[column + 1 == length ? 0 : column + 1];
    const double below = *(row + column - length);
    const double above = row[column + length];
    const double around = (left + right) + (below + above);
    relaxed_[cell] = 0.2 * (around + density_scale * charges_[cell]);
  }
  std::copy(relaxed_.begin(), relaxed_.end(), potential_.begin());
}

void Plasma::push() {
  const std::size_t length = row_length();
  for (Particle& particle : particles_) {
    const auto column = static_cast<std::size_t>(particle.x);
    const auto row_number = static_cast<std::size_t>(static_cast<int>(particle.y) - rows_.first());
    const double* const row = with_halo_.data() + length + row_number * length;
    const double left = row[column == 0 ? length - 1 : column - 1];
    const double right = row[column + 1 == length ? 0 : column + 1];
    particle.vx += 0.5 * (left - right) * time_step;
    particle.vy += 0.5 * (*(row + column - length) - row[column + length]) * time_step;
    particle.x = wrapped(particle.x + particle.vx * time_step, rows_.cells);
    particle.y = wrapped(particle.y + particle.vy * time_step, rows_.cells);
  }
}

void Plasma::divide_and_end(std::uint64_t number) {
  std::vector<Particle> next;
  next.reserve(particles_.size() + particles_.size() / rare + 1);
  for (const Particle& particle : particles_) {
    const std::uint64_t chance = mixed(particle.number ^ mixed(number));
    if (chance % rare == 0) continue;
    next.push_back(particle);
    if (chance % rare != 1) continue;
    Particle other = particle;
    other.vx = -other.vx;
    other.number = chance;
    next.push_back(other);
  }
  particles_ = std::move(next);
}

void Plasma::migrate() {
  const auto owner_of = [this](const Particle& particle) {
    return static_cast<std::size_t>(rows_.owner_of(static_cast<int>(particle.y)));
  };
  const auto ranks = static_cast<std::size_t>(rows_.ranks);
  constexpr int bytes = sizeof(Particle);
  std::vector<int> send_counts(ranks), receive_counts(ranks);
  for (const Particle& particle : particles_) send_counts[owner_of(particle)] += bytes;
  MPI_Alltoall(send_counts.data(), 1, MPI_INT, receive_counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const std::vector<int> send_starts = job::starts_of(send_counts);
  const std::vector<int> receive_starts = job::starts_of(receive_counts);
  std::vector<Particle> sent(particles_.size());
  std::vector<int> places = send_starts;
  for (const Particle& particle : particles_) {
    int& place = places[owner_of(particle)];
    sent[static_cast<std::size_t>(place / bytes)] = particle;
    place += bytes;
  }
  particles_.resize(static_cast<std::size_t>(receive_starts.back() + receive_counts.back()) /
                    bytes);
  MPI_Alltoallv(sent.data(), send_counts.data(), send_starts.data(), MPI_BYTE, particles_.data(),
                receive_counts.data(), receive_starts.data(), MPI_BYTE, MPI_COMM_WORLD);
}

std::uint64_t Plasma::particle_count() const {
  return job::sum_over_ranks(static_cast<std::uint64_t>(particles_.size()));
}

std::uint64_t Plasma::hash() const {
  std::uint64_t sum = 0;
  for (const Particle& particle : particles_) {
    job::Hash hash(particle.number);
    for (const double value : {particle.x, particle.y, particle.vx, particle.vy}) hash.add(value);
    sum += mixed(hash.value());
  }
  const auto first = static_cast<std::uint64_t>(rows_.first()) * row_length();
  for (std::size_t cell = 0; cell < potential_.size(); ++cell) {
    sum += mixed((first + cell) ^ mixed(std::bit_cast<std::uint64_t>(potential_[cell])));
  }
  return job::sum_over_ranks(sum);
}

}  // namespace plasma
