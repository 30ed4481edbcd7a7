package pt2

import "math"

// expr is a size or a stride as the generated source writes it: sums, differences
// and products of numbers and of symbols for dynamic sizes.
type expr struct {
	op   byte // 'n' a number, 's' a symbol, or '+', '-', '*'
	n    int64
	sym  int // index into the symbols of the Spec
	l, r *expr
}

const (
	maxExpr      = 1024 // bytes of an expression
	maxExprDepth = 32
)

// parseExpr reads an expression; nil for one that holds anything else, such as a
// division, which then is not checked. symbol gives the index of a name.
func parseExpr(text string, symbol func(string) (int, bool)) *expr {
	if len(text) > maxExpr {
		return nil
	}
	p := exprParser{text: text, symbol: symbol}
	e := p.sum(0)
	if p.skip(); e == nil || p.pos != len(p.text) {
		return nil
	}
	return e
}

type exprParser struct {
	text   string
	pos    int
	symbol func(string) (int, bool)
}

func (p *exprParser) skip() {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t') {
		p.pos++
	}
}

// next takes one of the bytes in set; 0 if another comes.
func (p *exprParser) next(set string) byte {
	p.skip()
	for i := range len(set) {
		if p.pos < len(p.text) && p.text[p.pos] == set[i] {
			p.pos++
			return set[i]
		}
	}
	return 0
}

func (p *exprParser) sum(depth int) *expr {
	l := p.product(depth)
	for l != nil {
		op := p.next("+-")
		if op == 0 {
			return l
		}
		r := p.product(depth)
		if r == nil {
			return nil
		}
		l = &expr{op: op, l: l, r: r}
	}
	return nil
}

func (p *exprParser) product(depth int) *expr {
	l := p.factor(depth)
	for l != nil && p.next("*") != 0 {
		r := p.factor(depth)
		if r == nil {
			return nil
		}
		l = &expr{op: '*', l: l, r: r}
	}
	return l
}

func (p *exprParser) factor(depth int) *expr {
	if depth > maxExprDepth {
		return nil
	}
	if p.next("-") != 0 {
		e := p.factor(depth + 1)
		if e == nil {
			return nil
		}
		return &expr{op: '-', l: &expr{op: 'n'}, r: e}
	}
	if p.next("(") != 0 {
		e := p.sum(depth + 1)
		if e == nil || p.next(")") == 0 {
			return nil
		}
		return e
	}
	start := p.pos
	for p.pos < len(p.text) && wordByte(p.text[p.pos]) {
		p.pos++
	}
	word := p.text[start:p.pos]
	if n, ok := parseNumber(word); ok {
		return &expr{op: 'n', n: n}
	}
	if word == "" || digit(word[0]) {
		return nil
	}
	if i, ok := p.symbol(word); ok {
		return &expr{op: 's', sym: i}
	}
	return nil
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func wordByte(c byte) bool {
	return digit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

// parseNumber reads a C++ integer with its suffix.
func parseNumber(s string) (int64, bool) {
	for len(s) > 0 && (s[len(s)-1] == 'L' || s[len(s)-1] == 'l') {
		s = s[:len(s)-1]
	}
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = s[1:]
	}
	if s == "" {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if !digit(s[i]) || n > (math.MaxInt64-9)/10 {
			return math.MaxInt64, s == "9223372036854775807" && !neg
		}
		n = n*10 + int64(s[i]-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}

// eval computes the value; false if a symbol has none or the number is too large
// for a size.
func (e *expr) eval(values []int64) (int64, bool) {
	const bound = 1 << 31
	switch e.op {
	case 'n':
		return e.n, true
	case 's':
		return values[e.sym], values[e.sym] != unbound
	}
	l, ok1 := e.l.eval(values)
	r, ok2 := e.r.eval(values)
	if !ok1 || !ok2 {
		return 0, false
	}
	switch e.op {
	case '+':
		return l + r, abs(l) < 1<<61 && abs(r) < 1<<61
	case '-':
		return l - r, abs(l) < 1<<61 && abs(r) < 1<<61
	}
	return l * r, abs(l) < bound && abs(r) < bound
}

// unbound is the value of a symbol that no input has given one.
const unbound = math.MinInt64

func abs(n int64) int64 {
	if n < 0 && n != math.MinInt64 {
		return -n
	}
	return n
}
