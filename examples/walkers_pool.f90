! SPDX-License-Identifier: BSD-3-Clause
! Particles walk at random, divide and end; the pool "pool" keeps each step.
module walking
  implicit none
  integer, parameter :: room = 4000

  type particle
    double precision :: place, speed
  end type

contains

  subroutine walk(p, count)
    type(particle), intent(inout) :: p(:)
    integer, intent(inout) :: count
    double precision :: chance(2)
    integer :: i, kept, born

    kept = 0
    born = count
    do i = 1, count
      call random_number(chance)
      p(i)%speed = p(i)%speed + chance(1) - 0.5d0
      p(i)%place = p(i)%place + p(i)%speed
      if (chance(2) > 0.99d0 .and. born < room) then
        born = born + 1
        p(born) = p(i)
      end if
      if (chance(2) > 0.01d0) then
        kept = kept + 1
        p(kept) = p(i)
      end if
    end do
    p(kept + 1:kept + born - count) = p(count + 1:born)
    count = kept + born - count
  end subroutine

end module

program walkers
  use, intrinsic :: iso_fortran_env, only: error_unit
  use, intrinsic :: iso_c_binding
  use perdure
  use walking
  implicit none
  type(particle), allocatable, target :: p(:)
  integer, allocatable, target :: seed(:)
  integer, target :: step = 0
  integer :: count = 1000, words, bytes
  integer, parameter :: out = 20, as_stored(0) = 0
  integer(c_int64_t), allocatable :: extents(:)
  integer(c_int64_t) :: version
  type(c_ptr) :: pool
  type(perdure_array) :: array

  allocate (p(room))
  p = particle(0, 0)
  bytes = storage_size(p)/8
  call random_seed(size=words)
  allocate (seed(words), source=1)
  call check(perdure_open("pool", pool))
  if (perdure_array_open(pool, "p", perdure_byte, as_stored, perdure_copy, array, &
                         buffer=c_loc(p)) /= perdure_ok) then  ! the pool is new
    call check(perdure_array_open(pool, "p", perdure_byte, [bytes, count], perdure_copy, array, &
                                  buffer=c_loc(p)))
  end if
  call check(perdure_scalar(pool, "iteration", step))
  call check(perdure_scalar(pool, "seed", c_loc(seed), int(words*storage_size(words)/8, c_size_t)))
  call check(perdure_file(pool, "walkers.txt", out))
  call check(perdure_restart(pool, version))
  call check(perdure_array_shape(array, extents))
  count = int(extents(2))
  call random_seed(put=seed)
  open (out, file="walkers.txt", position="append")
  write (error_unit, "(a,i0)") "begins at step ", step
  do while (step < 400)
    call walk(p, count)
    step = step + 1
    write (out, "(i0,1x,i0,1x,es23.16)") step, count, p(1)%place
    call random_seed(get=seed)
    call check(perdure_array_resize(array, [bytes, count], c_loc(p)))
    call check(perdure_commit(pool, version))
  end do
  print "(i0,a,es23.16)", count, " particles, the first at ", p(1)%place
  close (out)
  call check(perdure_close(pool))

contains

  subroutine check(code)
    integer, intent(in) :: code
    if (code /= perdure_ok) error stop perdure_last_error()
  end subroutine

end program
