! SPDX-License-Identifier: BSD-3-Clause
!
! a = a + 0.5 b, twenty times over a million elements, in a region of interest.
program sweep
  use perdure_trace
  implicit none
  integer, parameter :: n = 1000000
  double precision, allocatable :: a(:), b(:)
  integer :: step
  allocate(a(n), b(n))
  a = 1
  b = 2
  call trace_begin("sweep")
  do step = 1, 20
    a = a + 0.5d0 * b
  end do
  call trace_end()
  print *, a(n)
end program sweep
