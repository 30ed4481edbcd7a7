// Package jsonread reads JSON texts in one pass without building values: numbers stay
// text, so that no integer goes through a float, and nesting is bounded.
package jsonread

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Reader reads one text. Its methods read the value at its place, and leave it behind
// that value; an error is a *SyntaxError or one that a function of the caller
// returned.
type Reader struct {
	data  []byte
	pos   int
	depth int
	// nonFinite lets Number read NaN, Infinity and -Infinity.
	nonFinite bool
	words     map[string]string
	names     map[string]string // what Name has returned
}

// New returns a Reader of data, which must not change, in which objects and arrays are
// nested depth times at most.
func New(data []byte, depth int) *Reader { return &Reader{data: data, depth: depth} }

// Reset makes the Reader one of other data, as New. It keeps the words, and what Name remembers.
func (r *Reader) Reset(data []byte, depth int) {
	*r = Reader{data: data, depth: depth, words: r.words, names: r.names}
}

// Intern makes String return the values of words for their keys, which allocates nothing.
func (r *Reader) Intern(words map[string]string) { r.words = words }

// AllowNonFinite makes Number, and so Skip, take NaN, Infinity and -Infinity, which are
// no JSON but what Python's encoder writes.
func (r *Reader) AllowNonFinite() { r.nonFinite = true }

// SyntaxError says what is wrong with a text, and at which byte.
type SyntaxError struct {
	Offset int
	Msg    string
}

// Error names the byte and what is wrong.
func (e *SyntaxError) Error() string { return fmt.Sprintf("JSON, byte %d: %s", e.Offset, e.Msg) }

func (r *Reader) fail(format string, args ...any) error {
	return &SyntaxError{r.pos, fmt.Sprintf(format, args...)}
}

func (r *Reader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// Peek returns the first byte of the next value: '{', '[', '"', 't', 'f', 'n', '-' or
// a digit; 0 at the end of the text.
func (r *Reader) Peek() byte {
	r.space()
	if r.pos == len(r.data) {
		return 0
	}
	return r.data[r.pos]
}

// End returns an error unless nothing but white space is left.
func (r *Reader) End() error {
	if r.Peek() != 0 || r.pos < len(r.data) {
		return r.fail("more follows the value")
	}
	return nil
}

func (r *Reader) expect(c byte, what string) error {
	if got := r.Peek(); got != c || r.pos == len(r.data) {
		return r.fail("expected %s, got %s", what, r.here())
	}
	r.pos++
	return nil
}

// here describes what comes next.
func (r *Reader) here() string {
	if r.pos == len(r.data) {
		return "the end"
	}
	end := min(r.pos+12, len(r.data))
	return fmt.Sprintf("%q", r.data[r.pos:end])
}

func (r *Reader) enter() error {
	if r.depth == 0 {
		return r.fail("nested too deeply")
	}
	r.depth--
	return nil
}

// Object reads an object. It calls member for each of its members, with the Reader at
// the member's value, which member must read.
func (r *Reader) Object(member func(key string) error) error {
	if err := r.expect('{', "an object"); err != nil {
		return err
	}
	if err := r.enter(); err != nil {
		return err
	}
	defer func() { r.depth++ }()
	if r.Peek() == '}' {
		r.pos++
		return nil
	}
	for {
		if r.Peek() != '"' {
			return r.fail("expected a name, got %s", r.here())
		}
		key, err := r.String()
		if err != nil {
			return err
		}
		if err := r.expect(':', "a colon"); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		if done, err := r.next('}'); done || err != nil {
			return err
		}
	}
}

// next reads a comma, or the end of an object or array.
func (r *Reader) next(end byte) (done bool, err error) {
	switch r.Peek() {
	case ',':
		r.pos++
		return false, nil
	case end:
		r.pos++
		return true, nil
	}
	return false, r.fail("expected a comma or %q, got %s", end, r.here())
}

// Array reads an array. It calls element for each of its elements, with the Reader at
// the element, which it must read.
func (r *Reader) Array(element func() error) error {
	if err := r.expect('[', "an array"); err != nil {
		return err
	}
	if err := r.enter(); err != nil {
		return err
	}
	defer func() { r.depth++ }()
	if r.Peek() == ']' {
		r.pos++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if done, err := r.next(']'); done || err != nil {
			return err
		}
	}
}

// The most names that a Reader remembers, and the bytes of the longest.
const maxNames, maxName = 64, 64

// Name is String for what is often the same in the texts that a Reader reads one after another:
// what it has read before it allocates no more.
func (r *Reader) Name() (string, error) {
	if r.Peek() != '"' {
		return r.String()
	}
	start := r.pos
	plain, err := r.skipString()
	if raw := r.data[start:r.pos]; err == nil && plain {
		if name, ok := r.names[string(raw[1:len(raw)-1])]; ok {
			return name, nil
		}
	}
	r.pos = start
	name, err := r.String()
	if err == nil && plain && len(name) <= maxName {
		if r.names == nil || len(r.names) == maxNames {
			r.names = map[string]string{}
		}
		r.names[name] = name
	}
	return name, err
}

// String reads a string.
func (r *Reader) String() (string, error) {
	if r.Peek() != '"' {
		return "", r.fail("expected a string, got %s", r.here())
	}
	start := r.pos
	plain, err := r.skipString()
	if err != nil {
		return "", err
	}
	raw := r.data[start:r.pos]
	if plain {
		if w, ok := r.words[string(raw[1:len(raw)-1])]; ok {
			return w, nil
		}
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		r.pos = start
		return "", r.fail("a string that cannot be read: %v", err)
	}
	return s, nil
}

// skipString goes behind the string at the place; plain says that its text is what
// stands between the quotes.
func (r *Reader) skipString() (plain bool, err error) {
	start := r.pos
	plain = true
	for i := start + 1; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			r.pos = i + 1
			if !plain || utf8.Valid(r.data[start:i]) {
				return plain, nil
			}
			r.pos = start
			return false, r.fail("a string that is not UTF-8")
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			r.pos = i
			return false, r.fail("a control character in a string")
		}
	}
	return false, r.fail("a string without its end")
}

