// SPDX-License-Identifier: BSD-3-Clause
//
// The main program of a module's tests, which are one program: all tests, or with
// --sources=a_test.cpp,b_test.cpp those that these files define (CTest's entries). A file that
// defines none is an error. --gtest_filter applies as well.
#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace {

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Excludes the tests of other files; the wanted files that define no test.
std::set<std::string> choose(const std::set<std::string>& wanted) {
  std::set<std::string> without_tests = wanted;
  std::string others;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int at = 0; at < all.total_test_suite_count(); ++at) {
    const testing::TestSuite& suite = *all.GetTestSuite(at);
    for (int place = 0; place < suite.total_test_count(); ++place) {
      const testing::TestInfo& test = *suite.GetTestInfo(place);
      const std::string file = file_name(test.file());
      without_tests.erase(file);
      if (wanted.contains(file)) continue;
      others += std::string(":") + suite.name() + "." + test.name();
    }
  }
  const std::string filter = GTEST_FLAG_GET(filter);
  if (!others.empty() && filter.find('-') == std::string::npos) others[0] = '-';
  GTEST_FLAG_SET(filter, filter + others);
  return without_tests;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view option = "--sources=";
  std::set<std::string> wanted;
  for (int at = 1; at < argc; ++at) {
    const std::string_view word = argv[at];
    if (!word.starts_with(option)) {
      std::cerr << argv[0] << ": what is " << word << "? There are GoogleTest's options, and "
                << option << "a_test.cpp,b_test.cpp\n";
      return 2;
    }
    std::istringstream names{std::string(word.substr(option.size()))};
    for (std::string name; std::getline(names, name, ',');) wanted.insert(name);
  }
  if (!wanted.empty()) {
    for (const std::string& file : choose(wanted)) {
      std::cerr << argv[0] << ": " << file << " defines no test of this program\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
