package graph

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ParseError is a mistake in a text program, with its position from 1.
type ParseError struct {
	Line, Col int
	Msg       string
	Err       error // the cause, for a mistake in using an op
}

// Error returns "line:col: reason".
func (e *ParseError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg) }

// Unwrap returns the cause, if there is one.
func (e *ParseError) Unwrap() error { return e.Err }

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // matmul, f32, true
	tokValue            // %x
	tokAt               // @step
	tokString           // "x"
	tokNumber           // 1, -2.5e3
	tokPunct            // ( ) [ ] { } , = :
)

type token struct {
	kind      tokenKind
	text      string // without the % or @; strings unquoted
	line, col int
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end of the text"
	case tokValue:
		return "%" + t.text
	case tokAt:
		return "@" + t.text
	}
	return strconv.Quote(t.text)
}

type lexer struct {
	src       string
	pos       int
	line, col int
}

func (l *lexer) fail(line, col int, format string, args ...any) {
	panic(&ParseError{Line: line, Col: col, Msg: fmt.Sprintf(format, args...)})
}

func (l *lexer) advance(n int) {
	for range n {
		if l.src[l.pos] == '\n' {
			l.line, l.col = l.line+1, 0
		}
		l.pos++
		l.col++
	}
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			l.advance(1)
		case c == '#':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.advance(1)
			}
		default:
			return
		}
	}
}

// run returns the length of the word at from; dots are part of names.
func (l *lexer) run(from int) int {
	n := 0
	for from+n < len(l.src) && (isWord(l.src[from+n]) || l.src[from+n] == '.') {
		n++
	}
	return n
}

func (l *lexer) next() token {
	l.skipSpace()
	t := token{line: l.line, col: l.col}
	if l.pos == len(l.src) {
		return t
	}
	c := l.src[l.pos]
	switch {
	case c == '%' || c == '@':
		n := l.run(l.pos + 1)
		if n == 0 {
			l.fail(t.line, t.col, "a name must follow %q", c)
		}
		t.kind, t.text = tokValue, l.src[l.pos+1:l.pos+1+n]
		if c == '@' {
			t.kind = tokAt
		}
		l.advance(n + 1)
	case c == '"':
		quoted, err := strconv.QuotedPrefix(l.src[l.pos:])
		if err != nil {
			l.fail(t.line, t.col, "the string is not closed or has a bad escape")
		}
		s, err := strconv.Unquote(quoted)
		if err != nil {
			l.fail(t.line, t.col, "the string has a bad escape")
		}
		t.kind, t.text = tokString, s
		l.advance(len(quoted))
	case c == '-' || c == '+' || c >= '0' && c <= '9':
		t.kind, t.text = tokNumber, l.src[l.pos:l.pos+l.number()]
		l.advance(len(t.text))
	case isWord(c):
		n := l.run(l.pos)
		t.kind, t.text = tokWord, l.src[l.pos:l.pos+n]
		l.advance(n)
	case c == '(' || c == ')' || c == '[' || c == ']' || c == '{' || c == '}' || c == ',' || c == '=' || c == ':':
		t.kind, t.text = tokPunct, string(c)
		l.advance(1)
	default:
		r, _ := utf8.DecodeRuneInString(l.src[l.pos:])
		l.fail(t.line, t.col, "unexpected character %q", r)
	}
	return t
}

// number returns the length of the number at the position: a sign, then a run
// of word characters and dots in which a sign may follow an e.
func (l *lexer) number() int {
	n := 1
	for l.pos+n < len(l.src) {
		c := l.src[l.pos+n]
		prev := l.src[l.pos+n-1]
		if isWord(c) || c == '.' || (c == '-' || c == '+') && (prev == 'e' || prev == 'E') {
			n++
			continue
		}
		break
	}
	return n
}
