package host

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/loris-ml/loris/internal/ir"
)

// shimKinds are the C types that arguments of a custom op's function may have.
var shimKinds = map[string]argKind{
	"AtenTensorHandle": kindTensor, "AtenTensorHandle*": kindOptTensor,
	"const AtenTensorHandle*": kindTensors, "const AtenTensorHandle**": kindOptTensors,
	"int64_t": kindInt, "int64_t*": kindOptInt, "const int64_t*": kindInts, "const int64_t**": kindOptInts,
	"int32_t": kindBool, "int": kindBool, "bool": kindBool, "int32_t*": kindOptBool, "const int32_t*": kindBools,
	"uint32_t": kindInt, "double": kindFloat, "float": kindFloat, "double*": kindOptFloat, "const double**": kindOptFloats,
	"const char*": kindString, "const char**": kindOptString,
}

// list reports whether an argument of the kind is followed by its length.
func (k argKind) list() bool {
	switch k {
	case kindTensors, kindOptTensors, kindInts, kindOptInts, kindBools, kindOptFloats:
		return true
	}
	return false
}

// shimOp is a custom op that libraries call by a C function.
type shimOp struct {
	signature
	types []string // of the arguments, as in C
	op    CustomOp
}

var shims = struct {
	sync.RWMutex
	byName map[string]*shimOp // guarded by the mutex
}{byName: map[string]*shimOp{}}

// minShimName is the length of the longest name of a trampoline; names of functions
// take the place of another in the file of a library, so they cannot be shorter.
const minShimName = len("lori_call_63")

var (
	shimPrototype = regexp.MustCompile(`^\s*(?:AOTI_TORCH_EXPORT\s+)?(?:AOTITorchError|int32_t)\s+([A-Za-z_]\w*)\s*\(([^()]*)\)\s*;?\s*$`)
	shimArgument  = regexp.MustCompile(`^(.*[\s*])([A-Za-z_]\w*)$`)
	shimResult    = regexp.MustCompile(`^(ret\w*|out\d*)$`)
)

// ErrTrampolines says that as many different custom functions are in use as there may
// be.
var ErrTrampolines = errors.New("no more than 64 functions of custom ops can be in use")

// RegisterShim gives libraries a custom op that they call by a C function of its
// own. prototype is the declaration that PyTorch was given for it when it
// compiled them, in the option aot_inductor.custom_ops_to_c_shims:
//
//	AOTITorchError aoti_torch_cpu_scaled(AtenTensorHandle x, double by, AtenTensorHandle* ret0)
//
// The arguments of op have the names of the prototype; it must not write into
// them. Results are the arguments AtenTensorHandle* named ret…, or out and a
// number, in order; other AtenTensorHandle* are optional tensors. Lists are
// followed by an int64_t of any name, their length.
//
// It returns an error wrapping ir.ErrArg for a prototype that it cannot read or
// whose name has fewer than 12 letters, and ErrRegistered for a function that the host has.
func RegisterShim(prototype string, op CustomOp) error {
	s, err := parseShim(prototype)
	if err != nil {
		return err
	}
	if op == nil {
		return fmt.Errorf("%w: no op for %s", ir.ErrArg, s.name)
	}
	s.op = op
	shims.Lock()
	defer shims.Unlock()
	if shims.byName[s.name] != nil || builtIn(s.name) {
		return fmt.Errorf("%w: %s", ErrRegistered, s.name)
	}
	shims.byName[s.name] = s
	return nil
}

// UnregisterShim takes a function away; libraries that were opened before keep
// it.
func UnregisterShim(name string) {
	shims.Lock()
	defer shims.Unlock()
	delete(shims.byName, name)
}

func customShim(name string) *shimOp {
	shims.RLock()
	defer shims.RUnlock()
	return shims.byName[name]
}

func parseShim(prototype string) (*shimOp, error) {
	m := shimPrototype.FindStringSubmatch(prototype)
	if m == nil {
		return nil, fmt.Errorf("%w: %q is no prototype of a function that returns AOTITorchError", ir.ErrArg, prototype)
	}
	s := &shimOp{signature: signature{name: m[1]}}
	if len(s.name) < minShimName {
		return nil, fmt.Errorf("%w: the name %s is too short: it needs %d letters", ir.ErrArg, s.name, minShimName)
	}
	if args := strings.TrimSpace(m[2]); args != "" && args != "void" {
		for arg := range strings.SplitSeq(args, ",") {
			if err := s.add(arg); err != nil {
				return nil, err
			}
		}
	}
	for i, p := range s.params {
		if p.kind.list() && (i+1 == len(s.params) || s.types[i+1] != "int64_t") {
			return nil, fmt.Errorf("%w: the list %s of %s needs its length after it, an int64_t", ir.ErrArg, p.name, s.name)
		}
	}
	return s, nil
}

// add reads the declaration of the next argument.
func (s *shimOp) add(arg string) error {
	m := shimArgument.FindStringSubmatch(strings.TrimSpace(arg))
	if m == nil {
		return fmt.Errorf("%w: an argument %q of %s: it needs a type and a name", ir.ErrArg, arg, s.name)
	}
	ctype, name := strings.Join(strings.Fields(strings.ReplaceAll(m[1], "*", " * ")), " "), m[2]
	ctype = strings.ReplaceAll(strings.ReplaceAll(ctype, "* ", "*"), " *", "*")
	kind, ok := shimKinds[ctype]
	if !ok {
		return fmt.Errorf("%w: argument %s of %s has the type %q, which no argument of a shim has", ir.ErrArg, name, s.name, ctype)
	}
	if kind == kindOptTensor && shimResult.MatchString(name) {
		kind = kindOut
	}
	s.params, s.types = append(s.params, param{name, kind}), append(s.types, ctype)
	return nil
}
