// SPDX-License-Identifier: BSD-3-Clause
//
// Format: https://math.nist.gov/MatrixMarket/formats.html
#include <algorithm>
#include <cctype>
#include <charconv>

#include "text_graphs.hpp"
#include "text_lines.hpp"

namespace graphs {
namespace {

struct Header {
  bool values = false;
  bool symmetric = false;
  std::uint64_t nodes = 0;
  std::uint64_t entries = 0;
  std::uint64_t end = 0;  // where the entries begin in the file
};

std::string lower(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

void read_banner(const TextLines& lines, std::string_view line, Header& header) {
  const std::string banner = lower(take_word(line));
  const std::string object = lower(take_word(line));
  const std::string format = lower(take_word(line));
  const std::string field = lower(take_word(line));
  const std::string symmetry = lower(take_word(line));
  if (banner != "%%matrixmarket") {
    lines.fail("it does not begin with %%MatrixMarket; is it a Matrix Market file?");
  }
  const bool fields = field == "pattern" || field == "real" || field == "integer";
  if (object != "matrix" || format != "coordinate" || !fields ||
      (symmetry != "general" && symmetry != "symmetric")) {
    lines.fail(object + ' ' + format + ' ' + field + ' ' + symmetry +
               ": a graph is a matrix coordinate pattern|real|integer general|symmetric");
  }
  header.values = field != "pattern";
  header.symmetric = symmetry == "symmetric";
}

void read_sizes(const TextLines& lines, std::string_view line, Header& header) {
  const auto rows = number_of(take_word(line));
  const auto columns = number_of(take_word(line));
  const auto entries = number_of(take_word(line));
  if (!rows || !columns || !entries || !take_word(line).empty()) {
    lines.fail("it should have the numbers of rows, columns and entries");
  }
  if (*rows != *columns) {
    lines.fail(std::to_string(*rows) + " rows and " + std::to_string(*columns) +
               " columns; the matrix of a graph is square");
  }
  if (*rows > nodes_max) {
    lines.fail(std::to_string(*rows) + " nodes; the limit of this program is " +
               std::to_string(nodes_max));
  }
  header.nodes = *rows;
  header.entries = *entries;
}

bool is_blank(std::string_view line) {
  return take_word(line).empty();
}

Header read_header(const InputFile& file) {
  constexpr std::uint64_t header_bytes_max = 1 << 20;
  Header header;
  TextLines lines(file, header_bytes_max);
  std::string_view line;
  if (!lines.next(line)) throw InputError(file.path() + " is empty");
  read_banner(lines, line, header);
  while (lines.next(line)) {
    if (is_blank(line) || line[0] == '%') continue;
    header.end = lines.position();
    if (header.end >= header_bytes_max) break;  // it may have been cut off
    read_sizes(lines, line, header);
    return header;
  }
  throw InputError(file.path() + " has no line with the sizes in its first " +
                   std::to_string(header_bytes_max) + " bytes; is it whole?");
}

std::uint32_t node_of(const TextLines& lines, std::string_view word, std::uint64_t nodes) {
  const auto number = number_of(word);
  if (!number) {
    lines.fail(quoted(word) + " is not the number of a row or column");
  }
  if (*number < 1 || *number > nodes) {
    lines.fail("row or column " + std::to_string(*number) + " is not in 1 to " +
               std::to_string(nodes));
  }
  return static_cast<std::uint32_t>(*number - 1);
}

// The value says nothing here, but a line without one is not what the header promised.
void check_value(const TextLines& lines, std::string_view word) {
  double value = 0;
  if (word.starts_with('+')) word.remove_prefix(1);
  const char* begin = word.data();
  const char* end = begin + word.size();
  const auto [at, error] = std::from_chars(begin, end, value);
  if (at != end || word.empty() || error == std::errc::invalid_argument) {
    lines.fail(quoted(word) + " is not the value of an entry");
  }
}

}  // namespace

ArcPart read_matrix_market(const std::string& path, Part part) {
  const InputFile file(path);
  const Header header = read_header(file);
  TextLines lines(file, header.end, part);
  ArcPart read;
  read.nodes = header.nodes;
  read.entries_declared = header.entries;
  for (std::string_view line; lines.next(line);) {
    if (is_blank(line) || line[0] == '%') continue;
    const std::uint32_t row = node_of(lines, take_word(line), header.nodes);
    const std::uint32_t column = node_of(lines, take_word(line), header.nodes);
    if (header.values) check_value(lines, take_word(line));
    if (!take_word(line).empty()) lines.fail("it has more fields than the header promises");
    ++read.entries;
    read.arcs.push_back({row, column});
    if (header.symmetric && row != column) read.arcs.push_back({column, row});
  }
  return read;
}

}  // namespace graphs
