! SPDX-License-Identifier: BSD-3-Clause
! Heat along a rod in as many pieces as ranks, with a checkpoint every 50 steps: a file a rank.
module rod
  use mpi_f08
  implicit none
  integer, parameter :: cells = 1000
  double precision, allocatable :: u(:)
  integer :: step = 0, rank, ranks

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

  function name_of() result(name)
    character(len=40) :: name
    write (name, "(a,i0,a)") "u-", rank, ".ckpt"
  end function

  subroutine checkpoint()
    integer :: file
    open (newunit=file, file=name_of(), form="unformatted", status="replace")
    write (file) step, u
    close (file)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine

  subroutine restart()
    integer :: file
    logical :: there
    inquire (file=name_of(), exist=there)
    if (.not. there) return
    open (newunit=file, file=name_of(), form="unformatted", status="old")
    read (file) step, u
    close (file)
  end subroutine

end module

program main
  use, intrinsic :: iso_fortran_env, only: error_unit
  use rod
  implicit none

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
    if (mod(step, 50) == 0) call checkpoint()
  end do
  if (rank == 0) print "(a,es23.16)", "u(10) is ", u(10)
  call MPI_Finalize()
end program
