// SPDX-License-Identifier: BSD-3-Clause
//
// RUN: for o in -O0 -O1 -O2 -O3; do %clang $o %s | %FileCheck %s || exit 1; done
// What the kernel stores, no page fault announces.
#include <stdio.h>
#include <unistd.h>
int MPI_Recv(void*, int, int, int, int, int, void*);
int MPI_Sendrecv(const void*, int, int, int, int, void*, int, int, int, int, int, void*);
void mpi_irecv_(void*, int*, int*, int*, int*, int*, int*, int*);
int MPI_Send(const void*, int, int, int, int, int);

// CHECK-LABEL: define {{.*}}@receive(
// CHECK: call void @perdure_ipv_plain(ptr{{.*}} [[TO:%[0-9]+]])
// CHECK-NEXT: call {{.*}}@MPI_Recv(ptr {{[a-z ]*}}[[TO]],
// CHECK: call void @perdure_ipv_plain(ptr{{.*}} [[TO:%[0-9]+]])
// CHECK-NEXT: call {{.*}}@MPI_Sendrecv({{.*}}, ptr {{[a-z ]*}}[[TO]],
// CHECK: call void @perdure_ipv_plain(ptr{{.*}} [[TO:%[0-9]+]])
// CHECK-NEXT: call {{.*}}@mpi_irecv_(ptr {{[a-z ]*}}[[TO]],
// CHECK: call void @perdure_ipv_plain(ptr{{.*}} [[TO:%[0-9]+]])
// CHECK-NEXT: call {{.*}}@read(i32 {{[a-z ]*}}0, ptr {{[a-z ]*}}[[TO]],
// CHECK: call void @perdure_ipv_plain(ptr{{.*}} [[TO:%[0-9]+]])
// CHECK-NEXT: call {{.*}}@fread(ptr {{[a-z ]*}}[[TO]],
// CHECK-NOT: perdure_ipv_plain
// CHECK: call {{.*}}@MPI_Send(
void receive(double* u, double* v, FILE* file) {
  MPI_Recv(u, 1, 0, 0, 0, 0, 0);
  MPI_Sendrecv(u, 1, 0, 0, 0, v, 1, 0, 0, 0, 0, 0);
  mpi_irecv_(u, 0, 0, 0, 0, 0, 0, 0);
  read(0, u, 8);
  fread(v, 8, 1, file);
  MPI_Send(u, 1, 0, 0, 0, 0);
}
