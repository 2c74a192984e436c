! SPDX-License-Identifier: BSD-3-Clause
!
! Heat on a plate, by rows of ranks, with a version of every step: jacobi POOL STEPS.
!
! Prints, at the end, a hash of all bits of the plate. Killed and started again it goes on from its
! newest version, and ends with the same hash.
program jacobi
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use perdure_mpi
  implicit none
  integer, parameter :: columns = 200, rows = 50  ! of a rank
  type(c_ptr) :: pool
  type(perdure_array) :: plate
  real(c_double), pointer, contiguous :: old(:, :), new(:, :)
  real(c_double) :: above(columns), below(columns)
  integer(c_int64_t), target :: step
  integer(c_int64_t) :: version, hash, mine
  integer :: rank, ranks, steps, j
  character(len=512) :: text

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(2, text)
  read (text, *) steps
  call get_command_argument(1, text)
  step = 0
  call check(perdure_open(MPI_COMM_WORLD, text, pool))
  call check(perdure_array_open(pool, "plate", perdure_double, [columns, rows], perdure_twin, &
                                plate))
  call check(perdure_array_box(plate, [columns, rows*ranks], [1, rows*rank + 1]))
  call check(perdure_scalar(pool, "iteration", step))
  call check(perdure_restart(pool, version))
  if (rank == 0) print '(a,i0)', "restarted from version ", version
  do while (step < steps)
    call check(perdure_memory(plate, old, perdure_consistent))
    call check(perdure_memory(plate, new))
    call exchange()
    do j = 1, rows
      call relax(j)
    end do
    step = step + 1
    call check(perdure_commit(pool, version))
  end do
  call check(perdure_memory(plate, old, perdure_consistent))
  mine = 0
  do j = 1, rows
    mine = ieor(mine*31, sum_of_bits(old(:, j)))
  end do
  mine = mine*(2*rank + 1)
  call MPI_Allreduce(mine, hash, 1, MPI_INTEGER8, MPI_BXOR, MPI_COMM_WORLD)
  if (rank == 0) print '(a,z16.16)', "hash ", hash
  call check(perdure_close(pool))
  call MPI_Finalize()

contains

  ! The rows beyond this rank's: hot above the first one, cold below the last.
  subroutine exchange()
    integer :: up, down
    up = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    down = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    above = 1
    below = 0
    call MPI_Sendrecv(old(:, rows), columns, MPI_DOUBLE_PRECISION, down, 0, above, columns, &
                      MPI_DOUBLE_PRECISION, up, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(old(:, 1), columns, MPI_DOUBLE_PRECISION, up, 1, below, columns, &
                      MPI_DOUBLE_PRECISION, down, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine relax(row)
    integer, intent(in) :: row
    real(c_double) :: before(columns), after(columns)
    integer :: i
    before = above
    after = below
    if (row > 1) before = old(:, row - 1)
    if (row < rows) after = old(:, row + 1)
    new(1, row) = old(1, row)
    new(columns, row) = old(columns, row)
    do i = 2, columns - 1
      new(i, row) = 0.25_c_double*(before(i) + after(i) + old(i - 1, row) + old(i + 1, row))
    end do
  end subroutine

  integer(c_int64_t) function sum_of_bits(row)
    real(c_double), intent(in) :: row(:)
    integer :: i
    sum_of_bits = 0
    do i = 1, size(row)
      sum_of_bits = ieor(sum_of_bits*33, transfer(row(i), sum_of_bits))
    end do
  end function

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == perdure_ok) return
    print '(a)', perdure_last_error()
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
