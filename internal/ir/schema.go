package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// ParamKind is the kind of one parameter of an op's schema.
type ParamKind uint8

// The kinds. Tensor kinds and Scalar are operands (graph inputs); the rest are
// attributes, which enter the hash. A Scalar operand accepts a plain number,
// which becomes a rank-0 parameter of the graph: changing it never recompiles.
const (
	KindTensor    ParamKind = iota // Tensor
	KindOptTensor                  // Tensor?
	KindTensors                    // Tensor[]
	KindScalar                     // Scalar: a rank-0 or broadcastable operand
	KindOptScalar                  // Scalar?
	KindInt                        // int
	KindOptInt                     // int?
	KindInts                       // int[]
	KindOptInts                    // int[]?
	KindFloat                      // float
	KindOptFloat                   // float?
	KindBool                       // bool
	KindStr                        // str
	KindDType                      // ScalarType
	KindOptDType                   // ScalarType?
	KindNumber                     // number: an integer or float constant in the hash
)

var paramKinds = map[string]ParamKind{
	"Tensor": KindTensor, "Tensor?": KindOptTensor, "Tensor[]": KindTensors,
	"Scalar": KindScalar, "Scalar?": KindOptScalar, "int": KindInt, "int?": KindOptInt,
	"int[]": KindInts, "int[]?": KindOptInts, "float": KindFloat, "float?": KindOptFloat,
	"bool": KindBool, "str": KindStr, "ScalarType": KindDType, "ScalarType?": KindOptDType,
	"number": KindNumber,
}

// Operand reports whether the parameter is a graph input.
func (k ParamKind) Operand() bool { return k <= KindOptScalar }

// Optional reports whether an argument may be None.
func (k ParamKind) Optional() bool { return k == KindOptTensor || k == KindOptScalar || isOptional(k) }

// Param is one parameter of a schema.
type Param struct {
	Name    string
	Kind    ParamKind
	Type    string // as written: "int[]?"
	KwOnly  bool   // after the *
	HasDef  bool
	Default any // int, float64, bool, string, []int, DType or nil, by Kind
}

// Schema is the signature of an op in the notation of ATen's
// native_functions.yaml, for example
// "sum(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor".
type Schema struct {
	Name    string
	Params  []Param
	Returns []string // names of the outputs; one "*" means a number that Infer decides
}

// Param returns the index of the parameter with the given name, or -1.
func (s *Schema) Param(name string) int {
	for i := range s.Params {
		if s.Params[i].Name == name {
			return i
		}
	}
	return -1
}

// pureTensors reports whether all parameters are plain operands, so that every
// attribute string is empty.
func (s *Schema) pureTensors() bool {
	for _, p := range s.Params {
		if p.Kind != KindTensor && p.Kind != KindScalar {
			return false
		}
	}
	return true
}

// parseSchema reads one signature.
func parseSchema(text string) (*Schema, error) {
	bad := func(why string) error { return fmt.Errorf("ir: schema %q: %s", text, why) }
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return nil, bad("no parameter list")
	}
	i := strings.LastIndex(rest, "->")
	if i < 0 {
		return nil, bad("no ->")
	}
	params := strings.TrimSpace(rest[:i])
	params, ok = strings.CutSuffix(params, ")")
	if !ok {
		return nil, bad("parameter list is not closed")
	}
	s := &Schema{Name: strings.TrimSpace(name)}
	kwOnly := false
	for _, f := range splitTop(params) {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		if f == "*" {
			kwOnly = true
			continue
		}
		p, err := parseParam(f)
		if err != nil {
			return nil, bad(err.Error())
		}
		p.KwOnly = kwOnly
		s.Params = append(s.Params, p)
	}
	s.Returns = parseReturns(strings.TrimSpace(rest[i+2:]))
	return s, nil
}

// splitTop splits at commas that are outside brackets.
func splitTop(s string) []string {
	var out []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[start:i])
				start = i + 1
			}
		}
	}
	return append(out, s[start:])
}

func parseReturns(s string) []string {
	if s == "Tensor[]" {
		return []string{"*"}
	}
	if !strings.HasPrefix(s, "(") {
		return []string{"out"}
	}
	var names []string
	for _, f := range strings.Split(strings.Trim(s, "()"), ",") {
		fields := strings.Fields(f)
		names = append(names, fields[len(fields)-1])
	}
	return names
}

func parseParam(f string) (Param, error) {
	decl, def, hasDef := strings.Cut(f, "=")
	words := strings.Fields(decl)
	if len(words) != 2 {
		return Param{}, fmt.Errorf("parameter %q is not TYPE NAME", f)
	}
	kind, ok := paramKinds[words[0]]
	if !ok {
		return Param{}, fmt.Errorf("no parameter type %q", words[0])
	}
	p := Param{Name: words[1], Kind: kind, Type: words[0], HasDef: hasDef}
	if !hasDef {
		return p, nil
	}
	v, err := parseDefault(kind, strings.TrimSpace(def))
	if err != nil {
		return Param{}, err
	}
	p.Default = v
	return p, nil
}

func parseDefault(kind ParamKind, def string) (any, error) {
	switch {
	case def == "None":
		return nil, nil
	case kind == KindBool:
		return def == "True", nil
	case kind == KindStr:
		return strings.Trim(def, `'"`), nil
	case kind == KindDType || kind == KindOptDType:
		return ParseDType(def)
	case kind == KindInts || kind == KindOptInts:
		out := []int{}
		for _, w := range strings.Split(strings.Trim(def, "[]"), ",") {
			if w = strings.TrimSpace(w); w == "" {
				continue
			}
			n, err := strconv.Atoi(w)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
		return out, nil
	case kind == KindInt || kind == KindOptInt:
		return strconv.Atoi(def)
	case kind == KindFloat || kind == KindOptFloat:
		return strconv.ParseFloat(def, 64)
	}
	if n, err := strconv.Atoi(def); err == nil {
		return n, nil
	}
	return strconv.ParseFloat(def, 64)
}
