package torchexport

import (
	"encoding/json"
	"fmt"
)

// memoryFormat, layout and device are arguments that say how a tensor lies in memory, which is not
// part of what it means.
type (
	memoryFormat int
	layout       int
	device       string
)

// operator is the name of an op given as an argument.
type operator string

// argument reads an argument: nil, a number, a truth value, a string, a dtype, a ref, a *block or
// a []any of these.
func (r *reader) argument(s *scope, u *union, depth int) (any, error) {
	if read, ok := plainArguments[u.kind]; ok {
		return read(u.raw)
	}
	switch u.kind {
	case "", "as_none":
		return nil, nil
	case "as_tensor":
		var t struct {
			Name string `json:"name"`
		}
		if err := u.decode(&t); err != nil {
			return nil, err
		}
		return s.lookup(t.Name)
	case "as_tensors":
		return listOf(u, func(t struct {
			Name string `json:"name"`
		}) (any, error) {
			return s.lookup(t.Name)
		})
	case "as_nested_tensors":
		return listOf(u, func(raw json.RawMessage) (any, error) {
			return r.argument(s, &union{"as_tensors", raw}, depth)
		})
	case "as_optional_tensor":
		var inner union
		if err := u.decode(&inner); err != nil {
			return nil, err
		}
		return r.argument(s, &inner, depth)
	case "as_optional_tensors":
		return listOf(u, func(inner union) (any, error) { return r.argument(s, &inner, depth) })
	case "as_sym_int", "as_sym_bool", "as_sym_float":
		var inner union
		if err := u.decode(&inner); err != nil {
			return nil, err
		}
		return r.symbolic(s, inner)
	case "as_sym_ints", "as_sym_bools", "as_sym_floats":
		return listOf(u, func(inner union) (any, error) { return r.symbolic(s, inner) })
	case "as_graph":
		var g struct {
			Name  string    `json:"name"`
			Graph jsonGraph `json:"graph"`
		}
		if err := u.decode(&g); err != nil {
			return nil, err
		}
		return r.block(&g.Graph, g.Name, depth+1)
	}
	return nil, fmt.Errorf("arguments of the kind %q are not supported", u.kind)
}

// symbolic reads a number or the name of a value that is one.
func (r *reader) symbolic(s *scope, u union) (any, error) {
	if u.kind == "as_name" {
		var name string
		if err := u.decode(&name); err != nil {
			return nil, err
		}
		return s.lookup(name)
	}
	if read, ok := plainArguments[u.kind]; ok {
		return read(u.raw)
	}
	return nil, fmt.Errorf("a symbolic number of the kind %q", u.kind)
}

func (s *scope) lookup(name string) (any, error) {
	slot, ok := s.slots[name]
	if !ok {
		return nil, fmt.Errorf("the value %q is not defined before it is used", name)
	}
	return ref(slot), nil
}

func listOf[T any](u *union, each func(T) (any, error)) (any, error) {
	var items []T
	if err := u.decode(&items); err != nil {
		return nil, err
	}
	out := make([]any, len(items))
	for i, item := range items {
		v, err := each(item)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out[i] = v
	}
	return out, nil
}

// plainArguments read the arguments that refer to nothing.
var plainArguments = map[string]func(json.RawMessage) (any, error){
	"as_int":           plain[int64, int64],
	"as_ints":          plainList[int64, int64],
	"as_float":         plain[jsonFloat, float64],
	"as_floats":        plainList[jsonFloat, float64],
	"as_bool":          plain[bool, bool],
	"as_bools":         plainList[bool, bool],
	"as_string":        plain[string, string],
	"as_strings":       plainList[string, string],
	"as_memory_format": plain[int, memoryFormat],
	"as_layout":        plain[int, layout],
	"as_operator":      plain[string, operator],
	"as_device": func(raw json.RawMessage) (any, error) {
		var d struct {
			Type string `json:"type"`
		}
		err := json.Unmarshal(raw, &d)
		return device(d.Type), err
	},
	"as_scalar_type": func(raw json.RawMessage) (any, error) {
		var n int
		if err := json.Unmarshal(raw, &n); err != nil {
			return nil, err
		}
		return dtypeOf(n)
	},
	"as_complex": func(raw json.RawMessage) (any, error) {
		var c struct {
			Real jsonFloat `json:"real"`
			Imag jsonFloat `json:"imag"`
		}
		err := json.Unmarshal(raw, &c)
		return complex(float64(c.Real), float64(c.Imag)), err
	},
	"as_int_lists": func(raw json.RawMessage) (any, error) {
		var lists [][]int64
		if err := json.Unmarshal(raw, &lists); err != nil {
			return nil, err
		}
		out := make([]any, len(lists))
		for i, l := range lists {
			out[i] = anys[int64, int64](l)
		}
		return out, nil
	},
}

type plainJSON interface {
	int | int64 | jsonFloat | bool | string
}

func plain[J plainJSON, T any](raw json.RawMessage) (any, error) {
	var v J
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return convert[J, T](v), nil
}

func plainList[J plainJSON, T any](raw json.RawMessage) (any, error) {
	var v []J
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return anys[J, T](v), nil
}

func anys[J plainJSON, T any](v []J) []any {
	out := make([]any, len(v))
	for i, x := range v {
		out[i] = convert[J, T](x)
	}
	return out
}

// convert returns a value of JSON as the type that arguments have.
func convert[J plainJSON, T any](v J) any {
	var zero T
	switch any(zero).(type) {
	case float64:
		return float64(any(v).(jsonFloat))
	case memoryFormat:
		return memoryFormat(any(v).(int))
	case layout:
		return layout(any(v).(int))
	case operator:
		return operator(any(v).(string))
	}
	return v
}
