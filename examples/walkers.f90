! SPDX-License-Identifier: BSD-3-Clause
! Particles walk at random, divide and end.
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
  use walking
  implicit none
  type(particle), allocatable :: p(:)
  integer, allocatable :: seed(:)
  integer :: step = 0, count = 1000, words, out

  allocate (p(room))
  p = particle(0, 0)
  call random_seed(size=words)
  allocate (seed(words), source=1)
  call random_seed(put=seed)
  open (newunit=out, file="walkers.txt", status="replace")
  write (error_unit, "(a,i0)") "begins at step ", step
  do while (step < 400)
    call walk(p, count)
    step = step + 1
    write (out, "(i0,1x,i0,1x,es23.16)") step, count, p(1)%place
  end do
  print "(i0,a,es23.16)", count, " particles, the first at ", p(1)%place
  close (out)
end program
