! SPDX-License-Identifier: BSD-3-Clause
!
! perdure.f90: persistent windows from Fortran: what perdure_mpi.h adds to MPI, and the calls of
! perdure.h that a program with such windows needs.
!
! Installed as source, because module files belong to one compiler. Compile it with your MPI's
! wrapper and link the library of the same MPI before it:
!
!     mpifort -c perdure.f90
!     mpifort solver.f90 perdure.o -lperdure_mpi_mpich          (or -lperdure_mpi_openmpi)
!
! The MPI calls themselves may come from mpif.h, the module mpi, or mpi_f08: a window is an integer
! or a type(MPI_Win), and every call here takes both.
!
!     use mpi_f08
!     use perdure
!     call MPI_Info_set(info, "perdure_name", "grid")
!     call MPI_Info_set(info, "perdure_pool", "/mnt/pmem/solver")
!     call MPI_Win_allocate(bytes, 8, info, comm, base, win)
!     code = perdure_win_restart(win, version)              ! 0: nothing was restored
!     code = perdure_win_pool(win, pool)
!     code = perdure_scalar(pool, "step", c_loc(step), c_sizeof(step))
!     ...
!     call MPI_Win_fence(0, win)
!     code = perdure_win_commit(win, version)
!     if (code /= perdure_ok) print *, perdure_last_error()
!
! Functions return perdure_ok or a negative code, as in perdure.h; perdure_last_error() has the
! sentence, per thread. What is collective there is collective here. Where an argument is a
! c_ptr to memory, that memory needs the attribute target and must stay where it is.
module perdure
  use, intrinsic :: iso_c_binding
  use mpi_f08, only: MPI_Win
  implicit none
  private

  integer(c_int), parameter, public :: perdure_ok = 0
  integer(c_int), parameter, public :: perdure_e_invalid = -1, perdure_e_state = -2, &
    perdure_e_not_found = -3, perdure_e_io = -4, perdure_e_no_space = -5, perdure_e_busy = -6, &
    perdure_e_foreign = -7, perdure_e_ranks = -8, perdure_e_shape = -9, perdure_e_damaged = -10, &
    perdure_e_newer_format = -11, perdure_e_unsupported = -12, perdure_e_peer_failed = -13

  ! An assertion of MPI_Win_fence: this fence commits.
  integer, parameter, public :: perdure_mode_commit = 2**28

  public :: perdure_win_commit, perdure_win_restart, perdure_win_halves, perdure_win_pool
  public :: perdure_scalar, perdure_commit
  public :: perdure_strerror, perdure_last_error, perdure_library_version

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

  interface
    integer(c_int) function scalar_of_c(pool, name, address, bytes) bind(c, name="perdure_scalar")
      import :: c_int, c_ptr, c_char, c_size_t
      type(c_ptr), value :: pool, address
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function pool_commit_of_c(pool, version) bind(c, name="perdure_commit")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: pool
      integer(c_int64_t), intent(out) :: version
    end function
    type(c_ptr) function strerror_of_c(code) bind(c, name="perdure_strerror")
      import :: c_ptr, c_int
      integer(c_int), value :: code
    end function
    type(c_ptr) function last_error_of_c() bind(c, name="perdure_last_error")
      import :: c_ptr
    end function
    type(c_ptr) function version_of_c() bind(c, name="perdure_library_version")
      import :: c_ptr
    end function
    integer(c_size_t) function strlen(text) bind(c, name="strlen")
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
  end interface

contains

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

  ! Ties `bytes` bytes at `address` to the scalar `name`: every commit saves them. Local.
  integer(c_int) function perdure_scalar(pool, name, address, bytes)
    type(c_ptr), intent(in) :: pool, address
    character(len=*), intent(in) :: name
    integer(c_size_t), intent(in) :: bytes
    perdure_scalar = scalar_of_c(pool, trim(name)//c_null_char, address, bytes)
  end function

  ! Makes everything in the pool durable as one version. Collective.
  integer(c_int) function perdure_commit(pool, version)
    type(c_ptr), intent(in) :: pool
    integer(c_int64_t), intent(out) :: version
    perdure_commit = pool_commit_of_c(pool, version)
  end function

  ! A fixed text for a code.
  function perdure_strerror(code) result(text)
    integer(c_int), intent(in) :: code
    character(:), allocatable :: text
    text = text_of(strerror_of_c(code))
  end function

  ! The sentence of this thread's last failure; empty if there was none.
  function perdure_last_error() result(text)
    character(:), allocatable :: text
    text = text_of(last_error_of_c())
  end function

  ! The library's version, such as 0.1.0.
  function perdure_library_version() result(text)
    character(:), allocatable :: text
    text = text_of(version_of_c())
  end function

  function text_of(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: i
    call c_f_pointer(address, bytes, [strlen(address)])
    allocate (character(size(bytes)) :: text)
    do i = 1, size(bytes)
      text(i:i) = bytes(i)
    end do
  end function
end module perdure
