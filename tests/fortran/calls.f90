! SPDX-License-Identifier: BSD-3-Clause
!
! Every call of the module perdure, in one process: calls POOL. Prints "verdict: right".
program calls
  use, intrinsic :: iso_c_binding
  use perdure
  implicit none
  type(c_ptr) :: pool, other
  type(perdure_array) :: u, v, bytes, marked, none
  type(perdure_options) :: options
  type(perdure_pool_status) :: status
  type(perdure_version_info), allocatable :: versions(:)
  real(c_double), pointer, contiguous :: p(:, :), old(:, :), flat(:)
  integer(c_int32_t), pointer, contiguous :: q(:, :, :)
  integer(c_int8_t), pointer, contiguous :: b(:)
  complex(c_double_complex), pointer, contiguous :: z(:, :, :, :, :, :, :)
  integer(c_int32_t), target :: small
  integer(c_int64_t), target :: step
  real(c_float), target :: single
  real(c_double), target :: time, source(6)
  character(kind=c_char), target :: text(5)
  integer(c_int64_t) :: version
  integer(c_int) :: due, code
  integer :: wrong
  character(len=512) :: path

  call get_command_argument(1, path)
  wrong = 0
  options%job = "calls"
  options%keep = 3
  options%flags = perdure_create
  call require(perdure_open(path, pool, options), "open")
  call check(perdure_open(path, other, options) == perdure_e_busy, "a pool in use is refused")
  call check(len(perdure_last_error()) > 0, "a failure has a sentence")
  call require(perdure_array_open(pool, "u", perdure_double, [3, 2], perdure_twin, u), "array u")
  call require(perdure_array_open(pool, "v", perdure_int32, [2, 3, 4], perdure_copy, v), "array v")
  call require(perdure_array_open(pool, "b", perdure_byte, [9], perdure_log, bytes), "array b")
  call require(perdure_array_open(pool, "z", perdure_complex_double, [1, 2, 1, 2, 1, 2, 1], &
                                  perdure_log, marked, perdure_marks), "array z")
  call check(perdure_array_open(pool, "w", perdure_double, [1, 1, 1, 1, 1, 1, 1, 1], perdure_copy, &
                                none) == perdure_e_invalid, "8 dimensions are refused")
  call check(perdure_memory(u, p) == perdure_e_state, "no memory before the restart")
  call check(.not. associated(p), "and no pointer")
  call require(perdure_scalar(pool, "small", small), "scalar of 4 bytes")
  call require(perdure_scalar(pool, "step", step), "scalar of 8 bytes")
  call require(perdure_scalar(pool, "single", single), "real scalar of 4 bytes")
  call require(perdure_scalar(pool, "time", time), "real scalar of 8 bytes")
  call require(perdure_scalar(pool, "text", c_loc(text), 5_c_size_t), "scalar at an address")
  call check(perdure_commit(pool, version) == perdure_e_state, "no commit before the restart")
  call require(perdure_restart(pool, version), "restart")
  call check(version == 0, "the pool is new")
  call check(perdure_memory(u, flat) == perdure_e_shape, "another rank is refused")
  call check(perdure_memory(v, p) == perdure_e_shape, "another kind is refused")
  call check(perdure_memory(none, p) == perdure_e_invalid, "what is no array is refused")
  call check(perdure_memory(u, p, 7_c_int) == perdure_e_invalid, "a third copy is refused")
  call require(perdure_array_box(u, [6, 2], [4, 1]), "box")
  call check(perdure_array_box(u, [6, 2], [5, 1]) == perdure_e_invalid, "a box beyond is refused")
  call check(perdure_array_box(u, [6], [4]) == perdure_e_invalid, "extents are missing")

  do step = 1, 3
    call fill()
    if (step == 2) then
      call require(perdure_commit_begin(pool), "commit_begin")
      call require(perdure_before_write(v), "before_write")
      call require(perdure_commit_wait(pool, version), "commit_wait")
    else
      call require(perdure_levels_wait(pool, version), "levels_wait")
      call check(version == 0, "a pool without levels has nothing on them")
      call require(perdure_stream(pool, perdure_stream_none, c_null_ptr), "no stream of a GPU")
      call require(perdure_commit_due(pool, due), "commit_due")
      call check(due == perdure_due, "without a plan a version is due")
      call require(perdure_commit(pool, version), "commit")
    end if
    call check(version == step, "versions count the steps")
  end do
  call require(perdure_versions(pool, versions), "versions")
  call check(size(versions) == 3 .and. versions(1)%version == 3, "three versions are kept")
  call require(perdure_memory(u, old, perdure_consistent), "the committed copy")
  call check(all(old == 3), "holds version 3")
  call require(perdure_restore(pool, 2_c_int64_t), "restore")
  call check(step == 2 .and. small == 2 .and. single == 2 .and. time == 2, "scalars of version 2")
  call check(all(text == achar(2)), "the text of version 2")
  call require(perdure_memory(u, p, perdure_consistent), "memory of u")
  call check(all(p == 2), "u of version 2")
  call require(perdure_memory(v, q), "memory of v")
  call check(all(q == 2), "v of version 2")
  call require(perdure_delete_version(pool, 1_c_int64_t), "delete_version")
  call require(perdure_status(pool, status), "status")
  call check(status%version == 2 .and. status%commits == 3, "the status counts")
  call require(perdure_close(pool), "close")

  call change_sizes(.false.)
  call change_sizes(.true.)
  call keep_kinds(.false.)
  call keep_kinds(.true.)
  options%flags = perdure_must_exist
  options%job = "another"
  code = perdure_open(path, pool, options)
  call check(code == perdure_e_foreign, "another job's pool is refused")
  call check(len(perdure_strerror(code)) > 0 .and. len(perdure_library_version()) > 0, "texts")
  if (wrong == 0) print '(a)', "verdict: right"
  if (wrong /= 0) stop 1

