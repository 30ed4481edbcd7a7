package main

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/loris-ml/loris/ir"
)

// option is one constructor: the uses of a parameter name in all rows.
type option struct {
	name  string
	kinds map[ir.ParamKind]bool
	ops   []string
}

// options writes the constructors of options.
func options(fns []*fn, taken map[string]bool) *bytes.Buffer {
	byName := map[string]*option{}
	add := func(param string, kind ir.ParamKind, op string) {
		o := byName[param]
		if o == nil {
			o = &option{name: param, kinds: map[ir.ParamKind]bool{}}
			byName[param] = o
		}
		o.kinds[plain(kind)] = true
		o.ops = append(o.ops, op)
	}
	// What the methods written by hand take.
	add("alpha", ir.KindScalar, "Add")
	add("alpha", ir.KindScalar, "Sub")
	add("rounding_mode", ir.KindStr, "Div")
	for _, f := range fns {
		for _, p := range f.options {
			add(p.Name, p.Kind, f.name)
		}
	}
	names := make([]string, 0, len(byName))
	for n := range byName {
		if n != "dtype" {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	b := bytes.NewBufferString(header)
	for _, n := range names {
		byName[n].write(b, optName(n, taken))
	}
	return b
}

// plain drops the ? of a kind.
func plain(k ir.ParamKind) ir.ParamKind {
	switch k {
	case ir.KindOptTensor, ir.KindOptScalar, ir.KindOptInt, ir.KindOptInts, ir.KindOptFloat, ir.KindOptDType:
		if k == ir.KindOptTensor {
			return ir.KindTensor
		}
		return k - 1
	}
	return k
}

func (o *option) write(b *bytes.Buffer, name string) {
	sort.Strings(o.ops)
	for _, l := range wrap(fmt.Sprintf("%s is the argument %s of %s.", name, o.name, strings.Join(o.ops, ", ")), 77) {
		b.WriteString("// " + l + "\n")
	}
	has := func(ks ...ir.ParamKind) bool {
		n := 0
		for _, k := range ks {
			if o.kinds[k] {
				n++
			}
		}
		return n == len(o.kinds)
	}
	var typ string
	switch {
	case o.kinds[ir.KindInts] && has(ir.KindInt, ir.KindInts):
		fmt.Fprintf(b, "func %s(v ...int) Opt { return Opt{Name: %q, Value: intsArg(v)} }\n\n", name, o.name)
		return
	case has(ir.KindTensor):
		typ = "*Tensor"
	case has(ir.KindTensors):
		typ = "[]*Tensor"
	case has(ir.KindInt):
		typ = "int"
	case has(ir.KindFloat):
		typ = "float64"
	case has(ir.KindBool):
		typ = "bool"
	case has(ir.KindStr):
		typ = "string"
	case has(ir.KindDType):
		typ = "DType"
	default:
		typ = "any"
	}
	value := "v"
	switch typ {
	case "*Tensor":
		value = "v.ex()"
	case "[]*Tensor":
		value = "handles(v)"
	case "any":
		value = "arg(v)"
	}
	fmt.Fprintf(b, "func %s(v %s) Opt { return Opt{Name: %q, Value: %s} }\n\n", name, typ, o.name, value)
}
