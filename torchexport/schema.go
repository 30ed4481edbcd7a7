package torchexport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/ir"
)

// The types here are those of torch/_export/serde/schema.py that the reader needs. Fields that it
// does not know are ignored: new minor versions of the schema add some.

type jsonProgram struct {
	GraphModule      jsonGraphModule `json:"graph_module"`
	RangeConstraints map[string]struct {
		Min *int64 `json:"min_val"`
		Max *int64 `json:"max_val"`
	} `json:"range_constraints"`
	SchemaVersion struct {
		Major int `json:"major"`
		Minor int `json:"minor"`
	} `json:"schema_version"`
	TorchVersion string `json:"torch_version"`
}

type jsonGraphModule struct {
	Graph           jsonGraph     `json:"graph"`
	Signature       jsonSignature `json:"signature"`
	ModuleCallGraph []struct {
		FQN       string `json:"fqn"`
		Signature *struct {
			InSpec          string   `json:"in_spec"`
			OutSpec         string   `json:"out_spec"`
			ForwardArgNames []string `json:"forward_arg_names"`
		} `json:"signature"`
	} `json:"module_call_graph"`
}

type jsonGraph struct {
	Inputs       []union                    `json:"inputs"`
	Outputs      []union                    `json:"outputs"`
	Nodes        []jsonNode                 `json:"nodes"`
	TensorValues map[string]jsonTensorMeta  `json:"tensor_values"`
	SymInts      map[string]json.RawMessage `json:"sym_int_values"`
}

type jsonNode struct {
	Target string `json:"target"`
	Name   string `json:"name"`
	Inputs []struct {
		Name string `json:"name"`
		Arg  union  `json:"arg"`
	} `json:"inputs"`
	Outputs  []union           `json:"outputs"`
	Metadata map[string]string `json:"metadata"`
}

type jsonTensorMeta struct {
	DType         int     `json:"dtype"`
	Sizes         []union `json:"sizes"`
	Strides       []union `json:"strides"`
	StorageOffset union   `json:"storage_offset"`
	Layout        int     `json:"layout"`
}

type jsonSignature struct {
	Inputs  []union `json:"input_specs"`
	Outputs []union `json:"output_specs"`
}

type jsonWeights struct {
	Config map[string]struct {
		PathName  string         `json:"path_name"`
		IsParam   bool           `json:"is_param"`
		UsePickle bool           `json:"use_pickle"`
		Meta      jsonTensorMeta `json:"tensor_meta"`
	} `json:"config"`
}

// union is a value of one of several types, an object with one key that names the type. kind is
// empty for null.
type union struct {
	kind string
	raw  json.RawMessage
}

// UnmarshalJSON keeps the value for when its type is known to matter.
func (u *union) UnmarshalJSON(b []byte) error {
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		*u = union{}
		return nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	// Older versions write all members, the absent ones as null.
	for k, v := range m {
		if !bytes.Equal(bytes.TrimSpace(v), []byte("null")) {
			if u.kind != "" {
				return fmt.Errorf("a value of two types, %q and %q", u.kind, k)
			}
			u.kind, u.raw = k, v
		}
	}
	if u.kind == "" && len(m) == 1 {
		for k := range m {
			u.kind = k
		}
	}
	return nil
}

// decode reads the value as the type that its kind has.
func (u *union) decode(into any) error {
	if u.raw == nil {
		return fmt.Errorf("%q without a value", u.kind)
	}
	return json.Unmarshal(u.raw, into)
}

// quoteNonFinite puts the numbers that JSON has not in quotes, as jsonFloat reads them. Up to 2.6 PyTorch writes
// them as Python's json does.
func quoteNonFinite(text []byte) []byte {
	if !bytes.Contains(text, []byte("Infinity")) && !bytes.Contains(text, []byte("NaN")) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for i := 0; i < len(text); {
		n := 1
		switch text[i] {
		case '"':
			n = stringLength(text[i:])
		case '-', 'I', 'N':
			for _, name := range []string{"-Infinity", "Infinity", "NaN"} {
				if bytes.HasPrefix(text[i:], []byte(name)) {
					out = append(append(append(out, '"'), name...), '"')
					i, n = i+len(name), 0
					break
				}
			}
		}
		out = append(out, text[i:i+n]...)
		i += n
	}
	return out
}

// stringLength returns the length of the string of JSON at the start of a text, with its quotes.
func stringLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// jsonFloat is a number that may be infinite.
type jsonFloat float64

// UnmarshalJSON reads a number, or the names of those that JSON has not.
func (f *jsonFloat) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		switch s {
		case "Infinity":
			*f = jsonFloat(math.Inf(1))
		case "-Infinity":
			*f = jsonFloat(math.Inf(-1))
		case "NaN":
			*f = jsonFloat(math.NaN())
		default:
			return fmt.Errorf("%q is not a number", s)
		}
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}

// scalarTypes are the dtypes by the numbers of the schema, which are not those of c10.
var scalarTypes = map[int]ir.DType{
	1: ir.U8, 2: ir.I8, 3: ir.I16, 4: ir.I32, 5: ir.I64, 6: ir.F16, 7: ir.F32, 8: ir.F64,
	10: ir.C64, 11: ir.C128, 12: ir.Bool, 13: ir.BF16, 29: ir.F8E4M3FN, 30: ir.F8E5M2,
}

// dtypeOf returns the dtype of a number of the schema.
func dtypeOf(n int) (ir.DType, error) {
	d, ok := scalarTypes[n]
	if !ok {
		return ir.Invalid, fmt.Errorf("%w: element type %d of the schema is not supported", ir.ErrDType, n)
	}
	return d, nil
}

// stridedLayout is the schema's number of the layout that is supported.
const stridedLayout = 7
