package torchexport

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// expr is a size that depends on symbols, as SymPy's srepr writes it: "Mul(Integer(2),
// Symbol('s0', integer=True))".
type expr struct {
	op   string // of operators; "Symbol", "Integer"
	name string // of a symbol
	n    int64  // of an integer
	args []*expr
}

const (
	maxExprText  = 1 << 16
	maxExprDepth = 64
)

// parseExpr reads an expression. What it does not know is an error.
func parseExpr(text string) (*expr, error) {
	if len(text) > maxExprText {
		return nil, fmt.Errorf("a size expression of %d bytes", len(text))
	}
	p := &exprParser{text: text}
	e, err := p.expr(0)
	if err == nil && p.pos != len(text) {
		err = p.fail("more text than an expression")
	}
	return e, err
}

type exprParser struct {
	text string
	pos  int
}

func (p *exprParser) fail(format string, args ...any) error {
	return fmt.Errorf("size expression at byte %d: %s", p.pos, fmt.Sprintf(format, args...))
}

func (p *exprParser) skip() {
	for p.pos < len(p.text) && p.text[p.pos] == ' ' {
		p.pos++
	}
}

func (p *exprParser) accept(c byte) bool {
	p.skip()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		p.skip()
		return true
	}
	return false
}

func (p *exprParser) word() string {
	start := p.pos
	for p.pos < len(p.text) && (p.text[p.pos] == '_' || p.text[p.pos] == '.' || isAlnum(p.text[p.pos])) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// constants are the integers that SymPy names.
var constants = map[string]int64{"Zero": 0, "One": 1, "NegativeOne": -1, "true": 1, "false": 0}

func (p *exprParser) expr(depth int) (*expr, error) {
	if depth > maxExprDepth {
		return nil, p.fail("nested more than %d deep", maxExprDepth)
	}
	p.skip()
	word := p.word()
	if i := strings.LastIndexByte(word, '.'); i >= 0 {
		word = word[i+1:] // torch.utils._sympy.functions.FloorDiv
	}
	if word == "" {
		return nil, p.fail("an expression is missing")
	}
	if !p.accept('(') {
		if n, ok := constants[word]; ok {
			return &expr{op: "Integer", n: n}, nil
		}
		return nil, p.fail("%q is not known", word)
	}
	switch word {
	case "Integer":
		return p.integer()
	case "Symbol":
		return p.symbol()
	}
	arity, ok := exprOps[word]
	if !ok {
		return nil, p.fail("the function %q is not known", word)
	}
	e := &expr{op: word}
	for !p.accept(')') {
		if len(e.args) > 0 && !p.accept(',') {
			return nil, p.fail("a comma is missing")
		}
		if p.keyword() { // evaluate=False
			continue
		}
		a, err := p.expr(depth + 1)
		if err != nil {
			return nil, err
		}
		e.args = append(e.args, a)
	}
	if arity > 0 && len(e.args) != arity || len(e.args) == 0 {
		return nil, p.fail("%s of %d arguments", word, len(e.args))
	}
	return e, nil
}

// keyword skips an argument by name, whose value is a word.
func (p *exprParser) keyword() bool {
	save := p.pos
	if p.word() != "" && p.accept('=') && p.word() != "" {
		return true
	}
	p.pos = save
	return false
}

func (p *exprParser) integer() (*expr, error) {
	start := p.pos
	if p.pos < len(p.text) && p.text[p.pos] == '-' {
		p.pos++
	}
	p.word()
	n, err := strconv.ParseInt(p.text[start:p.pos], 10, 64)
	if err != nil {
		return nil, p.fail("not an integer")
	}
	if !p.accept(')') {
		return nil, p.fail("an integer is not closed")
	}
	return &expr{op: "Integer", n: n}, nil
}

func (p *exprParser) symbol() (*expr, error) {
	if p.pos >= len(p.text) || p.text[p.pos] != '\'' && p.text[p.pos] != '"' {
		return nil, p.fail("a symbol without a name")
	}
	quote := p.text[p.pos]
	end := strings.IndexByte(p.text[p.pos+1:], quote)
	if end < 1 {
		return nil, p.fail("a symbol without a name")
	}
	e := &expr{op: "Symbol", name: p.text[p.pos+1 : p.pos+1+end]}
	p.pos += end + 2
	for p.accept(',') {
		if !p.keyword() {
			return nil, p.fail("an assumption of a symbol is damaged")
		}
	}
	if !p.accept(')') {
		return nil, p.fail("a symbol is not closed")
	}
	return e, nil
}

// exprOps are the functions of expressions with the numbers of their arguments, 0 for any.
var exprOps = map[string]int{
	"Add": 0, "Mul": 0, "Max": 0, "Min": 0, "FloorDiv": 2, "CleanDiv": 2, "CeilDiv": 2, "CeilToInt": 1, "Mod": 2,
	"PythonMod": 2, "Pow": 2, "PowByNatural": 2, "Abs": 1, "Identity": 1, "TruncToInt": 1, "FloorToInt": 1,
	"Equality": 2, "Unequality": 2, "GreaterThan": 2, "LessThan": 2, "StrictGreaterThan": 2, "StrictLessThan": 2,
	"And": 0, "Or": 0, "Not": 1, "Piecewise": 0, "ExprCondPair": 2, "Where": 3,
}

// eval computes the expression; false if a symbol has no value, a division is by zero, or the number
// is too large.
func (e *expr) eval(values map[string]int64) (int64, bool) {
	switch e.op {
	case "Integer":
		return e.n, true
	case "Symbol":
		v, ok := values[e.name]
		return v, ok
	case "Piecewise":
		for _, a := range e.args {
			if a.op != "ExprCondPair" {
				return 0, false
			}
			if c, ok := a.args[1].eval(values); !ok {
				return 0, false
			} else if c != 0 {
				return a.args[0].eval(values)
			}
		}
		return 0, false
	}
	args := make([]int64, len(e.args))
	for i, a := range e.args {
		var ok bool
		if args[i], ok = a.eval(values); !ok {
			return 0, false
		}
	}
	if fold, ok := folds[e.op]; ok {
		v := args[0]
		for _, a := range args[1:] {
			if v, ok = fold(v, a); !ok {
				return 0, false
			}
		}
		return v, true
	}
	return evalFixed(e.op, args)
}

const exprBound = 1 << 31

// folds are the functions of any number of arguments.
var folds = map[string]func(a, b int64) (int64, bool){
	"Add": func(a, b int64) (int64, bool) { return a + b, inBound(a, 1<<61) && inBound(b, 1<<61) },
	"Mul": func(a, b int64) (int64, bool) {
		return a * b, a == 0 || b == 0 || a == 1 || b == 1 || inBound(a, exprBound) && inBound(b, exprBound)
	},
	"Max": func(a, b int64) (int64, bool) { return max(a, b), true },
	"Min": func(a, b int64) (int64, bool) { return min(a, b), true },
	"And": func(a, b int64) (int64, bool) { return a & b, true },
	"Or":  func(a, b int64) (int64, bool) { return a | b, true },
}

func inBound(n, bound int64) bool { return -bound < n && n < bound }

func evalFixed(op string, a []int64) (int64, bool) {
	switch op {
	case "Identity", "CeilToInt", "TruncToInt", "FloorToInt":
		return a[0], true
	case "Abs":
		return max(a[0], -a[0]), true
	case "Not":
		return 1 - a[0], true
	case "Where":
		if a[0] != 0 {
			return a[1], true
		}
		return a[2], true
	case "Equality":
		return bit(a[0] == a[1]), true
	case "Unequality":
		return bit(a[0] != a[1]), true
	case "GreaterThan":
		return bit(a[0] >= a[1]), true
	case "LessThan":
		return bit(a[0] <= a[1]), true
	case "StrictGreaterThan":
		return bit(a[0] > a[1]), true
	case "StrictLessThan":
		return bit(a[0] < a[1]), true
	case "Pow", "PowByNatural":
		return power(a[0], a[1])
	}
	if a[1] == 0 {
		return 0, false
	}
	switch op {
	case "FloorDiv", "CleanDiv":
		return floorDiv(a[0], a[1]), true
	case "CeilDiv":
		return -floorDiv(-a[0], a[1]), true
	case "Mod", "PythonMod":
		return a[0] - floorDiv(a[0], a[1])*a[1], true
	}
	return 0, false
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func power(base, exp int64) (int64, bool) {
	if exp < 0 || exp > 62 {
		return 0, false
	}
	v := int64(1)
	for range exp {
		if !inBound(v, exprBound) || !inBound(base, exprBound) {
			return 0, false
		}
		v *= base
	}
	return v, true
}

// floorDiv rounds towards minus infinity; b is not 0.
func floorDiv(a, b int64) int64 {
	if b == -1 {
		return -a
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// solve finds the value of the one symbol of a linear expression that has none, so that the
// expression is n.
func (e *expr) solve(values map[string]int64, n int64) (name string, v int64, ok bool) {
	unknown := map[string]bool{}
	e.symbols(func(s string) {
		if _, have := values[s]; !have {
			unknown[s] = true
		}
	})
	if len(unknown) != 1 {
		return "", 0, false
	}
	for name = range unknown {
	}
	at := func(x int64) (int64, bool) {
		values[name] = x
		defer delete(values, name)
		return e.eval(values)
	}
	f1, ok1 := at(1024)
	f2, ok2 := at(2048)
	if !ok1 || !ok2 || f1 == f2 {
		return "", 0, false
	}
	// The slope is rational where there are divisions; what is found is checked.
	v = 1024 + (n-f1)*1024/(f2-f1)
	for _, x := range []int64{v, v + 1, v - 1} {
		if got, ok := at(x); ok && got == n && x >= 0 && x < math.MaxInt32 {
			return name, x, true
		}
	}
	return "", 0, false
}

// symbols calls fn for every symbol of the expression.
func (e *expr) symbols(fn func(string)) {
	if e.op == "Symbol" {
		fn(e.name)
	}
	for _, a := range e.args {
		a.symbols(fn)
	}
}

// infix are the functions that are written between their arguments.
var infix = map[string]string{"Add": "+", "Mul": "*", "FloorDiv": "//", "CleanDiv": "//", "Mod": "%", "PythonMod": "%", "Pow": "**", "PowByNatural": "**"}

// String returns the expression as Python writes it: "2*s0".
func (e *expr) String() string {
	switch e.op {
	case "Integer":
		return strconv.FormatInt(e.n, 10)
	case "Symbol":
		return e.name
	}
	parts := make([]string, len(e.args))
	for i, a := range e.args {
		parts[i] = a.String()
		if _, inside := infix[a.op]; inside && infix[e.op] != "" && len(e.args) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	if sep, ok := infix[e.op]; ok {
		return strings.Join(parts, sep)
	}
	return e.op + "(" + strings.Join(parts, ", ") + ")"
}
