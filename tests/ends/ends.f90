! SPDX-License-Identifier: BSD-3-Clause
!
! ends FOLDER END: what ends.c does, in Fortran: END is finalize, exit (stop), abort, mpi_abort.
program ends
  use mpi_f08
  use, intrinsic :: iso_c_binding
  use perdure_mpi
  implicit none
  interface
    subroutine c_abort() bind(c, name="abort")
    end subroutine
  end interface
  integer, parameter :: cells = 2000, few = 10, words = 1000
  character(len=512) :: folder, end
  integer :: rank, ranks

  call get_command_argument(1, folder)
  call get_command_argument(2, end)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call open_pool()
  call open_window()
  call write_cells("cached", cells, "0")
  call write_cells("later", cells, "")
  call write_cells("aside", few, "")
  call MPI_Barrier(MPI_COMM_WORLD)
  if (end == "exit") stop
  if (end == "abort") call c_abort()
  if (end == "mpi_abort") call MPI_Abort(MPI_COMM_WORLD, 3)
  if (end == "finalize") call MPI_Finalize()

contains

  subroutine need(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print *, "ends: ", what, ": ", perdure_last_error()
    call MPI_Abort(MPI_COMM_WORLD, 9)
  end subroutine

  subroutine write_cells(name, count, from)
    character(*), intent(in) :: name, from
    integer, intent(in) :: count
    type(MPI_File) :: file
    type(MPI_Info) :: info
    integer :: i, value
    integer(MPI_OFFSET_KIND) :: at
    call MPI_Info_create(info)
    call MPI_Info_set(info, "perdure_cache", "on")
    call MPI_Info_set(info, "perdure_cache_directory", trim(folder)//"/parts")
    if (from /= "") call MPI_Info_set(info, "perdure_cache_from", from)
    call MPI_File_open(MPI_COMM_WORLD, trim(folder)//"/"//name, &
        ior(MPI_MODE_CREATE, MPI_MODE_RDWR), info, file)
    call MPI_Info_free(info)
    do i = 0, count - 1
      value = i*ranks + rank + 1
      at = 4_MPI_OFFSET_KIND*(value - 1)
      call MPI_File_write_at(file, at, value, 1, MPI_INTEGER, MPI_STATUS_IGNORE)
    end do
  end subroutine

  subroutine open_pool()
    type(c_ptr) :: pool
    type(perdure_array) :: array
    real(c_double), pointer, contiguous :: u(:)
    integer(c_int64_t) :: version
    call need(perdure_open(MPI_COMM_WORLD, trim(folder)//"/pool", pool) == perdure_ok, "open")
    call need(perdure_array_open(pool, "u", perdure_double, [words], perdure_copy, array) &
              == perdure_ok, "array")
    call need(perdure_restart(pool, version) == perdure_ok, "restart")
    call need(perdure_memory(array, u) == perdure_ok, "memory")
    u = 1
    call need(perdure_commit(pool, version) == perdure_ok, "commit")
    u = 2
  end subroutine

  subroutine open_window()
    type(MPI_Info) :: info
    type(MPI_Win) :: win
    type(c_ptr) :: base
    integer(c_int64_t), pointer :: u(:)
    integer(c_int64_t) :: version
    call MPI_Info_create(info)
    call MPI_Info_set(info, "perdure_name", "w")
    call MPI_Info_set(info, "perdure_pool", trim(folder)//"/windows")
    call MPI_Win_allocate(8_MPI_ADDRESS_KIND*words, 8, info, MPI_COMM_WORLD, base, win)
    call MPI_Info_free(info)
    call c_f_pointer(base, u, [words])
    call MPI_Win_fence(0, win)
    u = 1
    call MPI_Win_fence(0, win)
    call need(perdure_win_commit(win, version) == perdure_ok, "commit of the window")
    u = 2
  end subroutine
end program
