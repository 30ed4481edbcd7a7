//go:build linux && (amd64 || arm64)

package mpi

// abi is what constants are in one family of libraries; the calls are the same.
type abi struct {
	name                   string
	world, bytes           uintptr // handles
	float, double, sum     uintptr
	errorsReturn, infoNull uintptr
	inPlace, statusIgnore  uintptr
	threadMultiple         uintptr
	typeShared             uintptr // MPI_COMM_TYPE_SHARED
}

// standard is the ABI of MPI 5.0, in libmpi_abi.so of MPICH 5, Intel MPI 2021.17 and later.
var standard = abi{
	name: "MPI 5 ABI", world: 0x101, bytes: 0x247, float: 0x210, double: 0x214, sum: 0x21,
	errorsReturn: 0x143, infoNull: 0x130, inPlace: 1, statusIgnore: 0, threadMultiple: 4096, typeShared: 221,
}

// mpich is that of libmpi.so.12: MPICH 3.1 to 5, Intel MPI, Cray MPICH, MVAPICH.
var mpich = abi{
	name: "MPICH", world: 0x44000000, bytes: 0x4c00010d, float: 0x4c00040a, double: 0x4c00080b, sum: 0x58000003,
	errorsReturn: 0x54000001, infoNull: 0x1c000000, inPlace: ^uintptr(0), statusIgnore: 1, threadMultiple: 3, typeShared: 1,
}

// openMPI is that of libmpi.so.40, Open MPI 2 to 5, whose handles are addresses of variables.
func openMPI(symbol func(name string) uintptr) abi {
	return abi{
		name: "Open MPI", world: symbol("ompi_mpi_comm_world"), bytes: symbol("ompi_mpi_byte"),
		float: symbol("ompi_mpi_float"), double: symbol("ompi_mpi_double"), sum: symbol("ompi_mpi_op_sum"),
		errorsReturn: symbol("ompi_mpi_errors_return"), infoNull: symbol("ompi_mpi_info_null"),
		inPlace: 1, statusIgnore: 0, threadMultiple: 3, typeShared: 0,
	}
}
