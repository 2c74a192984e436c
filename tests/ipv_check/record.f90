! SPDX-License-Identifier: BSD-3-Clause
!
! A main loop of which it is known what it carries: u, by an assignment of the whole array; w is
! rewritten; of `fixed` one number is added to; of `strided` every second number is set.
module field
  implicit none
  real(8), allocatable :: u(:, :), w(:, :), strided(:, :)
  real(8) :: fixed(64, 64)
end module field

program record
  use field
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine mark(iteration) bind(c, name="perdure_trace_iteration")
      import; integer(c_int64_t), value :: iteration; end subroutine
    subroutine mark_end() bind(c, name="perdure_trace_end"); end subroutine; end interface
  integer :: i, j, step
  allocate(u(64, 64), w(64, 64))
  allocate(strided(64, 64))
  u = 1; fixed = 2; strided = 3
  do step = 1, 10
    call mark(int(step, c_int64_t))
    do j = 1, 64
      do i = 1, 64
        w(i, j) = u(i, j) * fixed(i, j)
      end do
    end do
    u = u + 0.5 * w
    strided(1:63:2, :) = w(1:63:2, :)
    fixed(1, 1) = fixed(1, 1) + sum(strided(1:63:2, 1)) * 1d-9
  end do
  call mark_end()
  print *, sum(u) + sum(strided)
end program record
