// SPDX-License-Identifier: BSD-3-Clause
#include "npb/program.hpp"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "job/choices.hpp"
#include "job/ending.hpp"
#include "npb/ranks.hpp"

namespace npb {
namespace {

struct Figures {
  int ranks = 1;
  double setup_s = 0, open_s = 0, loop_s = 0;     // of the slowest rank
  double loop_cpu_s = 0;                          // the same
  double persist_s = 0, copy_s = 0, close_s = 0;  // the same
  std::uint64_t arrays = 0, rss = 0;  // bytes, of all ranks; rss is the largest resident set
  std::uint64_t state = 0;            // bytes, of all ranks
};

std::uint64_t resident_bytes_max() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

Figures figures_of(const Result& result) {
  return {ranks::count(),
          ranks::max(result.setup_s),
          ranks::max(result.loop.open_s),
          ranks::max(result.loop.loop_s),
          ranks::max(result.loop.loop_cpu_s),
          ranks::max(result.loop.persist_s),
          ranks::max(result.loop.copy_s),
          ranks::max(result.loop.close_s),
          ranks::sum(array_bytes),
          ranks::sum(resident_bytes_max()),
          ranks::sum(result.loop.state_bytes)};
}

void print_json(const Program& program, const Options& options, const Result& result,
                const Figures& figures, Verdict verdict) {
  auto checks = nlohmann::ordered_json::array();
  for (const Check& check : result.checks) {
    nlohmann::ordered_json line{{"name", check.name}, {"value", check.value}};
    if (verdict != Verdict::not_applicable) {
      line["published"] = check.published;
      line["difference"] = difference(check);
      line["tolerance"] = check.tolerance;
    }
    checks.push_back(line);
  }
  const nlohmann::ordered_json line{{"program", program.name},
                                    {"class", std::string(1, options.problem_class)},
                                    {"ranks", figures.ranks},
                                    {"iterations", result.iterations},
                                    {"setup_s", figures.setup_s},
                                    {"open_s", figures.open_s},
                                    {"loop_s", figures.loop_s},
                                    {"close_s", figures.close_s},
                                    {"loop_cpu_s", figures.loop_cpu_s},
                                    {"array_bytes", figures.arrays},
                                    {"resident_bytes_max", figures.rss},
                                    {"persist_s", figures.persist_s},
                                    {"copy_s", figures.copy_s},
                                    {"state_bytes", figures.state},
                                    {"restored_iteration", result.loop.restored},
                                    {"model_ns", result.loop.model_ns},
                                    {"protection", name_of(options.state.protection)},
                                    {"verification", name_of(verdict)},
                                    {"checks", checks}};
  std::printf("%s\n", line.dump().c_str());
}

void print_checks(const Result& result, Verdict verdict) {
  for (const Check& check : result.checks) {
    std::printf("%-10s %22.15e", check.name.c_str(), check.value);
    if (verdict != Verdict::not_applicable) {
      std::printf("  published %22.15e  difference %.1e, %s %.0e", check.published,
                  difference(check), agrees(check) ? "within" : "WRONG: above", check.tolerance);
    }
    std::printf("\n");
  }
}

void print_text(const Program& program, const Options& options, const Result& result,
                const Figures& figures, Verdict verdict) {
  std::printf("%s class %c: %s, %" PRIu64 " iterations, %d rank%s\n", program.name.c_str(),
              options.problem_class, result.problem.c_str(), result.iterations, figures.ranks,
              figures.ranks == 1 ? "" : "s");
  std::printf("arrays %.1f MB, resident at most %.1f MB\n",
              1e-6 * static_cast<double>(figures.arrays), 1e-6 * static_cast<double>(figures.rss));
  std::printf("setup %.3f s, iterations %.3f s\n", figures.setup_s, figures.loop_s);
  if (result.loop.restored > 0)
    std::printf("restored iteration %" PRIu64 "\n", result.loop.restored);
  if (options.state.protection != Protection::none) {
    std::printf("state %.1f MB, protection %s: %.3f s\n", 1e-6 * static_cast<double>(figures.state),
                name_of(options.state.protection), figures.persist_s);
  }
  print_checks(result, verdict);
  if (verdict == Verdict::not_applicable) {
    std::printf("not verified: %" PRIu64 " iterations; the numbers are published for %" PRIu64 "\n",
                result.iterations, result.published_iterations);
  } else {
    std::printf("%s\n", verdict == Verdict::verified ? "verified" : "verification FAILED");
  }
}

void add_choice(CLI::App& app, const Choice& choice) {
  std::map<std::string, std::size_t> indices;
  for (std::size_t i = 0; i < choice.words.size(); ++i) indices[choice.words[i]] = i;
  job::add_choice(app, choice.flag.c_str(), *choice.chosen, indices, choice.purpose);
}

// Nothing if the program has to end, with `code`.
std::optional<Options> parse(int argc, char** argv, const Program& program, int& code) {
  Options options;
  std::string problem_class = "S";
  CLI::App app(program.purpose);
  app.footer(program.examples);
  app.add_option("--class", problem_class, "size of the problem: S, W, A, B or C")
      ->check(CLI::IsMember({"S", "W", "A", "B", "C"}))
      ->capture_default_str();
  app.add_option("--iterations", options.iterations,
                 "iterations; default: those of the class, the only number that is verified")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  app.add_flag("--json", options.json, "print one JSON object instead of a summary");
  add_state_options(app, options.state);
  for (const Choice& choice : program.choices) add_choice(app, choice);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    code = job::ended_at(app, error, ranks::rank() == 0);
    return std::nullopt;
  }
  options.problem_class = problem_class[0];
  return options;
}

int solve_and_report(const Program& program, const Options& options) {
  const Result result = program.solve(options);
  const Verdict verdict =
      npb::verdict(result.checks, result.iterations, result.published_iterations);
  const Figures figures = figures_of(result);
  if (ranks::rank() == 0) {
    (options.json ? print_json : print_text)(program, options, result, figures, verdict);
    std::fflush(stdout);
  }
  return exit_code(verdict);
}

}  // namespace

Result planned(const Options& options, std::string problem, std::uint64_t published) {
  Result result;
  result.problem = std::move(problem);
  result.iterations = options.iterations > 0 ? options.iterations : published;
  result.published_iterations = published;
  return result;
}

std::string points_text(Index nx, Index ny, Index nz) {
  return std::to_string(nx) + " x " + std::to_string(ny) + " x " + std::to_string(nz) + " points";
}

int run_program(int argc, char** argv, const Program& program) {
  ranks::start(argc, argv);
  int code = 0;
  try {
    const auto options = parse(argc, argv, program, code);
    if (options) code = solve_and_report(program, *options);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: rank %d has too little memory; take a smaller class or more ranks\n",
                 program.name.c_str(), ranks::rank());
    ranks::abort();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: rank %d: %s\n", program.name.c_str(), ranks::rank(), error.what());
    ranks::abort();
  }
  ranks::finish();
  return code;
}

}  // namespace npb
