! SPDX-License-Identifier: BSD-3-Clause
!
! RUN: for o in -O1 -O2 -O3; do %flang $o %s | %FileCheck %s || exit 1; done
! RUN: %flang -O0 %s | %FileCheck --check-prefix=NONE %s
! Descriptors in a module: base, strides and bounds are loaded from memory, indices have 32 bits.
! NONE: define {{.*}}@_QMfieldsPadd(
! NONE-NOT: call {{.*}}@perdure_ipv_box_begin(
module fields
  implicit none
  double precision, allocatable :: u(:, :, :, :), rhs(:, :, :, :)
contains
  ! The distance of elements is in the descriptor: it is not known that they are contiguous.
  ! CHECK-LABEL: define {{.*}}@_QMfieldsPadd(
  ! CHECK-NOT: @perdure_ipv_box_begin(
  ! CHECK: ret void
  subroutine add(n)
    integer, intent(in) :: n
    integer :: i, j, k, m
    do k = 2, n - 1
      do j = 2, n - 1
        do i = 2, n - 1
          do m = 1, 5
            u(m, i, j, k) = u(m, i, j, k) + rhs(m, i, j, k)
          end do
        end do
      end do
    end do
  end subroutine
  ! CHECK-LABEL: define {{.*}}@_QMfieldsPaxpy(
  ! CHECK: call {{.*}}@perdure_ipv_box_begin(
  subroutine axpy(x, y, a, n)
    integer, intent(in) :: n
    double precision, intent(in) :: x(n), a
    double precision, intent(inout) :: y(n)
    integer :: i
    do i = 1, n
      y(i) = y(i) + a * x(i)
    end do
  end subroutine
end module
