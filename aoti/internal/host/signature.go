package host

import (
	_ "embed"

	"github.com/loris-ml/loris/internal/shim"
)

// symbolText lists the functions of PyTorch's C shim: its header, name, result
// and arguments. It is made by scripts/aoti_symbols.py; the C stubs in
// op_gen.c number the functions by their line.
//
//go:embed symbols.txt
var symbolText string

//go:generate go run ../../../internal/gen/shimstubs

// Symbol is a function that artefacts may call.
type Symbol struct {
	// Name is the name in artefacts, such as "aoti_torch_cpu_addmm_out".
	Name string
	// Header is the header of PyTorch that declares it; with ":cuda" if it is
	// there for CUDA only.
	Header string
	// Implemented says that this host has it.
	Implemented bool
	// Where says how models for an accelerator have it computed: OnDevice, ThroughHost,
	// Refused, or "" for what no such model calls and what computes
	// nothing.
	Where Where `json:",omitempty"`
}

// Where is how an op of a model for an accelerator is computed.
type Where string

const (
	// OnDevice is an op that the device computes; some dtypes may go through the host.
	OnDevice Where = "device"
	// ThroughHost is one that the CPU computes from copies of its tensors.
	ThroughHost Where = "CPU copy"
	// Refused is one that no model may call.
	Refused Where = "refused"
)

// argKind is the kind of an argument of a C function. Each argument is one
// machine word in a call; a list is followed by its length, a device by its
// index.
type argKind uint8

const (
	kindOther      argKind = iota
	kindTensor             // handle, NULL for none
	kindOptTensor          // pointer to a handle, NULL for none
	kindTensors            // handles and their number
	kindOptTensors         // pointers to handles, each may be NULL, and their number
	kindGenerator          // always NULL in artefacts
	kindInt
	kindOptInt
	kindInts
	kindOptInts // pointer to the list
	kindBool    // int32_t; dtypes and layouts, too
	kindOptBool
	kindBools
	kindFloat
	kindOptFloat
	kindOptFloats
	kindString
	kindOptString
	kindOut    // where a new handle goes
	kindOutInt // where an int goes
)

var argKinds = map[string]argKind{
	"tensor": kindTensor, "tensor?": kindOptTensor, "tensor*": kindTensors, "tensor?*": kindOptTensors,
	"generator?": kindGenerator, "int": kindInt, "int?": kindOptInt, "int*": kindInts, "int*?": kindOptInts,
	"bool": kindBool, "bool8": kindBool, "bool?": kindOptBool, "bool*": kindBools, "float": kindFloat,
	"float32": kindFloat, "float?": kindOptFloat, "float?*": kindOptFloats, "str": kindString,
	"str?": kindOptString, "out": kindOut, "outint": kindOutInt, "uint32": kindInt, "int8_t": kindBool,
}

// param is one argument of a C function.
type param struct {
	name string
	kind argKind
}

// signature is a function's name and arguments.
type signature struct {
	header, name string
	params       []param
	math         bool // it has a C stub that calls Go, where it has a handler or not
}

// signatures are the functions by line of symbolText, empty for comments.
var signatures = parseSignatures(symbolText)

func parseSignatures(text string) []signature {
	all := shim.Parse(text)
	out := make([]signature, len(all))
	for i, f := range all {
		s := signature{header: f.Header, name: f.Name, math: f.Math()}
		for _, p := range f.Params {
			s.params = append(s.params, param{p.Name, argKinds[p.Kind]})
		}
		out[i] = s
	}
	return out
}

// Symbols returns every function of PyTorch's C shim that an artefact for the
// CPU or for CUDA may call, in the order of the headers.
func Symbols() []Symbol {
	var out []Symbol
	for i := range signatures {
		if s := &signatures[i]; s.name != "" {
			out = append(out, Symbol{Name: s.name, Header: s.header, Implemented: implemented(i), Where: where(i)})
		}
	}
	return out
}
