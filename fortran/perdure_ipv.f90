! SPDX-License-Identifier: BSD-3-Clause
!
! perdure_ipv.f90: in-place versioning from Fortran: the calls of perdure_ipv.h and
! perdure_ipv_abi.h. The pool is opened by the module perdure or, with MPI, perdure_mpi.
!
! Installed as source, because module files belong to one compiler:
!
!     gfortran -c perdure.f90 perdure_ipv.f90
!     gfortran heat.f90 perdure_ipv.o perdure.o -lperdure
!
!     use, intrinsic :: iso_c_binding
!     use perdure
!     use perdure_ipv
!     real(c_double), pointer, contiguous :: u(:, :)
!     call c_f_pointer(perdure_ipv_alloc(8_c_size_t * n * m), u, [n, m])
!     code = perdure_open("/mnt/pmem/heat", pool)
!     code = perdure_scalar(pool, "step", step)
!     code = perdure_ipv_open(pool)
!     code = perdure_ipv_object("u", c_loc(u), 8_c_size_t * n * m)
!     code = perdure_ipv_restart(version)
!     do while (step < steps)
!       ...
!       code = perdure_ipv_persist(version)
!     end do
!     code = perdure_ipv_close()
!     code = perdure_close(pool)
!
! An object is named by the address of its first element: c_loc of an array that has the attribute
! target and is contiguous. Functions return 0 or a negative code, as in perdure.h.
module perdure_ipv
  use, intrinsic :: iso_c_binding
  implicit none
  private

  ! How the contents of an object come into its next version (enum perdure_ipv_tier).
  integer(c_int), parameter, public :: perdure_ipv_auto = 0, perdure_ipv_copy = 1, &
    perdure_ipv_stream = 2

  type, bind(c), public :: perdure_ipv_options
    integer(c_int) :: helper = 0
    integer(c_int) :: threads = 0
    integer(c_int) :: every = 0
    integer(c_int) :: no_guard = 0
    integer(c_int) :: no_lag = 0
    type(c_ptr) :: report = c_null_ptr
  end type

  type, bind(c) :: object_options
    integer(c_int) :: tier = 0
    integer(c_int) :: own_pages = 0
  end type

  type, bind(c), public :: perdure_ipv_object_status
    integer(c_int) :: tier = 0
    integer(c_int64_t) :: versions = 0, rows = 0, fresh_row_bytes = 0, copied_bytes = 0, &
      flushed_bytes = 0, streamed_bytes = 0, swaps = 0, swap_ns = 0, guard_faults = 0, &
      persist_ns = 0, pool_bytes = 0, dram_bytes = 0
  end type

  ! What a nest of loops overwrites, and the answer: perdure_ipv_abi.h.
  type, bind(c), public :: perdure_ipv_box
    type(c_ptr) :: first = c_null_ptr
    integer(c_int64_t) :: dimensions = 1
    integer(c_size_t) :: counts(4) = 0
    integer(c_size_t) :: strides(4) = 1
    type(c_ptr) :: others = c_null_ptr
    integer(c_int64_t) :: other_count = 0
  end type
  type, bind(c), public :: perdure_ipv_answer
    integer(c_intptr_t) :: load = 0
    integer(c_intptr_t) :: how = 0
  end type
  integer(c_intptr_t), parameter, public :: perdure_ipv_no_box = 0

  public :: perdure_ipv_open, perdure_ipv_object, perdure_ipv_restart, perdure_ipv_persist
  public :: perdure_ipv_pair, perdure_ipv_alive, perdure_ipv_ranks
  public :: perdure_ipv_resize, perdure_ipv_resize_pair
  public :: perdure_ipv_wait, perdure_ipv_close, perdure_ipv_alloc, perdure_ipv_free
  public :: perdure_ipv_touch, perdure_ipv_pin, perdure_ipv_unpin, perdure_ipv_status
  public :: perdure_ipv_box_begin, perdure_ipv_box_end, perdure_ipv_plain
  public :: perdure_flush_init, perdure_flush_async, perdure_flush_barrier

  interface
    integer(c_int) function ipv_open_of_c(pool, options) bind(c, name="perdure_ipv_open")
      import :: c_int, c_ptr
      type(c_ptr), value :: pool
      type(c_ptr), value :: options
    end function
    integer(c_int) function object_of_c(name, address, bytes, options) &
        bind(c, name="perdure_ipv_object")
      import :: c_int, c_char, c_ptr, c_size_t, object_options
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: address
      integer(c_size_t), value :: bytes
      type(object_options), intent(in) :: options
    end function
    integer(c_int) function pair_of_c(name, a, b, bytes) bind(c, name="perdure_ipv_pair")
      import :: c_int, c_char, c_ptr, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: a, b
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function resize_of_c(name, address, bytes) bind(c, name="perdure_ipv_resize")
      import :: c_int, c_char, c_ptr, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: address
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function resize_pair_of_c(name, a, b, bytes) &
        bind(c, name="perdure_ipv_resize_pair")
      import :: c_int, c_char, c_ptr, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: a, b
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function alive_of_c(name, array) bind(c, name="perdure_ipv_alive")
      import :: c_int, c_char, c_ptr
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(out) :: array
    end function
    integer(c_int) function ranks_of_c(name, ranks) bind(c, name="perdure_ipv_ranks")
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: ranks
    end function
    type(c_ptr) function perdure_ipv_alloc(bytes) bind(c)
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: bytes
    end function
    subroutine perdure_ipv_free(address) bind(c)
      import :: c_ptr
      type(c_ptr), value :: address
    end subroutine
    integer(c_int) function perdure_ipv_restart(version) bind(c)
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(out) :: version
    end function
    integer(c_int) function perdure_ipv_persist(version) bind(c)
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(out) :: version
    end function
    integer(c_int) function perdure_ipv_wait(version) bind(c)
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(out) :: version
    end function
    integer(c_int) function perdure_ipv_close() bind(c)
      import :: c_int
    end function
    subroutine perdure_ipv_touch(address, bytes) bind(c)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: address
      integer(c_size_t), value :: bytes
    end subroutine
    integer(c_int) function perdure_ipv_pin(address) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
    end function
    integer(c_int) function perdure_ipv_unpin(address) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
    end function
    integer(c_int) function status_of_c(name, status) bind(c, name="perdure_ipv_status")
      import :: c_int, c_char, perdure_ipv_object_status
      character(kind=c_char), intent(in) :: name(*)
      type(perdure_ipv_object_status), intent(out) :: status
    end function
    type(perdure_ipv_answer) function perdure_ipv_box_begin(box) bind(c)
      import :: perdure_ipv_answer, perdure_ipv_box
      type(perdure_ipv_box), intent(in) :: box
    end function
    subroutine perdure_ipv_box_end(box, past_cache) bind(c)
      import :: perdure_ipv_box, c_int
      type(perdure_ipv_box), intent(in) :: box
      integer(c_int), value :: past_cache
    end subroutine
    subroutine perdure_ipv_plain(address) bind(c)
      import :: c_ptr
      type(c_ptr), value :: address
    end subroutine
    integer(c_int) function perdure_flush_init(threads) bind(c)
      import :: c_int
      integer(c_int), value :: threads
    end function
    integer(c_int) function perdure_flush_async(address, bytes) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: address
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function perdure_flush_barrier() bind(c)
      import :: c_int
    end function
  end interface