contains

  ! All that the pool has, with the number of the step.
  subroutine fill()
    small = int(step, c_int32_t)
    single = real(step, c_float)
    time = real(step, c_double)
    text = achar(int(step))
    source = real(step, c_double)
    call require(perdure_write(u, 1_c_int64_t, 5_c_int64_t, c_loc(source)), "write")
    call require(perdure_write(u, 6_c_int64_t, 1_c_int64_t, c_loc(source)), "write the last one")
    call check(perdure_write(u, 6_c_int64_t, 2_c_int64_t, c_loc(source)) == perdure_e_invalid, &
               "elements beyond the end are refused")
    call require(perdure_memory(v, q), "memory of v")
    q = int(step, c_int32_t)
    call require(perdure_memory(bytes, b), "memory of b")
    b = int(step, c_int8_t)
    call require(perdure_memory(marked, z), "memory of z")
    call require(perdure_mark(marked, 1_c_int64_t, 8_c_int64_t), "mark")
    z = cmplx(step, -step, c_double_complex)
    call check(perdure_mark(marked, 2_c_int64_t, 8_c_int64_t) == perdure_e_invalid, &
               "marks beyond the end are refused")
  end subroutine

  ! An array of Perdure's memory, and an allocatable that is allocated anew; then what comes back.
  subroutine change_sizes(again)
    logical, intent(in) :: again
    type(perdure_array) :: own, given
    type(perdure_array_info), allocatable :: arrays(:)
    integer(c_int64_t), allocatable :: extents(:)
    real(c_double), allocatable, target :: list(:), longer(:)
    integer, parameter :: as_stored(0) = 0
    call require(perdure_open(trim(path)//"-sizes", other, options), "open the pool of sizes")
    call require(perdure_arrays(other, arrays), "arrays")
    if (again) then
      call check(size(arrays) == 2, "two arrays are stored")
      call check(arrays(1)%name == "own" .and. arrays(1)%kind == perdure_double .and. &
                 arrays(1)%mode == perdure_copy .and. .not. arrays(1)%is_open, "the first is known")
      call check(all(arrays(1)%extents == [2, 7]), "with its extents in Fortran's order")
      call check(arrays(2)%bytes == 5000*8, "the list is as long as it was")
      allocate (list(arrays(2)%extents(1)))
      call require(perdure_array_open(other, "own", perdure_double, as_stored, perdure_copy, own), &
                   "open with the stored extents")
    else
      call check(size(arrays) == 0, "a new pool has no arrays")
      allocate (list(3))
      list = 1
      call check(perdure_array_open(other, "own", perdure_double, as_stored, perdure_copy, own) &
                 == perdure_e_not_found, "there are no extents yet")
      call require(perdure_array_open(other, "own", perdure_double, [2, 3], perdure_copy, own), &
                   "own")
    end if
    call require(perdure_array_open(other, "list", perdure_double, [size(list)], perdure_copy, &
                                    given, buffer=c_loc(list)), "an allocatable")
    call require(perdure_restart(other, version), "restart of sizes")
    call require(perdure_memory(own, p), "memory of own")
    if (again) then
      call check(version == 2 .and. all(shape(p) == [2, 7]), "own comes back as it was")
      call check(all(p(:, 1:3) == 1) .and. all(p(:, 4:) == 0), "with its contents")
      call check(all(list(1:3) == 1) .and. all(list(4:) == 2), "and so does the list")
      call check(perdure_restore(other, 1_c_int64_t) == perdure_e_shape, &
                 "a version whose list is shorter is refused: its memory is the program's")
      call require(perdure_array_resize(given, [3], c_loc(list)), "resize it as there")
      call require(perdure_restore(other, 1_c_int64_t), "restore version 1")
      call require(perdure_array_shape(own, extents), "shape after it")
      call check(all(extents == [2, 3]) .and. all(list(1:3) == 1), "sizes are those of version 1")
    else
      p = 1
      call require(perdure_commit(other, version), "commit")
      call require(perdure_array_resize(own, [2, 7]), "resize own")
      call check(perdure_array_resize(own, [14]) == perdure_e_shape, "extents stay as many")
      call require(perdure_array_shape(own, extents), "shape")
      call check(all(extents == [2, 7]), "own has other extents")
      allocate (longer(5000))
      longer(1:3) = list
      longer(4:) = 2
      call move_alloc(longer, list)
      call require(perdure_array_resize(given, [5000], c_loc(list)), "resize the list")
      call require(perdure_commit(other, version), "commit other sizes")
      call require(perdure_array_remove(own), "remove")
      call require(perdure_arrays(other, arrays), "arrays after it")
      call check(size(arrays) == 1, "one is left")
    end if
    call require(perdure_close(other), "close the pool of sizes")
  end subroutine

  ! Logical and character ones, and numbers that Fortran has beside those of C.
  subroutine keep_kinds(again)
    logical, intent(in) :: again
    type(perdure_array) :: a(6)
    type(c_ptr) :: kinds
    logical, pointer, contiguous :: mask(:, :)
    logical(c_bool), pointer, contiguous :: bits(:)
    character(kind=c_char), pointer, contiguous :: names(:, :)
    integer(c_int16_t), pointer, contiguous :: shorts(:)
    integer(c_int8_t), pointer, contiguous :: tiny(:)
    complex(c_float_complex), pointer, contiguous :: waves(:, :)
    logical, target :: on
    logical(c_bool), target :: off
    character(len=9), target :: label
    complex(c_float_complex), target :: wave
    complex(c_double_complex), target :: long_wave
    integer(c_int8_t), target :: digit
    integer(c_int16_t), target :: year
    call require(perdure_open(trim(path)//"-kinds", kinds, options), "open the pool of kinds")
    call require(perdure_array_open(kinds, "mask", perdure_logical, [2, 3], perdure_twin, a(1)), &
                 "mask")
    call require(perdure_array_open(kinds, "bits", perdure_bool, [5], perdure_copy, a(2)), "bits")
    call require(perdure_array_open(kinds, "names", perdure_character, [4, 2], perdure_log, a(3)), &
                 "names")
    call require(perdure_array_open(kinds, "shorts", perdure_int16, [3], perdure_copy, a(4)), &
                 "shorts")
    call require(perdure_array_open(kinds, "tiny", perdure_int8, [3], perdure_copy, a(5)), "tiny")
    call require(perdure_array_open(kinds, "waves", perdure_complex_float, [2, 2], perdure_log, &
                                    a(6)), "waves")
    call require(perdure_scalar(kinds, "on", on), "a logical scalar")
    call require(perdure_scalar(kinds, "off", off), "a logical scalar of one byte")
    call require(perdure_scalar(kinds, "label", label), "a text")
    call require(perdure_scalar(kinds, "wave", wave), "a complex scalar")
    call require(perdure_scalar(kinds, "long wave", long_wave), "a complex scalar of 16 bytes")
    call require(perdure_scalar(kinds, "digit", digit), "a scalar of 1 byte")
    call require(perdure_scalar(kinds, "year", year), "a scalar of 2 bytes")
    call require(perdure_restart(kinds, version), "restart of kinds")
    call check(perdure_memory(a(2), mask) == perdure_e_shape, "bits are no default logicals")
    call check(perdure_memory(a(1), bits) == perdure_e_shape, "and the other way round")
    call check(perdure_memory(a(4), tiny) == perdure_e_shape, "2 bytes are not 1")
    call require(perdure_memory(a(1), mask, merge(perdure_consistent, perdure_working, again)), &
                 "memory of mask")
    call require(perdure_memory(a(2), bits), "memory of bits")
    call require(perdure_memory(a(3), names), "memory of names")
    call require(perdure_memory(a(4), shorts), "memory of shorts")
    call require(perdure_memory(a(5), tiny), "memory of tiny")
    call require(perdure_memory(a(6), waves), "memory of waves")
    if (again) then
      call check(version == 1, "the kinds were committed")
      call check(all(mask .eqv. reshape([.true., .false., .false., .true., .true., .false.], &
                                        [2, 3])), "logicals come back")
      call check(all(bits .eqv. [.false., .true., .true., .false., .true.]), "and those of a byte")
      call check(all(names(:, 2) == ["n", "o", "r", "d"]) .and. names(1, 1) == "w", "characters")
      call check(all(shorts == [-300, 0, 300]) .and. all(tiny == [-3, 0, 3]), "small integers")
      call check(all(waves == cmplx(1, -2, c_float_complex)), "complex elements")
      call check(on .and. .not. off .and. label == "a label", "logical scalars and a text")
      call check(wave == (1, 2) .and. long_wave == (3, 4), "complex scalars")
      call check(digit == -7 .and. year == 2026, "small scalars")
    else
      mask = reshape([.true., .false., .false., .true., .true., .false.], [2, 3])
      bits = [.false., .true., .true., .false., .true.]
      names(:, 1) = ["w", "e", "s", "t"]
      names(:, 2) = ["n", "o", "r", "d"]
      shorts = [-300_c_int16_t, 0_c_int16_t, 300_c_int16_t]
      tiny = [-3_c_int8_t, 0_c_int8_t, 3_c_int8_t]
      waves = cmplx(1, -2, c_float_complex)
      on = .true.
      off = .false.
      label = "a label"
      wave = (1, 2)
      long_wave = (3, 4)
      digit = -7
      year = 2026
      call require(perdure_commit(kinds, version), "commit the kinds")
    end if
    call require(perdure_close(kinds), "close the pool of kinds")
  end subroutine

  subroutine require(status_code, what)
    integer(c_int), intent(in) :: status_code
    character(len=*), intent(in) :: what
    call check(status_code == perdure_ok, what)
    if (status_code /= perdure_ok) print '(a)', perdure_last_error()
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    wrong = wrong + 1
    print '(a,a)', "not so: ", what
  end subroutine
end program
