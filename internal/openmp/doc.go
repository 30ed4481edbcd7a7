// Package openmp is a small OpenMP runtime for compiled models: what gcc emits
// for the parallel loops of Inductor's code, under the names LOMP_… and lmp_…
// that their private copies ask for in the place of libgomp's GOMP_… and omp_….
//
// A parallel region for n threads has n logical threads, always, because
// generated code deals its work out by their numbers. How many run at once is
// another matter: a region takes what the process's limit leaves free, at least
// the calling thread, and runs the logical threads on those, one after another
// if need be. Only where one waits at a barrier for others that have not begun
// do these get threads of their own.
package openmp
