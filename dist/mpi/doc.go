// Package mpi is an engine of package dist over an MPI library that it finds and opens at run time, without
// cgo: MPICH, Open MPI, and others that have the ABI of MPICH or the standard one of MPI 5, such as Intel
// MPI, which was not tried. It is imported for its effect, and dist.Init starts it:
//
//	import _ "github.com/loris-ml/loris/dist/mpi"
//
// The library is that of LORIS_MPI, the path of a libmpi; else the one beside the mpiexec that is on the
// PATH; else the system's. Under mpiexec and srun the launcher brings the processes together. Where RANK,
// WORLD_SIZE, MASTER_ADDR and MASTER_PORT are all there is (torchrun, Kubeflow, Ray, a shell), rank 0
// serves MPI's start protocol itself, at LORIS_PORT or the port after MASTER_PORT, to those who have
// LORIS_TOKEN; MPICH and Intel MPI start in this way, Open MPI does not.
//
// Signals stay Go's: handlers that the libraries install in place of Go's are taken back.
//
// Beside MPI the ranks have a control channel over TCP, on which a rank that dies or stops is found and
// told to the others.
//
// It is a module of its own, and works on Linux, amd64 and arm64: a program that opens libraries is linked
// dynamically, which those who do without MPI need not be.
package mpi
