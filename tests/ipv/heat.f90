! SPDX-License-Identifier: BSD-3-Clause
!
! A Fortran program with a version at every step: heat.f90 POOL STEPS. It prints the version that it
! restarted from and the sum at its end, and that of the sums of all steps, in an allocatable that
! grows; killed and started again it ends with the same sums.
program heat
  use, intrinsic :: iso_c_binding
  use perdure
  use perdure_ipv
  implicit none
  integer, parameter :: n = 512, m = 40
  real(c_double), pointer, contiguous :: u(:, :)
  type(c_ptr) :: memory, pool
  integer(c_int64_t), target :: step
  integer(c_int64_t) :: version, steps
  character(len=256) :: path, text
  integer :: j
  type(perdure_ipv_options) :: options
  type(perdure_ipv_box) :: box
  type(perdure_ipv_answer) :: by
  type(perdure_ipv_object_status) :: status
  type(perdure_array_info), allocatable :: held(:)
  real(c_double), allocatable, target :: past(:)  ! the sum of each step: longer with each

  call get_command_argument(1, path)
  call get_command_argument(2, text)
  read (text, *) steps
  memory = perdure_ipv_alloc(8_c_size_t * n * m)
  if (.not. c_associated(memory)) stop "no memory"
  call c_f_pointer(memory, u, [n, m])
  u = 0
  u(n / 2, :) = 1
  step = 0
  options%helper = -1
  call check(perdure_open(path, pool))
  call check(perdure_scalar(pool, "step", step))
  call check(perdure_ipv_open(pool, options))
  call check(perdure_ipv_object("u", c_loc(u), 8_c_size_t * n * m, perdure_ipv_stream))
  if (perdure_ipv_object("v", c_loc(u(3, 3)), 8_c_size_t) == 0) stop "overlapping objects"
  if (len(perdure_last_error()) == 0) stop "no sentence"
  call check(perdure_ipv_ranks("u", perdure_rows))
  call check(perdure_arrays(pool, held))
  allocate (past(0))
  do j = 1, size(held)
    if (held(j)%name /= "past") cycle
    deallocate (past)
    allocate (past(held(j)%bytes / 8))
  end do
  call check(perdure_ipv_object("past", place_of(past), 8_c_size_t * size(past)))
  call check(perdure_ipv_restart(version))
  box%first = memory
  box%counts(1) = 8_c_size_t * n * m
  print '(a, i0, a, i0)', "version ", version, " step ", step
  do while (step < steps)
    by = perdure_ipv_box_begin(box)
    do j = 1, m
      call relax(u(:, j))
    end do
    if (by%how /= perdure_ipv_no_box) call perdure_ipv_box_end(box, 0_c_int)
    u(1, 1) = u(1, 1) + 1  ! that no box announces
    step = step + 1
    past = [past, sum(u)]
    call check(perdure_ipv_resize("past", place_of(past), 8_c_size_t * size(past)))
    call check(perdure_ipv_persist(version))
  end do
  call check(perdure_ipv_status("u", status))
  if (status%tier == perdure_ipv_stream .and. status%versions > 0 .and. status%rows == 0) &
    stop "no rows"
  call check(perdure_ipv_close())
  if (size(past) /= step) stop "the sums of other steps"
  print '(a, i0, a, es23.16, a, es23.16)', "version ", version, " sum ", sum(u * u), &
    " of sums ", sum(past)
  call check(perdure_close(pool))
  call perdure_ipv_free(memory)

contains

  ! c_loc of an array without elements is not defined.
  type(c_ptr) function place_of(array)
    real(c_double), intent(in), target, contiguous :: array(:)
    place_of = c_null_ptr
    if (size(array) > 0) place_of = c_loc(array)
  end function

  ! A load of a neighbour would have to be of a row that is finished.
  subroutine relax(column)
    real(c_double), intent(inout), target, contiguous :: column(:)
    real(c_double), pointer :: from(:)
    integer :: i
    call c_f_pointer(moved(column, by%load), from, [size(column)])
    do i = 1, size(column)
      column(i) = 0.75 * from(i) + 0.001 * i
    end do
  end subroutine

  type(c_ptr) function moved(column, by)
    real(c_double), intent(in), target, contiguous :: column(:)
    integer(c_intptr_t), intent(in) :: by
    moved = transfer(transfer(c_loc(column), by) + by, moved)
  end function

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == 0) return
    print '(a)', perdure_last_error()
    stop 1
  end subroutine
end program
