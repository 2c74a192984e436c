// SPDX-License-Identifier: BSD-3-Clause
// What docs/tracing.md leaves out.
// first line of the snippet

void run(void);
void conj_grad(void);

void run(void) {
  // snippet
}
