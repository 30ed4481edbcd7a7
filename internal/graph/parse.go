package graph

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/loris-ml/loris/internal/ir"
)

// Parse reads one program in text form. A mistake is a *ParseError with its
// position; one in the use of an op wraps the *ir.OpError.
func Parse(src string) (p *Program, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ParseError:
			p, err = nil, r
		default:
			panic(r)
		}
	}()
	ps := &parser{lex: lexer{src: src, line: 1, col: 1}, vals: map[string]ir.Value{}}
	ps.b.Lines = ir.LinesOff
	ps.advance()
	return ps.program(), nil
}

type parser struct {
	lex    lexer
	tok    token
	b      ir.Builder
	vals   map[string]ir.Value
	params []ir.Value
	names  map[string]bool
	depth  int
}

// maxDepth bounds the nesting of calls and lists.
const maxDepth = 100

func (p *parser) advance() { p.tok = p.lex.next() }

func (p *parser) fail(t token, format string, args ...any) {
	panic(&ParseError{Line: t.line, Col: t.col, Msg: fmt.Sprintf(format, args...)})
}

func (p *parser) is(punct string) bool { return p.tok.kind == tokPunct && p.tok.text == punct }

func (p *parser) expect(punct string) {
	if !p.is(punct) {
		p.fail(p.tok, "expected %q, found %v", punct, p.tok)
	}
	p.advance()
}

func (p *parser) accept(punct string) bool {
	if p.is(punct) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) take(kind tokenKind, what string) token {
	t := p.tok
	if t.kind != kind {
		p.fail(t, "expected %s, found %v", what, t)
	}
	p.advance()
	return t
}

func (p *parser) program() *Program {
	if t := p.take(tokWord, `"program"`); t.text != "program" {
		p.fail(t, `expected "program", found %v`, t)
	}
	name := p.take(tokAt, "the program's @name").text
	p.expect("{")
	p.names = map[string]bool{}
	var roots []ir.Value
	for {
		if p.tok.kind == tokWord && p.tok.text == "return" {
			p.advance()
			roots = p.returns()
			break
		}
		p.instruction()
	}
	p.expect("}")
	if p.tok.kind != tokEOF {
		p.fail(p.tok, "expected the end of the text, found %v", p.tok)
	}
	return FromValues(name, p.params, roots)
}

func (p *parser) returns() []ir.Value {
	var roots []ir.Value
	for p.tok.kind != tokPunct || p.tok.text != "}" {
		roots = append(roots, p.operand())
		if !p.accept(",") {
			break
		}
	}
	return roots
}

// instruction reads "%a, %b = call : types".
func (p *parser) instruction() {
	var names []token
	for {
		names = append(names, p.take(tokValue, "an instruction (%name = …) or return"))
		if !p.accept(",") {
			break
		}
	}
	p.expect("=")
	if len(names) > ir.MaxOutputs {
		p.fail(names[ir.MaxOutputs], "an op has at most %d results", ir.MaxOutputs)
	}
	here := make(map[string]bool, len(names))
	for _, n := range names {
		if _, defined := p.vals[n.text]; defined || here[n.text] {
			p.fail(n, "%v is defined twice", n)
		}
		here[n.text] = true
	}
	at := p.tok
	if at.kind == tokWord && at.text == "parameter" {
		p.advance()
		p.parameter(names)
		return
	}
	outs := p.call()
	if len(outs) != len(names) {
		p.fail(at, "%s has %d results, %d are named", at.text, len(outs), len(names))
	}
	if p.accept(":") {
		for i, v := range outs {
			if i > 0 {
				p.expect(",")
			}
			t := p.tok
			if s := p.shape(); s != v.Shape() {
				p.fail(t, "result %d of %s is %v, not %v", i, at.text, v.Shape(), s)
			}
		}
	}
	for i, n := range names {
		p.vals[n.text] = outs[i]
	}
}

func (p *parser) parameter(names []token) {
	if len(names) != 1 {
		p.fail(names[1], "a parameter has one name")
	}
	nameTok := p.take(tokString, "the parameter's name in quotes")
	if p.names[nameTok.text] {
		p.fail(nameTok, "there are two parameters %q", nameTok.text)
	}
	p.names[nameTok.text] = true
	p.expect(":")
	s := p.shape()
	leaf := &ParamLeaf{Index: len(p.params), Name: nameTok.text}
	v := ir.NewLeaf(leaf, s, ir.Device{}).Out(0)
	p.params = append(p.params, v)
	p.vals[names[0].text] = v
}

func (p *parser) shape() ir.Shape {
	t := p.take(tokWord, "a type such as f32[8,64]")
	d, err := ir.ParseDType(t.text)
	if err != nil {
		p.fail(t, "no dtype is named %q", t.text)
	}
	p.expect("[")
	var dims []int
	for !p.is("]") {
		nt := p.take(tokNumber, "a dimension")
		n, err := strconv.Atoi(nt.text)
		if err != nil {
			p.fail(nt, "%v is not a dimension", nt)
		}
		dims = append(dims, n)
		if !p.accept(",") {
			break
		}
	}
	p.expect("]")
	s, err := ir.NewShape(d, dims)
	if err != nil {
		p.fail(t, "%v", err)
	}
	return s
}

