! SPDX-License-Identifier: BSD-3-Clause
!
! perdure.f90: pools from Fortran: the calls of perdure.h. It needs no MPI; with MPI use the module
! perdure_mpi (perdure_mpi.f90), which has all of this one and opens a pool for a communicator.
!
! Installed as source, because module files belong to one compiler:
!     gfortran -c perdure.f90                    (with perdure_memory.inc beside it)
!     gfortran heat.f90 perdure.o -lperdure
!     use perdure
!     real(c_double), pointer, contiguous :: u(:, :)
!     type(perdure_array) :: array
!     integer(c_int64_t), target :: step
!     code = perdure_open("/mnt/pmem/heat", pool)
!     code = perdure_array_open(pool, "u", perdure_double, [n, m], perdure_copy, array)
!     code = perdure_scalar(pool, "step", step)
!     code = perdure_restart(pool, version)                 ! 0: a new pool
!     code = perdure_memory(array, u)
!     code = perdure_commit(pool, version)                  ! in each step
!
! Functions return perdure_ok or a negative code, as in perdure.h, where each call's rules are;
! perdure_last_error() has the sentence, per thread. What is collective there is collective here.
! Extents and first elements are given in Fortran's order, and elements are counted from 1. Memory
! that is tied to a scalar needs the attribute target and must stay where it is until the close.
module perdure
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer(c_int), parameter, public :: perdure_ok = 0
  integer(c_int), parameter, public :: perdure_e_invalid = -1, perdure_e_state = -2, &
    perdure_e_not_found = -3, perdure_e_io = -4, perdure_e_no_space = -5, perdure_e_busy = -6, &
    perdure_e_foreign = -7, perdure_e_ranks = -8, perdure_e_shape = -9, perdure_e_damaged = -10, &
    perdure_e_newer_format = -11, perdure_e_unsupported = -12, perdure_e_peer_failed = -13

  ! enum perdure_type, perdure_mode, perdure_array_flags, perdure_open_flags, perdure_ranks,
  ! perdure_delay, perdure_due, perdure_direction, perdure_stream_kind; of perdure_memory().
  integer(c_int), parameter, public :: perdure_byte = 1, perdure_int32 = 2, perdure_int64 = 3, &
    perdure_float = 4, perdure_double = 5, perdure_complex_double = 6, perdure_bool = 9, &
    perdure_int8 = 11, perdure_int16 = 12, perdure_complex_float = 14
  ! A default logical is an integer of 4 bytes in the pool, and characters are bytes.
  integer(c_int), parameter, public :: perdure_logical = perdure_int32, &
    perdure_character = perdure_byte
  integer(c_int), parameter, public :: perdure_copy = 1, perdure_twin = 2, perdure_log = 3, &
    perdure_flush = 4
  integer(c_int), parameter, public :: perdure_checksum = 1, perdure_no_checksum = 2, &
    perdure_marks = 4, perdure_compare = 8
  integer(c_int), parameter, public :: perdure_create = 1, perdure_must_exist = 2, &
    perdure_discard = 4, perdure_allow_older = 8, perdure_any_job = 16, perdure_any_owner = 32, &
    perdure_any_ranks = 64
  integer(c_int), parameter, public :: perdure_rows = 1, perdure_same = 2, perdure_by_hand = 3
  integer(c_int), parameter, public :: perdure_delay_virtual = 0, perdure_delay_wait = 1, &
    perdure_delay_drain = 2
  integer(c_int), parameter, public :: perdure_working = 0, perdure_consistent = 1
  integer(c_int), parameter, public :: perdure_to_host = 1, perdure_to_device = 2, &
    perdure_within_device = 3
  integer(c_int), parameter, public :: perdure_not_due = 0, perdure_due = 1, perdure_due_last = 2
  integer(c_int), parameter, public :: perdure_stream_none = 0, perdure_stream_cuda = 1, &
    perdure_stream_hip = 2

  ! perdure_options; texts are given to perdure_open().
  type, public :: perdure_options
    integer(c_int) :: flags = 0
    character(:), allocatable :: job, emulate, levels
    integer(c_int) :: delay = perdure_delay_virtual, copy_threads = 0, keep = 0
  end type

  type, bind(c), public :: perdure_pool_status
    integer(c_int64_t) :: version = 0, commits = 0, commit_ns = 0, commit_ns_last = 0, &
      committed_bytes = 0, restart_ns = 0, model_ns = 0
    integer(c_int) :: survives_power_failure = 0, fell_back = 0, levels_under_way = 0, &
      old_ranks = 0, lacking_snapshots = 0
  end type

  type, bind(c), public :: perdure_version_info
    integer(c_int64_t) :: version = 0, parent = 0, committed_ns = 0
    integer(c_int) :: abandoned = 0
  end type

  integer, parameter :: ranks_max = 7
  integer, allocatable :: units(:)  ! that write noted files

  ! An array of a pool, of at most 7 dimensions.
  type, public :: perdure_array
    private
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int) :: kind = 0
    integer :: dimensions = 0
  end type

  ! What perdure_arrays() says of one, extents in Fortran's order.
  type, public :: perdure_array_info
    character(:), allocatable :: name
    integer(c_int) :: kind, mode
    integer(c_int64_t), allocatable :: extents(:)
    integer(c_int64_t) :: bytes
    logical :: checksums, is_open
  end type

  type, bind(c) :: c_array_info
    character(kind=c_char) :: name(256)
    integer(c_int) :: kind, mode, dimensions
    integer(c_int64_t) :: extents(8), bytes
    integer(c_int) :: checksums, is_open
  end type

  ! perdure_options as C has it. Public for perdure_mpi.
  type, bind(c), public :: perdure_c_options
    integer(c_int) :: flags
    type(c_ptr) :: job, emulate
    integer(c_int) :: delay, copy_threads, keep
    type(c_ptr) :: levels
  end type

  ! As in perdure.h: c_funloc() of functions with bind(c).
  type, bind(c), public :: perdure_device
    type(c_ptr) :: context = c_null_ptr
    type(c_funptr) :: copy = c_null_funptr, follow = c_null_funptr, hold = c_null_funptr, &
      wait = c_null_funptr, allocate = c_null_funptr
  end type

  type, bind(c) :: c_array_options
    integer(c_int) :: flags = 0
    type(c_ptr) :: buffer = c_null_ptr
    integer(c_int) :: ranks = 0
    type(c_ptr) :: device = c_null_ptr
  end type

  public :: perdure_open, perdure_close, perdure_array_open, perdure_scalar
  public :: perdure_array_resize, perdure_array_shape, perdure_array_remove, perdure_arrays
  public :: perdure_old_arrays, perdure_read
  public :: perdure_file, perdure_restart, perdure_versions, perdure_restore, perdure_delete_version
  public :: perdure_memory, perdure_mark, perdure_write, perdure_array_box
  public :: perdure_commit, perdure_commit_begin, perdure_before_write, perdure_commit_wait
  public :: perdure_commit_due, perdure_levels_wait, perdure_status, perdure_stream
  public :: perdure_strerror, perdure_last_error, perdure_library_version
  public :: perdure_to_c

  ! Opens the pool in directory `path` for this process alone, or makes it.
  interface perdure_open
    module procedure open_alone
  end interface

  ! Ties a variable to the scalar `name`: every commit saves it, a restart writes it. Local.
  ! A variable of one of C's kinds, a default logical, a text, or `bytes` bytes at an address.
  interface perdure_scalar
    module procedure scalar_int8, scalar_int16, scalar_int32, scalar_int64, scalar_float, &
      scalar_double, scalar_complex_float, scalar_complex, scalar_logical, scalar_bool, &
      scalar_text, scalar_at
  end interface

  ! An array's memory as a pointer of the array's kind and rank: c_int8_t or characters for bytes,
  ! integers or default logicals for perdure_int32, logical(c_bool) for perdure_bool. `which` is
  ! perdure_working, where the program writes, or perdure_consistent, which of a twin array is the
  ! last committed copy and is not to be written to. Both change with every commit and restore of a
  ! twin array. The pointer is not associated, and the code is perdure_e_state before the restart,
  ! perdure_e_shape if kind or rank are others. Local.
  interface perdure_memory
    module procedure memory_byte_1, memory_byte_2, memory_byte_3, memory_byte_4, memory_byte_5, &
      memory_byte_6, memory_byte_7, memory_int16_1, memory_int16_2, memory_int16_3, &
      memory_int16_4, memory_int16_5, memory_int16_6, memory_int16_7, memory_int32_1, &
      memory_int32_2, memory_int32_3, memory_int32_4, memory_int32_5, memory_int32_6, &
      memory_int32_7, memory_int64_1, memory_int64_2, memory_int64_3, memory_int64_4, &
      memory_int64_5, memory_int64_6, memory_int64_7, memory_float_1, memory_float_2, &
      memory_float_3, memory_float_4, memory_float_5, memory_float_6, memory_float_7, &
      memory_double_1, memory_double_2, memory_double_3, memory_double_4, memory_double_5, &
      memory_double_6, memory_double_7, memory_complex_float_1, memory_complex_float_2, &
      memory_complex_float_3, memory_complex_float_4, memory_complex_float_5, &
      memory_complex_float_6, memory_complex_float_7, memory_complex_1, memory_complex_2, &
      memory_complex_3, memory_complex_4, memory_complex_5, memory_complex_6, memory_complex_7, &
      memory_logical_1, memory_logical_2, memory_logical_3, memory_logical_4, memory_logical_5, &
      memory_logical_6, memory_logical_7, memory_bool_1, memory_bool_2, memory_bool_3, &
      memory_bool_4, memory_bool_5, memory_bool_6, memory_bool_7, memory_character_1, &
      memory_character_2, memory_character_3, memory_character_4, memory_character_5, &
      memory_character_6, memory_character_7
  end interface

  interface
    integer(c_int) function open_of_c(path, options, pool) bind(c, name="perdure_open")
      import :: c_int, c_char, c_ptr, perdure_c_options
      character(kind=c_char), intent(in) :: path(*)
      type(perdure_c_options), intent(in) :: options
      type(c_ptr), intent(out) :: pool
    end function
    ! Waits for an unfinished commit, then releases the pool. Pointers to its arrays are no longer
    ! associated with anything.
    integer(c_int) function perdure_close(pool) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: pool
    end function
    integer(c_int) function array_open_of_c(pool, name, kind, dimensions, shape, mode, options, &
        array) bind(c, name="perdure_array_open")
      import :: c_int, c_char, c_ptr, c_array_options
      type(c_ptr), value :: pool, shape
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: kind, dimensions, mode
      type(c_array_options), intent(in) :: options
      type(c_ptr), intent(out) :: array
    end function
    integer(c_int) function array_resize_of_c(array, shape, buffer) &
        bind(c, name="perdure_array_resize")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: array, buffer
      integer(c_int64_t), intent(in) :: shape(*)
    end function
    integer(c_int) function array_shape_of_c(array, dimensions, shape) &
        bind(c, name="perdure_array_shape")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: array
      integer(c_int), intent(out) :: dimensions
      integer(c_int64_t), intent(out) :: shape(*)
    end function
    integer(c_int) function array_remove_of_c(array) bind(c, name="perdure_array_remove")
      import :: c_int, c_ptr
      type(c_ptr), value :: array
    end function
    integer(c_int) function arrays_of_c(pool, version, arrays, capacity, count) &
        bind(c, name="perdure_arrays")
      import :: c_int, c_ptr, c_int64_t, c_size_t, c_array_info
      type(c_ptr), value :: pool
      integer(c_int64_t), value :: version
      type(c_array_info), intent(inout) :: arrays(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
    end function
    integer(c_int) function old_arrays_of_c(pool, old_rank, arrays, capacity, count) &
        bind(c, name="perdure_old_arrays")
      import :: c_int, c_ptr, c_size_t, c_array_info
      type(c_ptr), value :: pool
      integer(c_int), value :: old_rank
      type(c_array_info), intent(inout) :: arrays(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
    end function
    integer(c_int) function read_of_c(pool, name, old_rank, first, count, elements) &
        bind(c, name="perdure_read")
      import :: c_int, c_char, c_ptr, c_int64_t
      type(c_ptr), value :: pool, elements
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: old_rank
      integer(c_int64_t), value :: first, count
    end function
    integer(c_int) function scalar_of_c(pool, name, kind, address, bytes) &
      bind(c, name="perdure_scalar_typed")
      import :: c_int, c_ptr, c_char, c_size_t
      type(c_ptr), value :: pool, address
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: kind
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function restart_of_c(pool, version) bind(c, name="perdure_restart")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: pool
      integer(c_int64_t), intent(out) :: version
    end function
    integer(c_int) function versions_of_c(pool, versions, capacity, count) &
        bind(c, name="perdure_versions")
      import :: c_int, c_ptr, c_size_t, perdure_version_info
      type(c_ptr), value :: pool
      type(perdure_version_info), intent(inout) :: versions(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
    end function
    integer(c_int) function restore_of_c(pool, version) bind(c, name="perdure_restore")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: pool
      integer(c_int64_t), value :: version
    end function
    ! Frees the space of a version that is not the newest. Collective.
    integer(c_int) function perdure_delete_version(pool, version) bind(c)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: pool
      integer(c_int64_t), value :: version
    end function
    type(c_ptr) function working_of_c(array) bind(c, name="perdure_working")
      import :: c_ptr
      type(c_ptr), value :: array
    end function
    type(c_ptr) function consistent_of_c(array) bind(c, name="perdure_consistent")
      import :: c_ptr
      type(c_ptr), value :: array
    end function
    integer(c_int) function mark_of_c(array, first, count) bind(c, name="perdure_mark")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: array
      integer(c_int64_t), value :: first, count
    end function
    integer(c_int) function write_of_c(array, first, count, elements) bind(c, name="perdure_write")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: array, elements
      integer(c_int64_t), value :: first, count
    end function
    integer(c_int) function box_of_c(array, global_shape, first) bind(c, name="perdure_array_box")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: array
      integer(c_int64_t), intent(in) :: global_shape(*), first(*)
    end function
    integer(c_int) function commit_of_c(pool, version) bind(c, name="perdure_commit")
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: pool
      integer(c_int64_t), intent(out) :: version
    end function
    integer(c_int) function commit_begin_of_c(pool) bind(c, name="perdure_commit_begin")
      import :: c_int, c_ptr
      type(c_ptr), value :: pool
    end function
    integer(c_int) function file_of_c(pool, path, stream) bind(c, name="perdure_file")
      import :: c_int, c_ptr, c_char
      type(c_ptr), value :: pool, stream
      character(kind=c_char), intent(in) :: path(*)
    end function
    ! Makes durable what perdure_commit_begin began. Collective.
    integer(c_int) function perdure_commit_wait(pool, version) bind(c)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: pool
      integer(c_int64_t), intent(out) :: version
    end function
    ! Names the stream of a GPU whose work commits take, and that goes on when they have it.
    integer(c_int) function perdure_stream(pool, kind, stream) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: pool, stream
      integer(c_int), value :: kind
    end function
    ! The newest version that has come to all levels since the pool was opened. Collective.
    integer(c_int) function perdure_levels_wait(pool, version) bind(c)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: pool
      integer(c_int64_t), intent(out) :: version
    end function
    integer(c_int) function before_write_of_c(array) bind(c, name="perdure_before_write")
      import :: c_int, c_ptr
      type(c_ptr), value :: array
    end function
    ! perdure_not_due, perdure_due or, where the job is asked to end, perdure_due_last. Collective.
    integer(c_int) function perdure_commit_due(pool, due) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: pool
      integer(c_int), intent(out) :: due
    end function
    integer(c_int) function perdure_status(pool, status) bind(c)
      import :: c_int, c_ptr, perdure_pool_status
      type(c_ptr), value :: pool
      type(perdure_pool_status), intent(out) :: status
    end function
    type(c_ptr) function strerror_of_c(code) bind(c, name="perdure_strerror")
      import :: c_ptr, c_int
      integer(c_int), value :: code
    end function
    type(c_ptr) function last_error_of_c() bind(c, name="perdure_last_error")
      import :: c_ptr
    end function
    type(c_ptr) function version_of_c() bind(c, name="perdure_library_version")
      import :: c_ptr
    end function
    integer(c_size_t) function strlen(text) bind(c)
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
  end interface

contains

  integer(c_int) function open_alone(path, pool, options)
    character(len=*), intent(in) :: path
    type(c_ptr), intent(out) :: pool
    type(perdure_options), intent(in), optional :: options
    character(kind=c_char, len=:), allocatable, target :: job, emulate, levels
    open_alone = open_of_c(trim(path)//c_null_char, &
                           perdure_to_c(options, job, emulate, levels), pool)
  end function

  ! Options as C has them; the three texts must stay as long as these. For perdure_mpi.
  type(perdure_c_options) function perdure_to_c(options, job, emulate, levels)
    type(perdure_options), intent(in), optional :: options
    character(kind=c_char, len=:), allocatable, target, intent(out) :: job, emulate, levels
    type(perdure_options) :: given
    if (present(options)) given = options
    perdure_to_c = perdure_c_options(given%flags, c_null_ptr, c_null_ptr, given%delay, &
                                     given%copy_threads, given%keep, c_null_ptr)
    if (allocated(given%job)) then
      job = trim(given%job)//c_null_char
      perdure_to_c%job = c_loc(job)
    end if
    if (allocated(given%emulate)) then
      emulate = trim(given%emulate)//c_null_char
      perdure_to_c%emulate = c_loc(emulate)
    end if
    if (allocated(given%levels)) then
      levels = trim(given%levels)//c_null_char
      perdure_to_c%levels = c_loc(levels)
    end if
  end function

  ! Finds or makes the array `name` of 1 to 7 extents. None: those that the pool has, or else
  ! perdure_e_not_found. `buffer`: copy and log, the program's own memory, as c_loc(u), which the
  ! functions of `device` reach. `ranks`: perdure_rows (the last extent is divided anew),
  ! perdure_same or perdure_by_hand, for a pool that another number of ranks made. Local.
  integer(c_int) function perdure_array_open(pool, name, kind, extents, mode, array, flags, &
                                             buffer, ranks, device)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    integer(c_int), intent(in) :: kind, mode
    integer, intent(in) :: extents(:)
    type(perdure_array), intent(out) :: array
    integer(c_int), intent(in), optional :: flags, ranks
    type(c_ptr), intent(in), optional :: buffer
    type(perdure_device), intent(in), target, optional :: device
    type(c_array_options) :: options
    integer(c_int64_t), target :: shape_of_c(8)
    type(c_ptr) :: given
    integer(c_int) :: dimensions
    perdure_array_open = perdure_e_invalid
    if (size(extents) > ranks_max) return
    if (present(ranks)) options%ranks = ranks
    if (present(flags)) options%flags = flags
    if (present(buffer)) options%buffer = buffer
    if (present(device)) options%device = c_loc(device)
    array%kind = kind
    shape_of_c(1:size(extents)) = int(extents(size(extents):1:-1), c_int64_t)
    given = c_null_ptr
    if (size(extents) > 0) given = c_loc(shape_of_c)
    perdure_array_open = array_open_of_c(pool, trim(name)//c_null_char, kind, size(extents), &
                                         given, mode, options, array%handle)
    if (perdure_array_open /= perdure_ok) return
    perdure_array_open = array_shape_of_c(array%handle, dimensions, shape_of_c)
    array%dimensions = dimensions
  end function

  ! Other extents, as many as the array has, from the next version on. Elements stay in memory's
  ! order as far as there is room, new ones are zero; pointers to it are no longer of the array.
  ! `buffer`: where an allocatable lies after it was allocated anew, with the contents; none:
  ! Perdure's memory from now on. Local, after the restart.
  integer(c_int) function perdure_array_resize(array, extents, buffer)
    type(perdure_array), intent(in) :: array
    integer, intent(in) :: extents(:)
    type(c_ptr), intent(in), optional :: buffer
    type(c_ptr) :: given
    integer :: n
    n = array%dimensions
    perdure_array_resize = perdure_e_shape
    if (size(extents) /= n .or. n == 0) return
    given = c_null_ptr
    if (present(buffer)) given = buffer
    perdure_array_resize = array_resize_of_c(array%handle, int(extents(n:1:-1), c_int64_t), given)
  end function

  ! The extents that the array has now. Local.
  integer(c_int) function perdure_array_shape(array, extents)
    type(perdure_array), intent(in) :: array
    integer(c_int64_t), allocatable, intent(out) :: extents(:)
    integer(c_int64_t) :: shape_of_c(8)
    integer(c_int) :: n
    allocate (extents(0))
    perdure_array_shape = array_shape_of_c(array%handle, n, shape_of_c)
    if (perdure_array_shape == perdure_ok) extents = shape_of_c(n:1:-1)
  end function

  ! Closes the array and drops it from the next version on. Local.
  integer(c_int) function perdure_array_remove(array)
    type(perdure_array), intent(inout) :: array
    perdure_array_remove = array_remove_of_c(array%handle)
    if (perdure_array_remove == perdure_ok) array = perdure_array()
  end function

  ! The arrays that this rank has in `version`, one of perdure_versions. 0, or none: in the next
  ! one, which before the restart are those that it will bring back. Local.
  integer(c_int) function perdure_arrays(pool, arrays, version)
    type(c_ptr), intent(in) :: pool
    type(perdure_array_info), allocatable, intent(out) :: arrays(:)
    integer(c_int64_t), intent(in), optional :: version
    type(c_array_info), allocatable :: found(:)
    integer(c_int64_t) :: wanted
    integer(c_size_t) :: count, i
    wanted = 0
    if (present(version)) wanted = version
    allocate (arrays(0), found(0))
    perdure_arrays = arrays_of_c(pool, wanted, found, 0_c_size_t, count)
    if (perdure_arrays /= perdure_ok) return
    deallocate (arrays, found)
    allocate (arrays(count), found(count))
    perdure_arrays = arrays_of_c(pool, wanted, found, count, count)
    do i = 1, size(found)
      call take_info(found(i), arrays(i))
    end do
  end function

  ! The same of what `old_rank` (from 0) has in the version that is gone on from, if another number
  ! of ranks made the pool (perdure_status). Until the first commit. Local.
  integer(c_int) function perdure_old_arrays(pool, old_rank, arrays)
    type(c_ptr), intent(in) :: pool
    integer, intent(in) :: old_rank
    type(perdure_array_info), allocatable, intent(out) :: arrays(:)
    type(c_array_info), allocatable :: found(:)
    integer(c_size_t) :: count, i
    allocate (arrays(0), found(0))
    perdure_old_arrays = old_arrays_of_c(pool, old_rank, found, 0_c_size_t, count)
    if (perdure_old_arrays /= perdure_ok) return
    deallocate (arrays, found)
    allocate (arrays(count), found(count))
    perdure_old_arrays = old_arrays_of_c(pool, old_rank, found, count, count)
    do i = 1, size(found)
      call take_info(found(i), arrays(i))
    end do
  end function

  ! Copies `count` elements from element `first` (from 1, in memory's order) of an array of an old
  ! rank to the address `elements`. Until the first commit. Local.
  integer(c_int) function perdure_read(pool, name, old_rank, first, count, elements)
    type(c_ptr), intent(in) :: pool, elements
    character(len=*), intent(in) :: name
    integer, intent(in) :: old_rank
    integer(c_int64_t), intent(in) :: first, count
    perdure_read = read_of_c(pool, trim(name)//c_null_char, old_rank, first - 1, count, elements)
  end function

  subroutine take_info(from, to)
    type(c_array_info), intent(in) :: from
    type(perdure_array_info), intent(out) :: to
    integer :: length
    to%name = ""
    do length = 1, 255
      if (from%name(length) == c_null_char) exit
      to%name = to%name//from%name(length)
    end do
    to%kind = from%kind
    to%mode = from%mode
    to%extents = from%extents(from%dimensions:1:-1)
    to%bytes = from%bytes
    to%checksums = from%checksums /= 0
    to%is_open = from%is_open /= 0
  end subroutine

  integer(c_int) function scalar_int8(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    integer(c_int8_t), target, intent(in) :: variable
    scalar_int8 = scalar_typed(pool, name, perdure_int8, c_loc(variable), 1)
  end function

  integer(c_int) function scalar_int16(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    integer(c_int16_t), target, intent(in) :: variable
    scalar_int16 = scalar_typed(pool, name, perdure_int16, c_loc(variable), 2)
  end function

  integer(c_int) function scalar_int32(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    integer(c_int32_t), target, intent(in) :: variable
    scalar_int32 = scalar_typed(pool, name, perdure_int32, c_loc(variable), 4)
  end function

  integer(c_int) function scalar_int64(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    integer(c_int64_t), target, intent(in) :: variable
    scalar_int64 = scalar_typed(pool, name, perdure_int64, c_loc(variable), 8)
  end function

  integer(c_int) function scalar_float(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    real(c_float), target, intent(in) :: variable
    scalar_float = scalar_typed(pool, name, perdure_float, c_loc(variable), 4)
  end function

  integer(c_int) function scalar_double(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    real(c_double), target, intent(in) :: variable
    scalar_double = scalar_typed(pool, name, perdure_double, c_loc(variable), 8)
  end function

  integer(c_int) function scalar_complex_float(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    complex(c_float_complex), target, intent(in) :: variable
    scalar_complex_float = scalar_typed(pool, name, perdure_complex_float, c_loc(variable), 8)
  end function

  integer(c_int) function scalar_complex(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    complex(c_double_complex), target, intent(in) :: variable
    scalar_complex = scalar_typed(pool, name, perdure_complex_double, c_loc(variable), 16)
  end function

  integer(c_int) function scalar_logical(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    logical, target, intent(in) :: variable
    scalar_logical = scalar_typed(pool, name, perdure_logical, c_loc(variable), 4)
  end function

  integer(c_int) function scalar_bool(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    logical(c_bool), target, intent(in) :: variable
    scalar_bool = scalar_typed(pool, name, perdure_bool, c_loc(variable), 1)
  end function

  ! All of the variable, with the blanks at its end.
  integer(c_int) function scalar_text(pool, name, variable)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: name
    character(len=*, kind=c_char), target, intent(in) :: variable
    integer(c_int), parameter :: text = 10
    scalar_text = scalar_typed(pool, name, text, c_loc(variable), len(variable))
  end function

  integer(c_int) function scalar_typed(pool, name, kind, address, bytes)
    type(c_ptr), intent(in) :: pool, address
    character(len=*), intent(in) :: name
    integer(c_int), intent(in) :: kind
    integer, intent(in) :: bytes
    scalar_typed = scalar_of_c(pool, trim(name)//c_null_char, kind, address, &
                               int(bytes, c_size_t))
  end function

  integer(c_int) function scalar_at(pool, name, address, bytes)
    type(c_ptr), intent(in) :: pool, address
    character(len=*), intent(in) :: name
    integer(c_size_t), intent(in) :: bytes
    scalar_at = scalar_of_c(pool, trim(name)//c_null_char, 0_c_int, address, bytes)
  end function

  ! The versions that all ranks hold, newest first. Local.
  integer(c_int) function perdure_versions(pool, versions)
    type(c_ptr), intent(in) :: pool
    type(perdure_version_info), allocatable, intent(out) :: versions(:)
    integer(c_size_t) :: count
    allocate (versions(64))
    perdure_versions = versions_of_c(pool, versions, 64_c_size_t, count)
    if (perdure_versions /= perdure_ok) count = 0
    versions = versions(1:count)
  end function

  ! Log mode with perdure_marks: `count` elements from element `first` (from 1, in memory's order)
  ! were or will be changed. Local.
  integer(c_int) function perdure_mark(array, first, count)
    type(perdure_array), intent(in) :: array
    integer(c_int64_t), intent(in) :: first, count
    perdure_mark = mark_of_c(array%handle, first - 1, count)
  end function

  ! Twin mode: stores `count` elements, which begin at the address `elements`, from element `first`
  ! (from 1, in memory's order) of the working copy on, past the cache. Local.
  integer(c_int) function perdure_write(array, first, count, elements)
    type(perdure_array), intent(in) :: array
    integer(c_int64_t), intent(in) :: first, count
    type(c_ptr), intent(in) :: elements
    perdure_write = write_of_c(array%handle, first - 1, count, elements)
  end function

  ! Where this rank's array lies in one of all ranks: its first element is element `first` (from 1)
  ! of an array of `global_shape`. Local.
  integer(c_int) function perdure_array_box(array, global_shape, first)
    type(perdure_array), intent(in) :: array
    integer, intent(in) :: global_shape(:), first(:)
    integer :: n
    n = array%dimensions
    perdure_array_box = perdure_e_invalid
    if (size(global_shape) /= n .or. size(first) /= n) return
    if (any(first < 1) .or. any(global_shape < 0)) return
    perdure_array_box = box_of_c(array%handle, int(global_shape(n:1:-1), c_int64_t), &
                                 int(first(n:1:-1) - 1, c_int64_t))
  end function

  ! Names a text file, or another that only grows, which this rank writes: a restart and a restore
  ! cut it back to the length that the version notes, as perdure.h says. Call it before the restart,
  ! in every run, and open the file after the restart, with position="append". `unit`: what writes
  ! it is flushed by each commit as soon as it is open; without it the program flushes. Local.
  integer(c_int) function perdure_file(pool, path, unit)
    type(c_ptr), intent(in) :: pool
    character(len=*), intent(in) :: path
    integer, intent(in), optional :: unit
    if (present(unit)) then
      if (.not. allocated(units)) allocate (units(0))
      if (.not. any(units == unit)) units = [units, unit]
    end if
    call flush_units()
    perdure_file = file_of_c(pool, trim(path)//c_null_char, c_null_ptr)
  end function

  ! What is in their buffers is neither in a file nor noted.
  subroutine flush_units()
    integer :: i
    logical :: is_open
    if (.not. allocated(units)) return
    do i = 1, size(units)
      inquire (unit=units(i), opened=is_open)
      if (is_open) flush (units(i))
    end do
  end subroutine

  ! Gives arrays and scalars the newest version that all ranks hold; 0: a new pool. Collective,
  ! once, after they are opened and before the first commit.
  integer(c_int) function perdure_restart(pool, version)
    type(c_ptr), intent(in) :: pool
    integer(c_int64_t), intent(out) :: version
    call flush_units()
    perdure_restart = restart_of_c(pool, version)
  end function

  ! As perdure_restart, of this version. Collective.
  integer(c_int) function perdure_restore(pool, version)
    type(c_ptr), intent(in) :: pool
    integer(c_int64_t), intent(in) :: version
    call flush_units()
    perdure_restore = restore_of_c(pool, version)
  end function

  ! Makes all arrays and scalars durable as one version of all ranks. Collective.
  integer(c_int) function perdure_commit(pool, version)
    type(c_ptr), intent(in) :: pool
    integer(c_int64_t), intent(out) :: version
    call flush_units()
    perdure_commit = commit_of_c(pool, version)
  end function

  ! In two steps: another thread copies meanwhile; perdure_before_write before writing. Both are
  ! collective.
  integer(c_int) function perdure_commit_begin(pool)
    type(c_ptr), intent(in) :: pool
    call flush_units()
    perdure_commit_begin = commit_begin_of_c(pool)
  end function

  ! After perdure_commit_begin: returns when the array may be written to again. Local.
  integer(c_int) function perdure_before_write(array)
    type(perdure_array), intent(in) :: array
    perdure_before_write = before_write_of_c(array%handle)
  end function

  ! Where an array's copy is, if it is of one of these kinds, and of this rank.
  integer(c_int) function find_memory(array, kinds, dimensions, which, address)
    type(perdure_array), intent(in) :: array
    integer(c_int), intent(in) :: kinds(:)
    integer, intent(in) :: dimensions
    integer(c_int), intent(in), optional :: which
    type(c_ptr), intent(out) :: address
    integer(c_int) :: wanted
    wanted = perdure_working
    if (present(which)) wanted = which
    address = c_null_ptr
    find_memory = perdure_e_invalid
    if (.not. c_associated(array%handle)) return
    if (wanted /= perdure_working .and. wanted /= perdure_consistent) return
    find_memory = perdure_e_shape
    if (all(kinds /= array%kind) .or. array%dimensions /= dimensions) return
    if (wanted == perdure_working) then
      address = working_of_c(array%handle)
    else
      address = consistent_of_c(array%handle)
    end if
    find_memory = perdure_ok
    if (.not. c_associated(address)) find_memory = perdure_e_state
  end function

  ! As many as dimensions, for pointers.
  function extents_of(array) result(extents)
    type(perdure_array), intent(in) :: array
    integer(c_int64_t), allocatable :: extents(:)
    integer(c_int) :: code
    code = perdure_array_shape(array, extents)
  end function

  include "perdure_memory.inc"

  ! A fixed text for a code.
  function perdure_strerror(code) result(text)
    integer(c_int), intent(in) :: code
    character(:), allocatable :: text
    text = text_of(strerror_of_c(code))
  end function

  ! The sentence of this thread's last failure; empty if there was none.
  function perdure_last_error() result(text)
    character(:), allocatable :: text
    text = text_of(last_error_of_c())
  end function

  ! The library's version, such as 0.1.0.
  function perdure_library_version() result(text)
    character(:), allocatable :: text
    text = text_of(version_of_c())
  end function

  function text_of(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: i
    call c_f_pointer(address, bytes, [strlen(address)])
    allocate (character(size(bytes)) :: text)
    do i = 1, size(bytes)
      text(i:i) = bytes(i)
    end do
  end function
end module perdure
