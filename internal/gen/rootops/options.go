package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
)

// use is one optional argument of one op.
type use struct {
	op    string // ATen's name
	goOp  string // as a doc link: Tensor.Sum, or Cat for what is no method
	iface string // the interface that the op's options implement
	place int    // in the op's schema
	param ir.Param
	ctor  string // the constructor that gives the argument
}

// option is one constructor and the arguments that it gives, in all ops.
type option struct {
	ctor   string
	params []string // more than one for a constructor that gives several arguments at once
	uses   []use
}

// extraOptions are the options of the ops written by hand, which their rows lack.
var extraOptions = []use{
	{op: "add", goOp: "Tensor.Add", iface: "AddOption", param: ir.Param{Name: "alpha", Kind: ir.KindScalar, Type: "Scalar", Default: 1}},
	{op: "sub", goOp: "Tensor.Sub", iface: "SubOption", param: ir.Param{Name: "alpha", Kind: ir.KindScalar, Type: "Scalar", Default: 1}},
	{op: "div", goOp: "Tensor.Div", iface: "DivOption", param: ir.Param{Name: "rounding_mode", Kind: ir.KindStr, Type: "str?"}},
}

// collectOptions returns the constructors by name. A name that the root package
// has for something else is an error that says where to give another one.
func collectOptions(fns []*fn, taken map[string]bool) ([]*option, error) {
	uses := slices.Clone(extraOptions)
	for _, f := range fns {
		for i, p := range f.options {
			uses = append(uses, use{op: f.sp.Name, goOp: f.link(), iface: f.optionType(), place: i, param: p})
		}
	}
	byCtor := map[string]*option{}
	for _, u := range uses {
		u.ctor = optionName(u.op, u.param.Name)
		if taken[u.ctor] || len(u.ctor) == 1 {
			return nil, fmt.Errorf("the argument %s of %s can't be the option %s: name it in optionNames", u.param.Name, u.op, u.ctor)
		}
		o := byCtor[u.ctor]
		if o == nil {
			o = &option{ctor: u.ctor}
			byCtor[u.ctor] = o
		}
		o.uses = append(o.uses, u)
		if !slices.Contains(o.params, u.param.Name) {
			o.params = append(o.params, u.param.Name)
		}
	}
	all := make([]*option, 0, len(byCtor))
	for _, o := range byCtor {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *option) int { return cmp.Compare(a.ctor, b.ctor) })
	return all, nil
}

// several reports whether the constructor gives several arguments of one op.
func (o *option) several() bool { return len(o.uses) > 1 && o.uses[0].op == o.uses[1].op }

// typeName is the option's Go type.
func (o *option) typeName() string { return lowerFirst(o.ctor) + "Option" }

// writeOptions writes the interfaces of the ops, then the constructors.
func writeOptions(all []*option) []byte {
	b := bytes.NewBufferString(header + "import \"github.com/loris-ml/loris/internal/ir\"\n\n")
	writeInterfaces(b, all)
	for _, o := range all {
		o.write(b)
	}
	b.WriteString("// appendOption appends the arguments that an option gives to op.\n" +
		"func appendOption(dst []ir.Named, op ir.Op, o any) []ir.Named {\nswitch o := o.(type) {\n")
	for _, o := range all {
		o.writeCase(b)
	}
	b.WriteString("}\npanic(ir.NewOpError(op.String(), ErrArg, nil, \"an option is nil\"))\n}\n")
	return b.Bytes()
}

func writeInterfaces(b *bytes.Buffer, all []*option) {
	byIface := map[string][]use{}
	var order []string
	for _, o := range all {
		for _, u := range o.uses {
			if byIface[u.iface] == nil {
				order = append(order, u.iface)
			}
			byIface[u.iface] = append(byIface[u.iface], u)
		}
	}
	slices.Sort(order)
	for _, iface := range order {
		uses := byIface[iface]
		slices.SortFunc(uses, func(a, b use) int { return cmp.Compare(a.place, b.place) })
		comment(b, fmt.Sprintf("%s is an optional argument of [%s]: one of these, with ATen's type, name and default.", iface, uses[0].goOp))
		b.WriteString("//\n")
		for _, u := range uses {
			fmt.Fprintf(b, "//   - [%s]: %s %s=%s\n", u.ctor, u.param.Type, u.param.Name, defaultText(u.param))
		}
		fmt.Fprintf(b, "type %s interface{ %s() }\n\n", iface, lowerFirst(iface))
	}
}

// defaultText is the default of an argument in ATen's notation.
func defaultText(p ir.Param) string {
	p.HasDef = true
	s := (&ir.Schema{Params: []ir.Param{p}, Returns: []string{"out"}}).String()
	_, s, _ = strings.Cut(s, "=")
	return s[:strings.LastIndex(s, ") ->")]
}

