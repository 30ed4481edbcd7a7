package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// OpArgs are the arguments of a custom op by the names in its schema. What is
// None is not there. A tensor is a backend.Buffer, dense, valid until the op
// returns, as all lists are; a list of tensors a []backend.Buffer, with nil for
// None; other kinds
// are int, []int64, float64, []float64, string, ir.DType, and int 0 or 1 for bool.
// The op must not write into a tensor.
type OpArgs map[string]any

// CustomOp computes an op that PyTorch knows by a registration of its own. The
// results are the caller's, dense, in the order of the schema. A panic becomes
// the error of the run.
type CustomOp func(args OpArgs) ([]backend.Buffer, error)

// ErrRegistered says that there is an op of that name already.
var ErrRegistered = errors.New("the op is registered already")

var custom = struct {
	sync.RWMutex
	ops     map[string]CustomOp  // guarded by the mutex
	schemas map[string]*opSchema // guarded by the mutex; nil for ops registered by name
}{ops: map[string]CustomOp{}, schemas: map[string]*opSchema{}}

// Register gives libraries a custom op by its name in PyTorch, "ns::op", or by its
// schema, "ns::op(Tensor x, float by) -> Tensor". Libraries reach it through the
// proxy executor, which is how AOTInductor compiles calls of ops that it has no C
// function for, and if the schema is known through the dispatcher; RegisterShim
// is for ops that have a C function. It returns an error wrapping ir.ErrArg for a
// name without namespace or one of ATen's and for a schema that makes no sense,
// and ErrRegistered for a name that is taken.
func Register(name string, op CustomOp) error {
	var schema *opSchema
	if strings.Contains(name, "(") {
		var err error
		if schema, err = parseSchema(name); err != nil {
			return err
		}
		name = schema.name
	}
	ns, rest, ok := strings.Cut(name, "::")
	if !ok || ns == "" || rest == "" || ns == "aten" || op == nil {
		return fmt.Errorf("%w: cannot register the op %q", ir.ErrArg, name)
	}
	custom.Lock()
	defer custom.Unlock()
	if custom.ops[name] != nil {
		return fmt.Errorf("%w: %s", ErrRegistered, name)
	}
	custom.ops[name], custom.schemas[name] = op, schema
	return nil
}

func customSchema(name string) *opSchema {
	custom.RLock()
	defer custom.RUnlock()
	return custom.schemas[name]
}

// Unregister takes an op away; libraries that were opened before keep it.
func Unregister(name string) {
	custom.Lock()
	defer custom.Unlock()
	delete(custom.ops, name)
	delete(custom.schemas, name)
}

func customOp(name string) CustomOp {
	custom.RLock()
	defer custom.RUnlock()
	return custom.ops[name]
}

// opName takes the overload off an op's name: "aten::add.Tensor" is add of aten.
func opName(target string) (ns, op string) {
	ns, op, ok := strings.Cut(target, "::")
	if !ok {
		return "", target
	}
	op, _, _ = strings.Cut(op, ".")
	return ns, op
}

// collectiveSpace is the namespace of PyTorch's functional collectives.
const collectiveSpace = "_c10d_functional"

// Collectives returns which of some functions and ops that libraries call compute with other processes.
func Collectives(functions, ops []string) []string {
	var out []string
	for _, name := range slices.Concat(functions, ops) {
		if strings.Contains(name, collectiveSpace) {
			out = append(out, name)
		}
	}
	return out
}
