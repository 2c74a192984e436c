// SPDX-License-Identifier: BSD-3-Clause
//
// Which MPI a process has, from what its library says, and what is said where it is not served.
// ctest: NAME mpi_process_test
#include "mpi/process_mpi.hpp"

#include <gtest/gtest.h>

namespace perdure {
namespace {

TEST(ProcessMpi, the_text_of_each_known_library_tells_its_binary_interface) {
  EXPECT_EQ(describe_mpi("Open MPI v4.1.4, package: Debian OpenMPI", 0).abi, MpiAbi::openmpi);
  EXPECT_EQ(describe_mpi("MPICH Version:\t4.0.2\nMPICH Release", 0).abi, MpiAbi::mpich);
  EXPECT_EQ(describe_mpi("Intel(R) MPI Library 2021.18.0 for Linux* OS", -1).abi, MpiAbi::mpich);
  EXPECT_EQ(describe_mpi("MVAPICH Version      :\t4.0", 0).abi, MpiAbi::mpich);
  EXPECT_EQ(describe_mpi("CRAY MPICH version 8.1", 0).abi, MpiAbi::mpich);
  EXPECT_EQ(describe_mpi("HPE MPT 2.30", 0).abi, MpiAbi::other);
  EXPECT_EQ(describe_mpi("", 0).abi, MpiAbi::other);
}

TEST(ProcessMpi, a_library_of_the_standard_abi_is_that_whatever_it_calls_itself) {
  EXPECT_EQ(describe_mpi("MPICH Version:      5.0.2", 1).abi, MpiAbi::standard);
  EXPECT_EQ(describe_mpi("Open MPI v6.0.0", 1).abi, MpiAbi::standard);
  EXPECT_EQ(describe_mpi("MPICH Version:      5.0.2", -1).abi, MpiAbi::mpich);
  EXPECT_EQ(describe_mpi("MPICH Version:      9.0", 2).abi, MpiAbi::other) << "a later one";
}

TEST(ProcessMpi, its_name_is_the_first_words_without_what_a_terminal_would_obey) {
  EXPECT_EQ(describe_mpi("MPICH Version:      5.0.2\nRelease", 0).name, "MPICH Version: 5.0.2");
  EXPECT_EQ(describe_mpi("Open MPI v4.1.4, package", 0).name, "Open MPI v4.1.4");
  EXPECT_EQ(describe_mpi("An \x1b[31mMPI\x07", 0).name, "An [31mMPI");
  EXPECT_LE(describe_mpi(std::string(9000, 'x'), 0).name.size(), 80U);
}

TEST(ProcessMpi, a_library_serves_its_own_interface_and_a_process_without_mpi) {
  for (const MpiAbi abi : {MpiAbi::mpich, MpiAbi::openmpi, MpiAbi::standard}) {
    EXPECT_EQ(reason_to_stand_aside({abi, "its name"}, abi), "");
    EXPECT_EQ(reason_to_stand_aside({MpiAbi::none, ""}, abi), "");
  }
}

TEST(ProcessMpi, the_reason_names_the_mpi_what_was_loaded_and_what_to_load) {
  const auto reason = reason_to_stand_aside({MpiAbi::openmpi, "Open MPI v4.1.4"}, MpiAbi::mpich);
  EXPECT_EQ(reason,
            "this program has Open MPI v4.1.4, which libperdure_mpi_mpich.so does not serve; "
            "preload libperdure_preload.so instead, or libperdure_mpi_openmpi.so");
  EXPECT_EQ(reason_to_stand_aside({MpiAbi::other, "HPE MPT 2.30"}, MpiAbi::mpich),
            "this program has HPE MPT 2.30, which no library of Perdure serves");
}

TEST(ProcessMpi, a_library_is_loaded_by_the_name_of_its_version) {
  for (const MpiAbi abi : {MpiAbi::mpich, MpiAbi::openmpi, MpiAbi::standard}) {
    const std::string loaded = loaded_library_for(abi);
    EXPECT_EQ(loaded.substr(0, loaded.find(".so") + 3), library_for(abi));
    EXPECT_NE(loaded, library_for(abi));
  }
  EXPECT_EQ(loaded_library_for(MpiAbi::none), "");
  EXPECT_EQ(loaded_library_for(MpiAbi::other), "");
}

TEST(ProcessMpi, a_process_without_mpi_has_none) {
  EXPECT_EQ(find_process_mpi().abi, MpiAbi::none);
  EXPECT_EQ(mpi_symbol("PMPI_Init"), nullptr);
}

using ProcessMpiDeathTest = testing::Test;

TEST(ProcessMpiDeathTest, a_call_that_leads_nowhere_ends_the_process_with_a_sentence) {
  const std::atomic<void*> nowhere = nullptr;
  EXPECT_EXIT(destination(nowhere, "MPI_Put_c"), testing::ExitedWithCode(127),
              "Perdure: the program calls MPI_Put_c, which no library of this process has");
}

}  // namespace
}  // namespace perdure