// enter begins a call or a list, and leave ends it.
func (p *parser) enter(t token) {
	if p.depth++; p.depth > maxDepth {
		p.fail(t, "calls and lists are nested more than %d deep", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// call reads op(args) and records it.
func (p *parser) call() []ir.Value {
	opTok := p.take(tokWord, "an op")
	op, ok := ir.Lookup(opTok.text)
	if !ok {
		p.fail(opTok, "there is no op %q", opTok.text)
	}
	p.enter(opTok)
	defer p.leave()
	p.expect("(")
	var pos []any
	var named []ir.Named
	for !p.is(")") {
		name := ""
		if p.tok.kind == tokWord {
			// A word is an argument's name if = follows.
			save, tok := p.lex, p.tok
			p.advance()
			if p.is("=") {
				name = tok.text
				p.advance()
			} else {
				p.lex, p.tok = save, tok
			}
		}
		t := p.tok
		v := p.value()
		switch {
		case name != "":
			if alias, ok := op.Spec().Aliases[name]; ok {
				name = alias
			}
			named = append(named, ir.A(name, v))
		case named != nil:
			p.fail(t, "an argument by position follows one by name")
		default:
			pos = append(pos, v)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return p.record(opTok, op, pos, named)
}

// record binds the arguments and records the op. An error of the op gets the position of the call.
func (p *parser) record(at token, op ir.Op, pos []any, named []ir.Named) (outs []ir.Value) {
	defer func() {
		if r := recover(); r != nil {
			var oe *ir.OpError
			if err, ok := r.(error); !ok || !errors.As(err, &oe) {
				panic(r)
			}
			oe.Line = ""
			panic(&ParseError{Line: at.line, Col: at.col, Msg: oe.Error(), Err: oe})
		}
	}()
	sp := op.Spec()
	for i, v := range pos {
		if i < len(sp.Schema.Params) {
			pos[i] = p.literal(sp.Schema.Params[i].Kind, v)
		}
	}
	for i, n := range named {
		if k := sp.Schema.Param(n.Name); k >= 0 {
			named[i].Value = p.literal(sp.Schema.Params[k].Kind, n.Value)
		}
	}
	return p.b.Call(op, pos, p.defaults(sp, len(pos), named)...)
}

// defaults adds the numbers that operands have by default, as constants: a program has the parameters
// that it declares, and no others.
func (p *parser) defaults(sp *ir.Spec, positional int, named []ir.Named) []ir.Named {
	for i := range sp.Schema.Params {
		q := &sp.Schema.Params[i]
		given := i < positional
		for _, n := range named {
			given = given || n.Name == q.Name
		}
		if !given && q.Kind.Operand() && q.HasDef && q.Default != nil {
			named = append(named, ir.A(q.Name, p.literal(q.Kind, q.Default)))
		}
	}
	return named
}

// literal converts an argument for a parameter of the given kind: a number for an operand becomes a
// constant, an empty list for a list of tensors an empty []ir.Value.
func (p *parser) literal(kind ir.ParamKind, v any) any {
	if !kind.Operand() {
		return v
	}
	switch x := v.(type) {
	case int, float64, bool:
		return p.b.WrappedConst(x)
	case []int:
		if kind == ir.KindTensors && len(x) == 0 {
			return []ir.Value{}
		}
	}
	return v
}

// value reads an argument: a literal, a %value, a nested call or a list.
func (p *parser) value() any {
	t := p.tok
	switch t.kind {
	case tokString:
		p.advance()
		return t.text
	case tokNumber:
		p.advance()
		return p.number(t)
	case tokValue:
		return p.operand()
	case tokWord:
		switch t.text {
		case "true", "True", "false", "False":
			p.advance()
			return t.text[0] == 't' || t.text[0] == 'T'
		case "None":
			p.advance()
			return nil
		case "nan":
			p.advance()
			return math.NaN()
		case "inf":
			p.advance()
			return math.Inf(1)
		}
		if d, err := ir.ParseDType(t.text); err == nil {
			p.advance()
			return d
		}
		return p.operand()
	}
	if p.is("[") {
		return p.list()
	}
	p.fail(t, "expected an argument, found %v", t)
	return nil
}

func (p *parser) number(t token) any {
	if t.text == "-inf" {
		return math.Inf(-1)
	}
	if n, err := strconv.ParseInt(t.text, 10, 64); err == nil {
		return int(n)
	}
	f, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		p.fail(t, "%v is not a number", t)
	}
	return f
}

// operand reads a %value or a nested call with one result.
func (p *parser) operand() ir.Value {
	t := p.tok
	if t.kind == tokValue {
		p.advance()
		v, ok := p.vals[t.text]
		if !ok {
			p.fail(t, "%v is not defined above", t)
		}
		return v
	}
	outs := p.call()
	if len(outs) != 1 {
		p.fail(t, "%s has %d results and cannot be nested", t.text, len(outs))
	}
	return outs[0]
}

// list reads [1,2] or [%a, %b].
func (p *parser) list() any {
	p.enter(p.tok)
	defer p.leave()
	p.expect("[")
	ints := []int{}
	var vals []ir.Value
	for !p.is("]") {
		t := p.tok
		switch v := p.value().(type) {
		case int:
			ints = append(ints, v)
		case ir.Value:
			vals = append(vals, v)
		default:
			p.fail(t, "a list holds integers or tensors")
		}
		if len(ints) > 0 && len(vals) > 0 {
			p.fail(t, "a list holds integers or tensors, not both")
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect("]")
	if vals != nil {
		return vals
	}
	return ints
}