// Number reads a number and returns its text, which shares the memory of the data.
func (r *Reader) Number() ([]byte, error) {
	r.space()
	start, i, d := r.pos, r.pos, r.data
	if r.nonFinite {
		for _, w := range [...]string{"NaN", "Infinity", "-Infinity"} {
			if len(d)-i >= len(w) && string(d[i:i+len(w)]) == w {
				r.pos += len(w)
				return d[start:r.pos], nil
			}
		}
	}
	digits := func() bool {
		from := i
		for i < len(d) && d[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if i < len(d) && d[i] == '-' {
		i++
	}
	zero := i < len(d) && d[i] == '0'
	first := i
	ok := digits() && (!zero || i == first+1)
	if ok && i < len(d) && d[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(d) && d[i]|0x20 == 'e' {
		i++
		if i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		return nil, r.fail("expected a number, got %s", r.here())
	}
	r.pos = i
	return d[start:i], nil
}

// Bool reads true or false.
func (r *Reader) Bool() (bool, error) {
	switch r.Peek() {
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	}
	return false, r.fail("expected true or false, got %s", r.here())
}

// Null reads null.
func (r *Reader) Null() error {
	r.space()
	return r.word("null")
}

func (r *Reader) word(w string) error {
	if len(r.data)-r.pos < len(w) || string(r.data[r.pos:r.pos+len(w)]) != w {
		return r.fail("expected %s, got %s", w, r.here())
	}
	r.pos += len(w)
	return nil
}

// Skip reads any value and returns its text, which shares the memory of the data.
func (r *Reader) Skip() ([]byte, error) {
	first := r.Peek()
	start := r.pos
	var err error
	switch first {
	case '{':
		err = r.Object(func(string) error { _, err := r.Skip(); return err })
	case '[':
		err = r.Array(func() error { _, err := r.Skip(); return err })
	case '"':
		_, err = r.String()
	case 't', 'f':
		_, err = r.Bool()
	case 'n':
		err = r.Null()
	default:
		_, err = r.Number()
	}
	if err != nil {
		return nil, err
	}
	return r.data[start:r.pos], nil
}
