package host

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
)

// opSchema is what an op takes and how many results it has.
type opSchema struct {
	name    string // "ns::op.overload", or without the overload
	params  []param
	returns int
}

var schemaText = regexp.MustCompile(`^\s*([\w:]+(?:\.\w+)?)\s*\((.*)\)\s*->\s*(.*?)\s*$`)

// schemaKinds are the types of arguments that can be passed through a stack of
// words.
var schemaKinds = map[string]argKind{
	"Tensor": kindTensor, "Tensor?": kindOptTensor, "int": kindInt, "SymInt": kindInt, "int?": kindOptInt, "SymInt?": kindOptInt,
	"float": kindFloat, "float?": kindOptFloat, "bool": kindBool, "bool?": kindOptBool, "ScalarType": kindBool, "ScalarType?": kindOptBool,
	"Layout": kindBool, "Layout?": kindOptBool, "MemoryFormat": kindBool, "MemoryFormat?": kindOptBool,
}

// aliasing is what a schema says about the memory of a tensor: "(a!)".
var aliasing = regexp.MustCompile(`\([a-z]!?(?: -> [a-z*])?\)`)

// listDefault is what an argument that is a list is if it is not given.
var listDefault = regexp.MustCompile(`=\[[^\]]*\]`)

// parseSchema reads PyTorch's text of an op: "ns::op(Tensor x, float by=1) -> Tensor".
// Arguments of other types than schemaKinds are kindOther.
func parseSchema(text string) (*opSchema, error) {
	m := schemaText.FindStringSubmatch(listDefault.ReplaceAllString(aliasing.ReplaceAllString(text, ""), ""))
	if m == nil {
		return nil, fmt.Errorf("%w: %q is no schema of an op", ir.ErrArg, text)
	}
	s := &opSchema{name: m[1]}
	for arg := range strings.SplitSeq(m[2], ",") {
		arg, _, _ = strings.Cut(strings.TrimSpace(arg), "=")
		if arg == "" || arg == "*" {
			continue
		}
		kind, name, ok := strings.Cut(arg, " ")
		if !ok {
			return nil, fmt.Errorf("%w: an argument %q in %q", ir.ErrArg, arg, text)
		}
		s.params = append(s.params, param{strings.TrimSpace(name), schemaKinds[kind]})
	}
	if results := strings.Trim(m[3], "() "); results != "" {
		s.returns = strings.Count(results, ",") + 1
	}
	return s, nil
}
