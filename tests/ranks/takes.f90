! SPDX-License-Identifier: BSD-3-Clause
!
! Goes on alone with what several ranks of divide.c made: takes POOL; prints the version.
program takes
  use, intrinsic :: iso_c_binding
  use perdure
  implicit none
  integer, parameter :: lines = 61, columns = 40, particles = 203, table_size = 17
  integer, parameter :: as_stored(0) = 0
  type(perdure_options) :: options
  type(perdure_pool_status) :: status
  type(perdure_array) :: grid, list, table, counts
  type(perdure_array_info), allocatable :: old(:)
  type(c_ptr) :: pool
  real(c_double), pointer, contiguous :: cells(:, :), places(:, :), entries(:)
  integer(c_int64_t), pointer, contiguous :: mine(:)
  integer(c_int64_t), target :: step = 0, its
  integer(c_int64_t) :: version, made, sum
  character(len=1000) :: path
  integer :: rank

  call get_command_argument(1, path)
  options%flags = perdure_any_ranks
  options%job = "divide"
  call need(perdure_open(path, pool, options))
  call need(perdure_status(pool, status))
  call require(status%old_ranks > 1, "old ranks")
  call need(perdure_array_open(pool, "grid", perdure_double, [columns, lines], perdure_twin, grid))
  call need(perdure_array_box(grid, [columns, lines], [1, 1]))
  call need(perdure_array_open(pool, "list", perdure_double, as_stored, perdure_copy, list, &
                               ranks=perdure_rows))
  call need(perdure_array_open(pool, "table", perdure_double, [table_size], perdure_copy, table, &
                               ranks=perdure_same))
  call need(perdure_array_open(pool, "count", perdure_int64, [1], perdure_copy, counts, &
                               ranks=perdure_by_hand))
  call need(perdure_scalar(pool, "step", step))
  call need(perdure_old_arrays(pool, 0, old))
  call require(size(old) == 4, "arrays of an old rank")
  call need(perdure_restart(pool, version))
  call require(step == version, "step")
  call need(perdure_memory(grid, cells, perdure_consistent))
  call need(perdure_memory(list, places))
  call need(perdure_memory(table, entries))
  call require(is(reshape(cells, [size(cells)]), 1), "grid")
  call require(size(places, 2) == particles .and. is(reshape(places, [size(places)]), 2), "list")
  call require(is(entries, 3), "table")
  sum = 0
  do rank = 0, status%old_ranks - 1
    call need(perdure_read(pool, "count", rank, 1_c_int64_t, 1_c_int64_t, c_loc(its)))
    sum = sum + its
  end do
  call require(sum == lines, "count")
  step = step + 1
  call need(perdure_memory(grid, cells))
  call need(perdure_memory(counts, mine))
  cells = reshape(values(1, size(cells)), shape(cells))
  places = reshape(values(2, size(places)), shape(places))
  entries = values(3, size(entries))
  mine = lines
  call need(perdure_commit(pool, made))
  call need(perdure_close(pool))
  print "(i0)", version

contains

  function values(kind, count)
    integer, intent(in) :: kind, count
    real(c_double) :: values(count)
    integer :: i
    values = [(real(kind*1000000 + i - 1, c_double) + real(step, c_double)/1024, i=1, count)]
  end function

  logical function is(elements, kind)
    real(c_double), intent(in) :: elements(:)
    integer, intent(in) :: kind
    is = all(elements == values(kind, size(elements)))
  end function

  subroutine need(code)
    integer(c_int), intent(in) :: code
    if (code == perdure_ok) return
    print "(a)", perdure_last_error()
    error stop 1
  end subroutine

  subroutine require(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    print "(2a)", "wrong: ", what
    error stop 1
  end subroutine
end program
