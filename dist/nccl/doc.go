// Package nccl has collectives on NVIDIA GPUs run by NCCL, in the stream of the program, where sessions
// of package dist compute on CUDA devices. It is imported for its effect, beside the engine of the
// processes, such as dist/mpi, by which ranks agree and find each other:
//
//	import (
//		_ "github.com/loris-ml/loris/dist/mpi"
//		_ "github.com/loris-ml/loris/dist/nccl"
//	)
//
// Builds without the tag cuda have nothing of it. libnccl.so.2 is opened when a group computes its first
// collective on a GPU: that of LORIS_LIBNCCL, a file or a folder, else the system's. Each group has a
// communicator of its own; one that has failed is aborted, so that nothing in a stream waits for a rank
// that is gone.
//
// It was tested on a stand-in for NCCL only.
package nccl
