! SPDX-License-Identifier: BSD-3-Clause
!
! perdure_trace.f90: regions of interest in a memory trace, from Fortran: perdure_trace.h.
!
! Installed as source, because module files belong to one compiler:
!
!     perdure-gfortran --trace -O2 -c perdure_trace.f90
!     perdure-gfortran --trace -O2 solver.f90 perdure_trace.o -o solver
!
!     use perdure_trace
!     call trace_begin("solve")
!     ...
!     call trace_end()
module perdure_trace
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: trace_begin, trace_end, trace_active

  interface
    subroutine c_begin(name) bind(c, name="perdure_trace_begin")
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine c_begin
    subroutine c_end() bind(c, name="perdure_trace_end")
    end subroutine c_end
    integer(c_int) function c_active() bind(c, name="perdure_trace_active")
      import :: c_int
    end function c_active
  end interface

contains

  ! `name` has 1 to 255 characters; blanks at its end do not count.
  subroutine trace_begin(name)
    character(len=*), intent(in) :: name
    call c_begin(trim(name) // c_null_char)
  end subroutine trace_begin

  subroutine trace_end()
    call c_end()
  end subroutine trace_end

  ! Whether this process records a trace.
  logical function trace_active()
    trace_active = c_active() /= 0
  end function trace_active
end module perdure_trace
