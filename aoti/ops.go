package aoti

import (
	"strings"

	"github.com/loris-ml/loris/aoti/internal/host"
	"github.com/loris-ml/loris/aoti/internal/vecmath"
)

// OpArgs are the arguments of a custom op by the names in its schema. What is
// None is not there. A tensor is a Buffer, dense, valid until the op returns; a
// list of tensors is a []Buffer, with nil for None. The other kinds are int,
// []int64, float64, []float64, string, ir.DType, and int 0 or 1 for bool.
type OpArgs = host.OpArgs

// CustomOp computes an op that PyTorch knows by a registration of its own. It
// must not write into its arguments; the results are dense, belong to the
// caller, and come in the order of the schema. A panic becomes the error of
// the run.
type CustomOp = host.CustomOp

// RegisterOp gives libraries a custom op by its name in PyTorch, "ns::op", or by its
// schema, "ns::op(Tensor x, float by) -> Tensor". Libraries reach it through the
// proxy executor, which is how AOTInductor compiles calls of ops that it has no C
// function for, and through the dispatcher if the schema is known; RegisterShim
// is for ops that have a C function. It returns an error that wraps ir.ErrArg for a
// name without a namespace or one of ATen's and for a schema that cannot be
// parsed, and ErrRegistered for a name that is taken.
func RegisterOp(name string, op CustomOp) error { return host.Register(name, op) }

// UnregisterOp removes a custom op; libraries that were opened before keep it.
func UnregisterOp(name string) { host.Unregister(name) }

// RegisterShim gives libraries a custom op by the prototype of its C function, as
// PyTorch takes it in the option aot_inductor.custom_ops_to_c_shims:
//
//	AOTITorchError aoti_torch_cpu_scaled(AtenTensorHandle x, double by, AtenTensorHandle* ret0)
//
// The arguments of op have the names of the prototype. Results are the arguments
// AtenTensorHandle* named ret…, or out and a number, in order; other
// AtenTensorHandle* are optional tensors. Lists are followed by an int64_t of any
// name, their length. It returns an error that wraps ir.ErrArg for a prototype
// that cannot be parsed or whose name has fewer than 12 letters, and
// ErrRegistered for a function that the host has.
func RegisterShim(prototype string, op CustomOp) error { return host.RegisterShim(prototype, op) }

// UnregisterShim removes a C function; libraries that were opened before keep it.
func UnregisterShim(name string) { host.UnregisterShim(name) }

// SetSeed sets the seed of the random numbers that models compiled by PyTorch
// draw, as torch.manual_seed does. Models that run at once share one sequence.
func SetSeed(seed uint64) { host.SetSeed(seed) }

var (
	// ErrRegistered says that there is a custom op of that name already.
	ErrRegistered = host.ErrRegistered
	// ErrTrampolines says that the process uses as many different C functions of custom ops
	// as there may be.
	ErrTrampolines = host.ErrTrampolines
	// ErrNoLibraries says that this build cannot open libraries, and why.
	ErrNoLibraries = host.ErrNoLibraries
)

// Symbol is a C function that compiled models may call, and whether this
// process has it.
type Symbol = host.Symbol

// SymbolPlace says where a model for an accelerator has a function computed.
type SymbolPlace = host.Where

// The places of Symbol.Where.
const (
	OnDevice    = host.OnDevice
	ThroughHost = host.ThroughHost
	Refused     = host.Refused
)

// Symbols lists the functions of PyTorch's C headers and the vector functions of
// Sleef that models for the CPU or for CUDA may call.
func Symbols() []Symbol {
	list := host.Symbols()
	for _, name := range vecmath.Symbols() {
		name = "Sleef_" + strings.TrimPrefix(name, "Loris_")
		list = append(list, Symbol{Name: name, Header: "sleef.h", Implemented: host.Provides(name)})
	}
	return list
}