// write writes the type, the constructor and the marker methods of an option.
func (o *option) write(b *bytes.Buffer) {
	links := map[string][]string{} // by ATen's name of the argument
	for _, u := range o.uses {
		links[u.param.Name] = append(links[u.param.Name], "["+u.goOp+"]")
	}
	var is []string
	if o.several() {
		is = []string{fmt.Sprintf("the arguments %s of %s", join(o.params), join(links[o.params[0]]))}
	} else {
		for _, p := range o.params {
			slices.Sort(links[p])
			is = append(is, fmt.Sprintf("%s of %s", p, join(links[p])))
		}
		is[0] = "the argument " + is[0]
	}
	text := o.ctor + " is " + join(is) + "."
	if does := optionDocs[o.ctor]; does != "" {
		text = o.ctor + " " + does + ". It is " + join(is) + "."
	}
	comment(b, text)
	if o.several() {
		fmt.Fprintf(b, "func %s(%s int) %s {\nreturn %s{[%d]int{%[2]s}}\n}\n\n", o.ctor, strings.Join(o.params, ", "), o.typeName(), o.typeName(), len(o.params))
		fmt.Fprintf(b, "type %s struct{ v [%d]int }\n\n", o.typeName(), len(o.params))
	} else {
		typ, value := o.goType()
		fmt.Fprintf(b, "func %s(v %s) %s { return %s{%s} }\n\n", o.ctor, typ, o.typeName(), o.typeName(), value)
		fmt.Fprintf(b, "type %s struct{ v any }\n\n", o.typeName())
	}
	done := map[string]bool{}
	for _, u := range o.uses {
		if !done[u.iface] {
			fmt.Fprintf(b, "func (%s) %s() {}\n", o.typeName(), lowerFirst(u.iface))
			done[u.iface] = true
		}
	}
	b.WriteString("\n")
}

// writeCase writes the option's case of appendOption.
func (o *option) writeCase(b *bytes.Buffer) {
	fmt.Fprintf(b, "case %s:\n", o.typeName())
	if o.several() {
		var args []string
		for i, p := range o.params {
			args = append(args, fmt.Sprintf("ir.Named{Name: %q, Value: o.v[%d]}", p, i))
		}
		fmt.Fprintf(b, "return append(dst, %s)\n", strings.Join(args, ", "))
		return
	}
	if len(o.params) == 1 {
		fmt.Fprintf(b, "return append(dst, ir.Named{Name: %q, Value: o.v})\n", o.params[0])
		return
	}
	fmt.Fprintf(b, "name := %q\nswitch op {\n", o.params[0])
	for _, u := range o.uses {
		if u.param.Name != o.params[0] {
			fmt.Fprintf(b, "case op%s:\nname = %q\n", u.goOp[strings.LastIndex(u.goOp, ".")+1:], u.param.Name)
		}
	}
	b.WriteString("}\nreturn append(dst, ir.Named{Name: name, Value: o.v})\n")
}

// goType returns the type of the constructor's parameter v and what the option
// holds of it.
func (o *option) goType() (typ, value string) {
	kinds := map[ir.ParamKind]bool{}
	for _, u := range o.uses {
		kinds[plain(u.param.Kind)] = true
	}
	if kinds[ir.KindInts] {
		delete(kinds, ir.KindInt)
	}
	if len(kinds) == 1 {
		for k := range kinds {
			typ = goType(k)
		}
	}
	switch typ {
	case "[]int":
		return "...int", "intsArg(v)"
	case "*Tensor":
		return typ, "v.ex()"
	case "[]*Tensor":
		return typ, "handles(v)"
	case "int", "float64", "bool", "string", "DType":
		return typ, "v"
	}
	return "any", "arg(v)"
}

// plain drops the ? of a kind.
func plain(k ir.ParamKind) ir.ParamKind {
	switch k {
	case ir.KindOptTensor:
		return ir.KindTensor
	case ir.KindOptScalar, ir.KindOptInt, ir.KindOptInts, ir.KindOptFloat, ir.KindOptDType:
		return k - 1
	}
	return k
}

// join lists words: a, b and c.
func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// writeOptionTable writes the list of the options' types for the tests.
func writeOptionTable(all []*option) []byte {
	b := bytes.NewBufferString(header)
	b.WriteString("// optionTypes has a zero option of each constructor.\nvar optionTypes = map[string]any{\n")
	for _, o := range all {
		fmt.Fprintf(b, "%q: %s{},\n", o.ctor, o.typeName())
	}
	b.WriteString("}\n")
	return b.Bytes()
}
