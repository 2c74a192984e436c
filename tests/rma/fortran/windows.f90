! SPDX-License-Identifier: BSD-3-Clause
!
! A program of one-sided communication in each of MPI's three Fortran bindings, chosen by the
! preprocessor: BINDING_MPIF (mpif.h), BINDING_MPI (use mpi), BINDING_F08 (use mpi_f08). It knows
! the layer by info keys and by one assertion of MPI_Win_fence, as any program might.
!
!     windows plain           the same program without keys and assertion
!     windows first POOL      two committing fences, and one that does not commit, last
!     windows again POOL      what the windows hold is what the second committing fence saw
!
! Each window is made, put to and synchronised by this binding's own entry points. Rank 0 prints
! "verdict: right", or "verdict: wrong" with what all ranks found wrong, which ends the job with 1.
program windows
#if defined(BINDING_F08)
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  type(MPI_Win) :: allocated, created
  type(MPI_Info) :: info
#elif defined(BINDING_MPI)
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: allocated, created, info
#else
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer :: allocated, created, info
#endif
  integer, parameter :: cells = 1024, mode_commit = 2**28
  integer(c_int64_t), pointer :: grid(:)
  integer(c_int64_t), target :: own(cells)
  integer(c_int64_t) :: mine
  type(c_ptr) :: base
  integer :: rank, ranks, next, previous, wrong, committing, code
  integer(MPI_ADDRESS_KIND) :: bytes, at
  character(len=512) :: mode, pool

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  pool = ""
  call get_command_argument(1, mode)
  if (mode /= "plain") call get_command_argument(2, pool)
  committing = merge(0, mode_commit, mode == "plain")
  wrong = 0

  call make_windows()
  if (mode == "again") then
    call expect(grid, 2_c_int64_t)
    call expect(own, 2_c_int64_t)
  else
    call write_versions()
  end if
  call MPI_Win_free(created, code)
  call MPI_Win_free(allocated, code)

  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (rank == 0 .and. wrong == 0) print '(a)', "verdict: right"
  if (rank == 0 .and. wrong /= 0) print '(a,i0)', "verdict: wrong ", wrong
  call MPI_Finalize(code)
  if (wrong /= 0) stop 1

contains

  subroutine make_windows()
    bytes = cells*8_MPI_ADDRESS_KIND
    call make_info("allocated")
    call MPI_Win_allocate(bytes, 8, info, MPI_COMM_WORLD, base, allocated, code)
    call MPI_Info_free(info, code)
    call c_f_pointer(base, grid, [cells])
    own = -1
    call make_info("created")
    call MPI_Win_create(own, bytes, 8, info, MPI_COMM_WORLD, created, code)
    call MPI_Info_free(info, code)
  end subroutine

  subroutine make_info(name)
    character(len=*), intent(in) :: name
    call MPI_Info_create(info, code)
    if (mode == "plain") return
    call MPI_Info_set(info, "perdure_name", name, code)
    call MPI_Info_set(info, "perdure_pool", trim(pool), code)
    call MPI_Info_set(info, "perdure_job", "fortran", code)
  end subroutine

  ! Version 1 is committed by the fence of a window, version 2 by that of the other; what is written
  ! after it is not committed.
  subroutine write_versions()
    call write_epoch(1_c_int64_t, 0, committing)
    call write_epoch(2_c_int64_t, committing, 0)
    call write_epoch(3_c_int64_t, 0, 0)
  end subroutine

  ! Both windows: every cell of the owner's, cell 7 by the rank before it. Both are complete before
  ! either fence commits, as a version holds both.
  subroutine write_epoch(version, assert_created, assert_allocated)
    integer(c_int64_t), intent(in) :: version
    integer, intent(in) :: assert_created, assert_allocated
    grid = 100*version + rank
    own = 100*version + rank
    mine = 1000*version + rank
    at = 6
    call MPI_Win_fence(0, allocated, code)
    call MPI_Put(mine, 1, MPI_INTEGER8, next, at, 1, MPI_INTEGER8, allocated, code)
    call MPI_Win_fence(0, allocated, code)
    call MPI_Win_fence(0, created, code)
    call MPI_Put(mine, 1, MPI_INTEGER8, next, at, 1, MPI_INTEGER8, created, code)
    call MPI_Win_fence(0, created, code)
    call MPI_Win_fence(assert_created, created, code)
    call MPI_Win_fence(assert_allocated, allocated, code)
    call expect(grid, version)
    call expect(own, version)
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end subroutine

  subroutine expect(found, version)
    integer(c_int64_t), intent(in) :: found(:), version
    integer(c_int64_t) :: wanted
    integer :: i
    do i = 1, cells
      wanted = 100*version + rank
      if (i == 7) wanted = 1000*version + previous
      if (found(i) /= wanted) wrong = wrong + 1
    end do
    if (any(found /= 100*version + rank .and. found /= 1000*version + previous)) &
      print '(a,i0,a,i0,a,i0)', "rank ", rank, ": version ", version, ", first cell ", found(1)
  end subroutine
end program
