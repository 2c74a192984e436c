! SPDX-License-Identifier: BSD-3-Clause
!
! Arrays in memory that the processor can't reach: of a GPU, with a driver that needs none, and of a
! device by functions of the program: device POOL. Prints "verdict: right".
module far_memory
  use, intrinsic :: iso_c_binding
  use perdure
  implicit none

  ! An address of the device is one of the host so far away that following it ends the process.
  integer(c_intptr_t), parameter :: away = ishft(1_c_intptr_t, 62)
  integer(c_int) :: calls = 0, failing = 0, held = 0

  interface
    type(c_ptr) function memcpy(to, from, bytes) bind(c)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: to, from
      integer(c_size_t), value :: bytes
    end function
    type(c_ptr) function malloc(bytes) bind(c)
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: bytes
    end function
    subroutine free(memory) bind(c)
      import :: c_ptr
      type(c_ptr), value :: memory
    end subroutine
  end interface

contains

  type(c_ptr) function moved(at, by)
    type(c_ptr), intent(in) :: at
    integer(c_intptr_t), intent(in) :: by
    moved = transfer(transfer(at, by) + by, at)
  end function

  integer(c_int) function copy(context, to, from, bytes, direction) bind(c)
    type(c_ptr), value :: context, to, from
    integer(c_size_t), value :: bytes
    integer(c_int), value :: direction
    type(c_ptr) :: there, here, done
    calls = calls + 1
    copy = merge(5_c_int, 0_c_int, calls == failing .or. c_associated(context))
    if (copy /= 0) return
    there = to
    here = from
    if (direction /= perdure_to_host) there = moved(to, -away)
    if (direction /= perdure_to_device) here = moved(from, -away)
    done = memcpy(there, here, bytes)
  end function

  type(c_ptr) function allocate_there(context, memory, bytes) bind(c)
    type(c_ptr), value :: context, memory
    integer(c_size_t), value :: bytes
    allocate_there = c_null_ptr
    if (c_associated(context)) return
    held = held + merge(1, -1, bytes > 0)
    if (bytes > 0) then
      allocate_there = moved(malloc(bytes), away)
    else
      call free(moved(memory, -away))
    end if
  end function
end module

module driver
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function cuInit(flags) bind(c, name="cuInit")
      import :: c_int
      integer(c_int), value :: flags
    end function
    integer(c_int) function retain(context, number) bind(c, name="cuDevicePrimaryCtxRetain")
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: context
      integer(c_int), value :: number
    end function
    integer(c_int) function set_current(context) bind(c, name="cuCtxSetCurrent")
      import :: c_int, c_ptr
      type(c_ptr), value :: context
    end function
    integer(c_int) function mem_alloc(at, bytes) bind(c, name="cuMemAlloc_v2")
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), intent(out) :: at
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function stream_create(stream, flags, priority) &
        bind(c, name="cuStreamCreateWithPriority")
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: stream
      integer(c_int), value :: flags, priority
    end function
    integer(c_int) function synchronise(stream) bind(c, name="cuStreamSynchronize")
      import :: c_int, c_ptr
      type(c_ptr), value :: stream
    end function
    integer(c_int) function to_device(to, from, bytes, stream) bind(c, name="cuMemcpyHtoDAsync_v2")
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: to, from, stream
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function to_host(to, from, bytes, stream) bind(c, name="cuMemcpyDtoHAsync_v2")
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: to, from, stream
      integer(c_size_t), value :: bytes
    end function
  end interface
end module

program device
  use, intrinsic :: iso_c_binding
  use perdure
  use far_memory
  use driver
  implicit none
  integer, parameter :: n = 40, m = 700
  integer(c_size_t), parameter :: bytes = 8_c_size_t*n*m
  real(c_double), target :: host(n, m)
  integer(c_int64_t) :: version
  integer :: wrong
  character(len=512) :: path

  call get_command_argument(1, path)
  wrong = 0
  call on_gpu()
  call by_functions()
  call in_region()
  if (wrong == 0) print '(a)', "verdict: right"
  if (wrong /= 0) stop 1

