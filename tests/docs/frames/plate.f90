! SPDX-License-Identifier: BSD-3-Clause
! What docs/fortran.md leaves out.
subroutine run(steps, rows, columns)
  ! snippet until ...
  integer, intent(in) :: steps
  integer, intent(in) :: rows, columns
  integer(c_int) :: code
  ! snippet after ...
contains
  subroutine relax(before, after)
    real(c_double), intent(in) :: before(:, :)
    real(c_double), intent(out) :: after(:, :)
    after = before
  end subroutine
end subroutine
