! SPDX-License-Identifier: BSD-3-Clause
!
! The module perdure_mpi (fortran/perdure_mpi.f90) in a program: a window, the scalar of its pool,
! explicit commits, both kinds of handles, and the halves of a twin window.
!
!     module first POOL       makes versions 1 and 2
!     module again POOL       finds version 2
program module_program
  use mpi_f08
  use perdure_mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: cells = 512
  type(MPI_Win) :: win, twin, consistent, working
  type(c_ptr) :: pool, pool_of_twin
  integer(c_int64_t), pointer :: grid(:)
  integer(c_int64_t), target :: step
  integer(c_int64_t) :: version
  integer(c_int) :: integer_consistent, integer_working
  integer :: rank, wrong
  character(len=512) :: mode, directory

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call get_command_argument(1, mode)
  call get_command_argument(2, directory)
  wrong = 0
  step = 0
  call make_window("grid", "copy", win, grid)
  call require(perdure_win_pool(win, pool), "perdure_win_pool")
  call require(perdure_scalar(pool, "step", c_loc(step), 8_c_size_t), "perdure_scalar")
  call require(perdure_win_restart(win, version), "perdure_win_restart")
  if (mode == "again") then
    call check(version == 2, "the restored version is 2")
    call check(all(grid == 20 + rank), "the window holds version 2")
  else
    call check(version == 0, "nothing was restored")
    call commit_twice()
  end if
  call use_halves()
  call MPI_Win_free(twin)
  call MPI_Win_free(win)
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0 .and. wrong == 0) print '(a)', "verdict: right"
  call MPI_Finalize()
  if (wrong /= 0) stop 1

contains

  subroutine make_window(name, kind, made, memory)
    character(len=*), intent(in) :: name, kind
    type(MPI_Win), intent(out) :: made
    integer(c_int64_t), pointer, intent(out) :: memory(:)
    type(MPI_Info) :: info
    type(c_ptr) :: base
    call MPI_Info_create(info)
    call MPI_Info_set(info, "perdure_name", name)
    call MPI_Info_set(info, "perdure_pool", trim(directory))
    call MPI_Info_set(info, "perdure_mode", kind)
    call MPI_Win_allocate(cells*8_MPI_ADDRESS_KIND, 8, info, MPI_COMM_WORLD, base, made)
    call MPI_Info_free(info)
    call c_f_pointer(base, memory, [cells])
  end subroutine

  ! By the handle of mpi_f08, and by the integer of the other bindings.
  subroutine commit_twice()
    grid = 10 + rank
    step = 1
    call require(perdure_win_commit(win, version), "perdure_win_commit")
    call check(version == 1, "the first version is 1")
    grid = 20 + rank
    step = 2
    call require(perdure_win_commit(win%MPI_VAL, version), "perdure_win_commit of an integer")
    call check(version == 2, "the second version is 2")
    grid = 30 + rank
  end subroutine

  subroutine use_halves()
    integer(c_int64_t), pointer :: memory(:)
    call make_window("twin", "twin", twin, memory)
    call require(perdure_win_halves(twin, consistent, working), "perdure_win_halves")
    call check(consistent /= working, "a twin window has two halves")
    call require(perdure_win_halves(twin%MPI_VAL, integer_consistent, integer_working), "halves")
    call check(integer_working == working%MPI_VAL, "both kinds of handles name the same half")
    call require(perdure_win_pool(twin, pool_of_twin), "perdure_win_pool")
    call check(c_associated(pool, pool_of_twin), "both windows have one pool")
    call check(perdure_win_commit(MPI_WIN_NULL, version) == perdure_e_invalid, &
               "what is no window is refused")
    call check(len(perdure_last_error()) > 0, "a failure has a sentence")
    call check(len(perdure_strerror(perdure_e_invalid)) > 0, "a code has a text")
  end subroutine

  subroutine require(code, what)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: what
    call check(code == perdure_ok, what)
    if (code /= perdure_ok) print '(a)', perdure_last_error()
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    wrong = wrong + 1
    print '(a,i0,a,a)', "rank ", rank, ": not so: ", what
  end subroutine
end program
