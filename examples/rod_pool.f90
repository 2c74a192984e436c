! SPDX-License-Identifier: BSD-3-Clause
! Heat along a rod in as many pieces as ranks, with a version in a pool every 50 steps.
module rod
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use perdure_mpi
  implicit none
  integer, parameter :: cells = 1000
  double precision, pointer, contiguous :: u(:)
  integer, target :: step = 0
  integer :: rank, ranks
  type(c_ptr) :: pool

contains

  subroutine heat_step()
    integer :: left, right
    left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    u(0) = merge(1, 0, rank == 0)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 0, u(cells + 1), 1, &
                      MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(u(cells), 1, MPI_DOUBLE_PRECISION, right, 1, u(0), 1, &
                      MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    u(1:cells) = (u(0:cells - 1) + u(1:cells) + u(2:cells + 1))/3
  end subroutine

  subroutine check(code)
    integer, intent(in) :: code
    if (code == perdure_ok) return
    print *, perdure_last_error()
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  subroutine checkpoint()
    integer(c_int64_t) :: version
    call check(perdure_commit(pool, version))
  end subroutine

  subroutine restart()
    type(perdure_array) :: array
    integer(c_int64_t) :: version
    call check(perdure_open(MPI_COMM_WORLD, "pool", pool))
    call check(perdure_array_open(pool, "u", perdure_double, [cells + 2], perdure_copy, array))
    call check(perdure_scalar(pool, "iteration", step))
    call check(perdure_restart(pool, version))
    call check(perdure_memory(array, u))
    u(0:) => u
  end subroutine

end module

program main
  use, intrinsic :: iso_fortran_env, only: error_unit
  use rod
  implicit none

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call restart()
  if (rank == 0) write (error_unit, "(a,i0)") "begins at step ", step
  do while (step < 400)
    call heat_step()
    step = step + 1
    if (mod(step, 50) == 0) call checkpoint()
  end do
  if (rank == 0) print "(a,es23.16)", "u(10) is ", u(10)
  call check(perdure_close(pool))
  call MPI_Finalize()
end program