contains

  integer(c_int) function perdure_ipv_open(pool, options)
    type(c_ptr), intent(in) :: pool
    type(perdure_ipv_options), intent(in), optional, target :: options
    type(c_ptr) :: given
    given = c_null_ptr
    if (present(options)) given = c_loc(options)
    perdure_ipv_open = ipv_open_of_c(pool, given)
  end function

  integer(c_int) function perdure_ipv_object(name, address, bytes, tier, own_pages)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: address
    integer(c_size_t), intent(in) :: bytes
    integer(c_int), intent(in), optional :: tier
    logical, intent(in), optional :: own_pages
    type(object_options) :: given
    given%tier = perdure_ipv_auto
    if (present(tier)) given%tier = tier
    if (present(own_pages)) given%own_pages = merge(1, 0, own_pages)
    perdure_ipv_object = object_of_c(trim(name) // c_null_char, address, bytes, given)
  end function

  integer(c_int) function perdure_ipv_pair(name, a, b, bytes)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: a, b
    integer(c_size_t), intent(in) :: bytes
    perdure_ipv_pair = pair_of_c(trim(name) // c_null_char, a, b, bytes)
  end function

  ! An allocatable that was allocated anew, or that an assignment made longer: c_loc of it.
  integer(c_int) function perdure_ipv_resize(name, address, bytes)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: address
    integer(c_size_t), intent(in) :: bytes
    perdure_ipv_resize = resize_of_c(trim(name) // c_null_char, address, bytes)
  end function

  integer(c_int) function perdure_ipv_resize_pair(name, a, b, bytes)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: a, b
    integer(c_size_t), intent(in) :: bytes
    perdure_ipv_resize_pair = resize_pair_of_c(trim(name) // c_null_char, a, b, bytes)
  end function

  integer(c_int) function perdure_ipv_alive(name, array)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(out) :: array
    perdure_ipv_alive = alive_of_c(trim(name) // c_null_char, array)
  end function

  integer(c_int) function perdure_ipv_ranks(name, ranks)
    character(len=*), intent(in) :: name
    integer(c_int), intent(in) :: ranks
    perdure_ipv_ranks = ranks_of_c(trim(name) // c_null_char, ranks)
  end function

  integer(c_int) function perdure_ipv_status(name, status)
    character(len=*), intent(in) :: name
    type(perdure_ipv_object_status), intent(out) :: status
    perdure_ipv_status = status_of_c(trim(name) // c_null_char, status)
  end function
end module
