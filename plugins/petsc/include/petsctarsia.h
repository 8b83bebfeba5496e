// SPDX-License-Identifier: MIT OR Apache-2.0
/* Matrix types of PETSc whose products are Tarsia's. docs/petsc.md says how they are used.
 *
 * A program needs this header only if it links the plugin; with the path of the plugin, as in
 * -dll_append /opt/tarsia/lib/libpetsctarsia.so, and -mat_type aijtarsia an unchanged program has
 * the types, too. */

#ifndef PETSCTARSIA_H
#define PETSCTARSIA_H

#include <petscmat.h>

/* MATAIJTARSIA is MATSEQAIJTARSIA on one rank and MATMPIAIJTARSIA on several. */
#define MATAIJTARSIA "aijtarsia"
#define MATSEQAIJTARSIA "seqaijtarsia"
#define MATMPIAIJTARSIA "mpiaijtarsia"

/* Registers the types. Collective on PETSC_COMM_WORLD; after PetscInitialize. A second call does
 * nothing, also when the library was loaded by -dll_append. */
PETSC_EXTERN PetscErrorCode MatTarsiaRegister(void);

/* Prints one line for each plan that the matrix has: operation, algorithm, bytes, time of analysis
 * and the reason of the choice. For MATMPIAIJTARSIA these are the plans of both local blocks.
 *
 * viewer: an ASCII viewer of one rank. Not collective. */
PETSC_EXTERN PetscErrorCode MatTarsiaView(Mat A, PetscViewer viewer);

#endif
