! SPDX-License-Identifier: BSD-3-Clause
! Heat along a rod in as many pieces as ranks, with a version of each step.
module rod
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use perdure_mpi
  use perdure_ipv
  implicit none
  integer, parameter :: cells = 1000
  double precision, allocatable, target :: u(:)
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

  subroutine restart()
    integer(c_int64_t) :: version
    call check(perdure_open(MPI_COMM_WORLD, "pool", pool))
    call check(perdure_scalar(pool, "iteration", step))
    call check(perdure_ipv_open(pool))
    call check(perdure_ipv_object("u", c_loc(u), 8_c_size_t*size(u)))
    call check(perdure_ipv_restart(version))
  end subroutine

end module

program main
  use, intrinsic :: iso_fortran_env, only: error_unit
  use rod
  implicit none
  integer(c_int64_t) :: version

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate (u(0:cells + 1))
  u = 0
  call restart()
  if (rank == 0) write (error_unit, "(a,i0)") "begins at step ", step
  do while (step < 400)
    call heat_step()
    step = step + 1
    call check(perdure_ipv_persist(version))
  end do
  if (rank == 0) print "(a,es23.16)", "u(10) is ", u(10)
  call check(perdure_ipv_close())
  call check(perdure_close(pool))
  call MPI_Finalize()
end program
