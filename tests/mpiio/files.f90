! SPDX-License-Identifier: BSD-3-Clause
!
! A program of file I/O in each of MPI's three Fortran bindings, chosen by the preprocessor:
! BINDING_MPIF (mpif.h), BINDING_MPI (use mpi), BINDING_F08 (use mpi_f08). It knows nothing of the
! cache.
!
! Each rank writes its own records of a file through a view, in each of the ways that MPI has, and
! reads them back; rank 0 then reads the whole file without a view. Prints "verdict: right", or
! "verdict: wrong" with how many cells were wrong, which ends the job with 1.
program files
#if defined(BINDING_F08)
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  type(MPI_File) :: file
  type(MPI_Datatype) :: spread, records
  type(MPI_Request) :: request
  type(MPI_Status) :: status
#elif defined(BINDING_MPI)
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: file, spread, records, request, status(MPI_STATUS_SIZE)
#else
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer :: file, spread, records, request, status(MPI_STATUS_SIZE)
#endif
  integer, parameter :: cells = 64, ways = 5
  integer :: own(cells), seen(cells), rank, ranks, wrong, code, counted, i, way, amode
  integer(MPI_OFFSET_KIND) :: place, bytes
  integer(MPI_ADDRESS_KIND) :: stride
  character(len=512) :: folder

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call get_environment_variable("TMPDIR", folder)
  wrong = 0
  amode = ior(MPI_MODE_CREATE, MPI_MODE_RDWR)
  call MPI_File_open(MPI_COMM_WORLD, trim(folder)//"/fortran", amode, MPI_INFO_NULL, file, code)
  call expect(code, MPI_SUCCESS)
  call set_records()
  call write_records()
  call read_records()
  call MPI_File_close(file, code)
  call expect(code, MPI_SUCCESS)
  if (rank == 0) call read_file()

  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (rank == 0 .and. wrong == 0) print '(a)', "verdict: right"
  if (rank == 0 .and. wrong /= 0) print '(a,i0)', "verdict: wrong ", wrong
  call MPI_Finalize(code)
  if (wrong /= 0) stop 1

contains

  integer function cell(of_rank, of_way, i)
    integer, intent(in) :: of_rank, of_way, i
    cell = 10000*of_rank + 100*of_way + i
  end function

  subroutine expect(found, wanted)
    integer, intent(in) :: found, wanted
    if (found /= wanted) wrong = wrong + 1
  end subroutine

  ! The file is records of the ranks in turn; each rank sees its own.
  subroutine set_records()
    call MPI_Type_contiguous(cells, MPI_INTEGER, records, code)
    stride = int(ranks, MPI_ADDRESS_KIND)*cells*4
    call MPI_Type_create_resized(records, 0_MPI_ADDRESS_KIND, stride, spread, code)
    call MPI_Type_commit(spread, code)
    place = int(rank, MPI_OFFSET_KIND)*cells*4
    call MPI_File_set_view(file, place, MPI_INTEGER, spread, "native", MPI_INFO_NULL, code)
    call expect(code, MPI_SUCCESS)
  end subroutine

  subroutine prepare(of_way)
    integer, intent(in) :: of_way
    own = [(cell(rank, of_way, i), i=1, cells)]
    place = int(of_way - 1, MPI_OFFSET_KIND)*cells
  end subroutine

  subroutine write_records()
    call prepare(1)
    call MPI_File_write_at(file, place, own, cells, MPI_INTEGER, status, code)
    call MPI_Get_count(status, MPI_INTEGER, counted, code)
    call expect(counted, cells)
    call prepare(2)
    call MPI_File_seek(file, place, MPI_SEEK_SET, code)
    call MPI_File_write_all(file, own, cells, MPI_INTEGER, status, code)
    call prepare(3)
    call MPI_File_iwrite(file, own, cells, MPI_INTEGER, request, code)
    call MPI_Wait(request, status, code)
    call MPI_Get_count(status, MPI_INTEGER, counted, code)
    call expect(counted, cells)
    call prepare(4)
    call MPI_File_write_at_all_begin(file, place, own, cells, MPI_INTEGER, code)
    call MPI_File_write_at_all_end(file, own, status, code)
    call prepare(5)
    call MPI_File_iwrite_at(file, place, own, cells, MPI_INTEGER, request, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call MPI_File_sync(file, code)
    call expect(code, MPI_SUCCESS)
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end subroutine

  subroutine read_records()
    place = 0
    call MPI_File_seek(file, place, MPI_SEEK_SET, code)
    do way = 1, ways
      call MPI_File_read(file, seen, cells, MPI_INTEGER, status, code)
      do i = 1, cells
        call expect(seen(i), cell(rank, way, i))
      end do
    end do
    call MPI_File_get_position(file, place, code)
    call expect(int(place), ways*cells)
    call MPI_File_get_size(file, bytes, code)
    call expect(int(bytes), ways*ranks*cells*4)
  end subroutine

  ! With Fortran's own input, which no MPI sees.
  subroutine read_file()
    integer :: found(cells), unit, of_rank
    open (newunit=unit, file=trim(folder)//"/fortran", access="stream", form="unformatted", &
          status="old", action="read")
    do way = 1, ways
      do of_rank = 0, ranks - 1
        read (unit) found
        do i = 1, cells
          call expect(found(i), cell(of_rank, way, i))
        end do
      end do
    end do
    close (unit)
  end subroutine
end program
