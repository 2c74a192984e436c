! SPDX-License-Identifier: BSD-3-Clause
!
! perdure_mpi.f90: pools of the ranks of a communicator, and persistent windows, from Fortran: what
! perdure_mpi.h adds to MPI. It has all of the module perdure too.
!
! Installed as source, because module files belong to one compiler. Compile it with your MPI's
! wrapper and link the library of the same MPI before it:
!
!     mpifort -c perdure.f90 perdure_mpi.f90
!     mpifort solver.f90 perdure_mpi.o perdure.o -lperdure_mpi_mpich          (or _openmpi)
!
! The MPI calls themselves may come from mpif.h, the module mpi, or mpi_f08: a communicator or
! window is an integer, or a type(MPI_Comm) or type(MPI_Win), and every call here takes both.
!
!     use mpi_f08
!     use perdure_mpi
!     code = perdure_open(MPI_COMM_WORLD, "/mnt/pmem/solver", pool)    ! then as in perdure.f90
!
!     call MPI_Info_set(info, "perdure_name", "grid")
!     call MPI_Info_set(info, "perdure_pool", "/mnt/pmem/solver")
!     call MPI_Win_allocate(bytes, 8, info, comm, base, win)
!     code = perdure_win_restart(win, version)              ! 0: nothing was restored
!     code = perdure_win_pool(win, pool)
!     code = perdure_scalar(pool, "step", step)
!     ...
!     call MPI_Win_fence(0, win)
!     code = perdure_win_commit(win, version)
!     if (code /= perdure_ok) print *, perdure_last_error()
module perdure_mpi
  use, intrinsic :: iso_c_binding
  use mpi_f08, only: MPI_Comm, MPI_Win
  use perdure
  implicit none
  public
  private :: MPI_Comm, MPI_Win
  private :: open_of_integer, open_of_f08, commit_of_f08, restart_of_f08, halves_of_f08, pool_of_f08

  ! An assertion of MPI_Win_fence: this fence commits.
  integer, parameter :: perdure_mode_commit = 2**28

  ! Opens the pool in directory `path` for all ranks of a communicator, or makes it. Collective.
  interface perdure_open
    module procedure open_of_integer, open_of_f08
  end interface

  interface
    integer(c_int) function open_mpi_of_c(comm, path, options, pool) &
        bind(c, name="perdure_open_mpi_f")
      import :: c_int, c_char, c_ptr, perdure_c_options
      integer(c_int), intent(in) :: comm
      character(kind=c_char), intent(in) :: path(*)
      type(perdure_c_options), intent(in) :: options
      type(c_ptr), intent(out) :: pool
    end function
  end interface

  ! Makes all windows of the window's pool durable as one version. Collective over the pool.
  interface perdure_win_commit
    integer(c_int) function commit_of_c(win, version) bind(c, name="perdure_win_commit_f")
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: win
      integer(c_int64_t), intent(out) :: version
    end function
    module procedure commit_of_f08
  end interface

  ! The version that the window was filled from; 0: the pool was new.
  interface perdure_win_restart
    integer(c_int) function restart_of_c(win, version) bind(c, name="perdure_win_restart_f")
      import :: c_int, c_int64_t
      integer(c_int), intent(in) :: win
      integer(c_int64_t), intent(out) :: version
    end function
    module procedure restart_of_f08
  end interface

  ! Mode twin: windows on the last committed half and on the one that the next commit completes.
  interface perdure_win_halves
    integer(c_int) function halves_of_c(win, consistent, working) &
        bind(c, name="perdure_win_halves_f")
      import :: c_int
      integer(c_int), intent(in) :: win
      integer(c_int), intent(out) :: consistent, working
    end function
    module procedure halves_of_f08
  end interface

  ! The window's pool, for perdure_scalar and perdure_commit.
  interface perdure_win_pool
    integer(c_int) function pool_of_c(win, pool) bind(c, name="perdure_win_pool_f")
      import :: c_int, c_ptr
      integer(c_int), intent(in) :: win
      type(c_ptr), intent(out) :: pool
    end function
    module procedure pool_of_f08
  end interface

contains

  integer(c_int) function open_of_integer(comm, path, pool, options)
    integer, intent(in) :: comm
    character(len=*), intent(in) :: path
    type(c_ptr), intent(out) :: pool
    type(perdure_options), intent(in), optional :: options
    character(kind=c_char, len=:), allocatable, target :: job, emulate, levels
    open_of_integer = open_mpi_of_c(int(comm, c_int), trim(path)//c_null_char, &
                                    perdure_to_c(options, job, emulate, levels), pool)
  end function

  integer(c_int) function open_of_f08(comm, path, pool, options)
    type(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: path
    type(c_ptr), intent(out) :: pool
    type(perdure_options), intent(in), optional :: options
    open_of_f08 = open_of_integer(comm%MPI_VAL, path, pool, options)
  end function

  integer(c_int) function commit_of_f08(win, version)
    type(MPI_Win), intent(in) :: win
    integer(c_int64_t), intent(out) :: version
    commit_of_f08 = commit_of_c(win%MPI_VAL, version)
  end function

  integer(c_int) function restart_of_f08(win, version)
    type(MPI_Win), intent(in) :: win
    integer(c_int64_t), intent(out) :: version
    restart_of_f08 = restart_of_c(win%MPI_VAL, version)
  end function

  integer(c_int) function halves_of_f08(win, consistent, working)
    type(MPI_Win), intent(in) :: win
    type(MPI_Win), intent(out) :: consistent, working
    halves_of_f08 = halves_of_c(win%MPI_VAL, consistent%MPI_VAL, working%MPI_VAL)
  end function

  integer(c_int) function pool_of_f08(win, pool)
    type(MPI_Win), intent(in) :: win
    type(c_ptr), intent(out) :: pool
    pool_of_f08 = pool_of_c(win%MPI_VAL, pool)
  end function
end module perdure_mpi
