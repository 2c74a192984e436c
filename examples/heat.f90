! SPDX-License-Identifier: BSD-3-Clause
!
! The program of README.md in Fortran: an array in twin mode and a scalar, committed in each step.
!
!     gfortran -o heat $(perdure config --fortran) examples/heat.f90 $(perdure config --libs)
!     ./heat /dev/shm/heat
!
! Killed and started again, it goes on from its last commit.
program heat
  use, intrinsic :: iso_c_binding
  use perdure
  implicit none
  integer, parameter :: cells = 1000
  type(c_ptr) :: pool
  type(perdure_array) :: u
  real(c_double), pointer, contiguous :: now(:), next(:)
  integer(c_int64_t), target :: step = 0
  integer(c_int64_t) :: version
  character(len=1000) :: path
  integer :: i

  call get_command_argument(1, path)
  call check(perdure_open(trim(path), pool))
  call check(perdure_array_open(pool, "u", perdure_double, [cells], perdure_twin, u))
  call check(perdure_scalar(pool, "iteration", step))
  call check(perdure_restart(pool, version))  ! the newest version; 0 if there is none
  print "(a,i0)", "begins at step ", step
  do while (step < 500)
    call check(perdure_memory(u, now, perdure_consistent))  ! the last version, read-only
    call check(perdure_memory(u, next))                     ! the other copy
    next(1) = 1
    do i = 2, cells
      next(i) = (now(i - 1) + now(i) + now(min(i + 1, cells)))/3
    end do
    step = step + 1
    call check(perdure_commit(pool, version))  ! durable; the two copies swap roles
  end do
  call check(perdure_memory(u, now, perdure_consistent))
  print "(a,es23.16)", "u[10] is ", now(11)
  call check(perdure_close(pool))

contains

  subroutine check(code)
    integer, intent(in) :: code
    if (code /= perdure_ok) error stop perdure_last_error()
  end subroutine

end program