contains

  subroutine require(code, what)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: what
    if (code == perdure_ok) return
    print '(3a, i0, 2a)', "failed: ", what, ": ", code, " ", perdure_last_error()
    stop 1
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(2a)', "wrong: ", what
    wrong = wrong + 1
  end subroutine

  ! A pointer to elements of the device, as u is within `!$omp target data use_device_addr(u)`.
  subroutine on_gpu()
    real(c_double), pointer, contiguous :: u(:, :)
    real(c_double), target :: later(n, m)
    type(perdure_array) :: array
    type(c_ptr) :: pool, context, memory, stream
    integer :: step
    call require(cuInit(0_c_int), "cuInit")
    call require(retain(context, 0_c_int), "cuDevicePrimaryCtxRetain")
    call require(set_current(context), "cuCtxSetCurrent")
    call require(mem_alloc(memory, bytes), "cuMemAlloc")
    call require(stream_create(stream, 1_c_int, 0_c_int), "cuStreamCreate")
    call c_f_pointer(memory, u, [n, m])
    call require(perdure_open(trim(path)//"-gpu", pool), "open")
    call require(perdure_array_open(pool, "u", perdure_double, [n, m], perdure_copy, array, &
                                    buffer=c_loc(u)), "an array on the GPU")
    call require(perdure_stream(pool, perdure_stream_cuda, stream), "its stream")
    call require(perdure_restart(pool, version), "restart")
    later = -1
    do step = 1, 3
      host = step
      call require(to_device(memory, c_loc(host), bytes, stream), "work")
      call require(perdure_commit_begin(pool), "commit_begin")
      call require(to_device(memory, c_loc(later), bytes, stream), "work after it")
      call require(perdure_commit_wait(pool, version), "commit_wait")
      call require(synchronise(stream), "the stream")
    end do
    call require(perdure_restore(pool, 3_c_int64_t), "restore")
    call require(to_host(c_loc(host), memory, bytes, stream), "copy back")
    call require(synchronise(stream), "the stream")
    call check(all(host == 3), "the GPU has what the stream had done")
    call require(perdure_stream(pool, perdure_stream_none, c_null_ptr), "no stream")
    call require(perdure_close(pool), "close")
    call on_processor("-gpu", 3._c_double)
  end subroutine

  subroutine by_functions()
    type(perdure_device) :: functions
    type(perdure_array) :: array
    type(c_ptr) :: pool
    real(c_double), target :: far(n, m)
    functions%allocate = c_funloc(allocate_there)
    call require(perdure_open(trim(path)//"-functions", pool), "open")
    call check(perdure_array_open(pool, "u", perdure_double, [n, m], perdure_log, array, &
                                  buffer=moved(c_loc(far), away), device=functions) &
               == perdure_e_invalid, "a device without a copy is refused")
    functions%copy = c_funloc(copy)
    call require(perdure_array_open(pool, "u", perdure_double, [n, m], perdure_log, array, &
                                    buffer=moved(c_loc(far), away), device=functions), &
                 "an array by functions")
    call require(perdure_restart(pool, version), "restart")
    far = 4
    call require(perdure_commit(pool, version), "commit")
    call check(calls > 0, "the function was called")
    far = 5
    failing = calls + 1
    call check(perdure_commit(pool, version) == perdure_e_io, "a copy that fails fails the commit")
    call require(perdure_restore(pool, 1_c_int64_t), "restore")
    call check(all(far == 4), "the device has what it had")
    call require(perdure_close(pool), "close")
    call check(held == 0, "all memory of the device was given back")
    call on_processor("-functions", 4._c_double)
  end subroutine

  ! Where there is no device, the region's address is the host's.
  subroutine in_region()
    type(perdure_array) :: array
    type(c_ptr) :: pool
    real(c_double), allocatable, target :: u(:, :)
    allocate (u(n, m))
    u = 6
    call require(perdure_open(trim(path)//"-region", pool), "open")
    !$omp target data map(tofrom: u) use_device_addr(u)
    call require(perdure_array_open(pool, "u", perdure_double, [n, m], perdure_copy, array, &
                                    buffer=c_loc(u)), "an array in a region")
    call require(perdure_restart(pool, version), "restart")
    call require(perdure_commit(pool, version), "commit")
    call require(perdure_close(pool), "close")
    !$omp end target data
    call on_processor("-region", 6._c_double)
  end subroutine

  subroutine on_processor(name, expected)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: expected
    type(perdure_array) :: array
    type(c_ptr) :: pool
    integer, parameter :: as_stored(0) = 0
    host = 0
    call require(perdure_open(trim(path)//name, pool), "open again")
    call require(perdure_array_open(pool, "u", perdure_double, as_stored, &
                                    merge(perdure_log, perdure_copy, name == "-functions"), array, &
                                    buffer=c_loc(host)), "the array in the host's memory")
    call require(perdure_restart(pool, version), "restart without a device")
    call check(all(host == expected), name//": the processor goes on with it")
    call require(perdure_close(pool), "close again")
  end subroutine
end program
